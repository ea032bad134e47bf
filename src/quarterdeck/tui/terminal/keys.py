"""Keys as xterm sends them.

A table of our own and not the library's encoder: that one lives in the other process, and a key must
not wait for it. The kitty protocol is not offered to programs, `modifyOtherKeys` is. What cannot be
told apart is not our choice: Textual reports Alt+arrow as Escape and the arrow, and the keypad as
the plain keys.
"""

from functools import lru_cache

from textual.keys import REPLACED_KEYS, key_to_character

from quarterdeck.tui.terminal.core import Mode

_SHIFT, _ALT, _CTRL = 1, 2, 4
_MODIFIERS = {"shift": _SHIFT, "alt": _ALT, "meta": _ALT, "ctrl": _CTRL}

_CURSOR = {"up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H"}
_FUNCTION = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_TILDE = {
    "insert": 2, "delete": 3, "pageup": 5, "pagedown": 6,
    "f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24,
}  # fmt: skip
_KEYPAD = {
    "decimal": ".", "divide": "/", "multiply": "*", "subtract": "-", "add": "+",
    "equal": "=", "separator": ",",
}  # fmt: skip
_CONTROL = {
    **{chr(letter): chr(letter & 0x1F) for letter in range(ord("a"), ord("z") + 1)},
    "@": "\0", " ": "\0", "`": "\0", "2": "\0",
    "[": "\x1b", "{": "\x1b", "3": "\x1b",
    "\\": "\x1c", "|": "\x1c", "4": "\x1c",
    "]": "\x1d", "}": "\x1d", "5": "\x1d",
    "^": "\x1e", "~": "\x1e", "6": "\x1e",
    "_": "\x1f", "-": "\x1f", "/": "\x1f", "7": "\x1f",
    "?": "\x7f", "8": "\x7f",
}  # fmt: skip
_CODES = {"tab": 9, "enter": 13, "escape": 27, "backspace": 127}
_LEFT_ALONE = {("tab", _SHIFT), ("backspace", _CTRL)}
_OURS_ALONE = "-?"
"""With Ctrl they send a control character here, and none on X11."""


@lru_cache(maxsize=1024)
def encode_key(key: str, character: str | None, modes: Mode = Mode.NONE) -> str | None:
    """What a key types into a program.

    Args:
        key: the name as Textual gives it, modifiers first ("ctrl+shift+left").
        character: the text it stands for, if any.
        modes: what the program asked for.

    Returns:
        The text to send, or null for a key that sends nothing (a modifier alone, a media key).
    """
    *names, base = _split(key)
    modifiers = 0
    for name in names:
        if name not in _MODIFIERS:
            return None
        modifiers |= _MODIFIERS[name]
    if base[0] == "f" and base[1:].isdigit() and 13 <= int(base[1:]) <= 24:
        # Terminals have twelve; the others are shift with one of these.
        base, modifiers = f"f{int(base[1:]) - 12}", modifiers | _SHIFT
    return (
        _special(base, modifiers, modes)
        or _told_apart(base, modifiers, modes)
        or _editing(base, modifiers, modes)
        or _text(base, modifiers, character)
    )


def _split(key: str) -> list[str]:
    names = key.split("+")
    # "ctrl++" names the plus key itself.
    return [*names[:-2], "+"] if len(names) > 1 and not names[-1] else names


def _character(base: str) -> str | None:
    if len(base) == 1:
        return base
    return key_to_character(REPLACED_KEYS.get(base, base))


def _special(base: str, modifiers: int, modes: Mode) -> str | None:
    if final := _CURSOR.get(base):
        if modifiers:
            return f"\x1b[1;{modifiers + 1}{final}"
        return f"\x1bO{final}" if modes & Mode.CURSOR_KEYS else f"\x1b[{final}"
    if final := _FUNCTION.get(base):
        return f"\x1b[1;{modifiers + 1}{final}" if modifiers else f"\x1bO{final}"
    if number := _TILDE.get(base):
        return f"\x1b[{number};{modifiers + 1}~" if modifiers else f"\x1b[{number}~"
    return None


def _editing(base: str, modifiers: int, modes: Mode) -> str | None:
    escape = "\x1b" if modifiers & _ALT else ""
    match base:
        case "tab":
            return "\x1b[Z" if modifiers & _SHIFT else f"{escape}\t"
        case "enter":
            return f"{escape}\r\n" if modes & Mode.NEW_LINE else f"{escape}\r"
        case "escape":
            return f"{escape}\x1b"
        case "backspace":
            # Ctrl swaps the two characters that a backspace key may send.
            swapped = bool(modifiers & _CTRL) != bool(modes & Mode.BACKARROW)
            return escape + ("\x08" if swapped else "\x7f")
        case _:
            return None


def _told_apart(base: str, modifiers: int, modes: Mode) -> str | None:
    """What xterm sends to a program that asked for `modifyOtherKeys`."""
    # Alt alone stays Escape and the key: over a slow line it may have been just these two.
    if not modes & (Mode.OTHER_KEYS | Mode.SOME_KEYS) or not modifiers & (_SHIFT | _CTRL):
        return None
    if (base, modifiers) in _LEFT_ALONE or (modes & Mode.SOME_KEYS and _is_well_known(base)):
        return None
    code = _CODES.get(base)
    if code is None:
        plain = _character(base)
        if plain is None or not modifiers & _CTRL:
            return None
        upper = plain.upper()
        code = ord(upper if modifiers & _SHIFT and len(upper) == 1 else plain)
    return f"\x1b[27;{modifiers + 1};{code}~"


def _is_well_known(base: str) -> bool:
    """Whether level 1 leaves a key as it is, since its control character is told apart already."""
    plain = _character(base) or ""
    return base == "backspace" or (plain.lower() in _CONTROL and plain not in _OURS_ALONE)


def _text(base: str, modifiers: int, character: str | None) -> str | None:
    escape = "\x1b" if modifiers & _ALT else ""
    if not modifiers & (_CTRL | _ALT) and character and character.isprintable():
        return character
    plain = _KEYPAD.get(base) or _character(base)
    if plain is None or not plain.isprintable():
        return None
    if modifiers & _CTRL:
        return escape + _CONTROL.get(plain.lower(), plain)
    if modifiers & _SHIFT:
        plain = plain.upper()
    return escape + plain
