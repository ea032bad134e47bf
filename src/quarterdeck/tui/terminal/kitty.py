"""Keys in the kitty keyboard protocol, for programs that request it.

    CSI ? u               the flags in use; only those that are supported are ever in use
    CSI > 1 u, CSI < u    push flags, pop them; each screen has its own stack

Supported are 1 (keys that are ambiguous otherwise), 8 (all keys) and 16 (their text, too). Textual reports
neither releases (2) nor the other characters of a key (4), nor modifiers pressed alone. With 8, a
character that needs Shift on some layout, such as `!`, is a key of its own.
"""

import re

from quarterdeck.tui.terminal.core import TerminalMode

FLAGS = {
    1: TerminalMode.KITTY_DISTINCT,
    8: TerminalMode.KITTY_ALL,
    16: TerminalMode.KITTY_TEXT,
}
KITTY_MODES = TerminalMode.KITTY_DISTINCT | TerminalMode.KITTY_ALL | TerminalMode.KITTY_TEXT
SUPPORTED = sum(FLAGS)
_ANSWER = re.compile(rb"\x1b\[\?(\d{1,3})u")

_SHIFT = 1
_FUNCTION = {
    "escape": (27, "u"), "enter": (13, "u"), "tab": (9, "u"), "backspace": (127, "u"),
    "insert": (2, "~"), "delete": (3, "~"), "pageup": (5, "~"), "pagedown": (6, "~"),
    "up": (1, "A"), "down": (1, "B"), "right": (1, "C"), "left": (1, "D"),
    "end": (1, "F"), "home": (1, "H"),
    "f1": (1, "P"), "f2": (1, "Q"), "f3": (13, "~"), "f4": (1, "S"),
    "f5": (15, "~"), "f6": (17, "~"), "f7": (18, "~"), "f8": (19, "~"),
    "f9": (20, "~"), "f10": (21, "~"), "f11": (23, "~"), "f12": (24, "~"),
}  # fmt: skip
_PLAIN = {"enter": "\r", "tab": "\t", "backspace": "\x7f"}
"""Unchanged without modifiers, so that a shell can still be used after a program that died."""


def modes_of(flags: int) -> TerminalMode:
    """Return the modes for the flags that a program requested."""
    modes = TerminalMode.NONE
    for flag, mode in FLAGS.items():
        if flags & flag:
            modes |= mode
    return modes


def restore_flags(modes: TerminalMode) -> bytes:
    """Return the sequence that sets the flags of some modes."""
    flags = sum(flag for flag, mode in FLAGS.items() if modes & mode)
    return b"\x1b[=%du" % flags if flags else b""


def truthful(reply: bytes) -> bytes:
    """Return a reply of the core, without flags that are not supported."""
    return _ANSWER.sub(lambda found: b"\x1b[?%du" % (int(found[1]) & SUPPORTED), reply)


def encode_kitty(
    base: str, plain: str | None, modifiers: int, character: str | None, modes: TerminalMode
) -> str | None:
    """Return what a key types, or None when it is as without the protocol.

    Args:
        base: the name of the key without modifiers.
        plain: its character, if it has one.
        modifiers: 1 Shift, 2 Alt, 4 Ctrl.
        character: the text that it stands for, if any.
        modes: at least one of `KITTY_MODES`.
    """
    everything = bool(modes & TerminalMode.KITTY_ALL)
    if base in _FUNCTION:
        if base in _PLAIN and not modifiers and not everything:
            return _PLAIN[base]
        number, final = _FUNCTION[base]
        if modifiers:
            return f"\x1b[{number};{modifiers + 1}{final}"
        return f"\x1b[{'' if number == 1 else number}{final}"
    text = character if character and character.isprintable() else None
    is_text = not modifiers & ~_SHIFT
    if plain is None or not plain.isprintable() or (is_text and not everything):
        return None
    if len(lower := plain.lower()) == 1 and lower != plain:
        plain, modifiers = lower, modifiers | _SHIFT
    return _numbered(ord(plain), modifiers, text if is_text else None, modes)


def _numbered(code: int, modifiers: int, text: str | None, modes: TerminalMode) -> str:
    shown = f";{modifiers + 1}" if modifiers else ""
    if text and modes & TerminalMode.KITTY_TEXT:
        points = ":".join(str(ord(one)) for one in text)
        return f"\x1b[{code}{shown or ';'};{points}u"
    return f"\x1b[{code}{shown}u"
