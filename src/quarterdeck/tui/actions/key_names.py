"""Names of keys: as people write and read them, and as Textual calls them."""

import re
import string
import unicodedata
from typing import Final

_NAMED: Final = {
    "slash": "/",
    "backslash": "\\",
    "at": "@",
    "minus": "-",
    "plus": "+",
    "underscore": "_",
}
"""Characters that Textual calls otherwise than Unicode does."""
_TEXTUAL: Final = {character: name for name, character in _NAMED.items()}


def _unicode_name(character: str) -> str:
    return re.sub("[- ]", "_", unicodedata.name(character, "").lower())


_SIGNS: Final = {_TEXTUAL.get(one) or _unicode_name(one): one for one in string.punctuation}
_OTHERWISE: Final = {
    "esc": "escape",
    "return": "enter",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "page_up": "pageup",
    "page_down": "pagedown",
    "del": "delete",
    "ins": "insert",
    "control": "ctrl",
    "meta": "alt",
}
_PLAIN: Final = frozenset(
    [
        "escape",
        "enter",
        "tab",
        "backspace",
        "delete",
        "insert",
        "home",
        "end",
        "pageup",
        "pagedown",
        "up",
        "down",
        "left",
        "right",
        "space",
    ]
) | {f"f{number}" for number in range(1, 25)}
_MODIFIERS: Final = ("alt", "ctrl", "shift")
"""In the order of Textual's names."""
_SAME: Final = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+left_square_bracket": "escape",
}
"""What a terminal sends for both."""


class BadKey(ValueError):
    """It is no key that a terminal sends; the text says why."""


def key_name(written: str) -> str:
    """Textual's name of a key that a person wrote, such as `?`, `D`, `ctrl+d` or `PgUp`.

    Raises:
        BadKey: there is no such key.
    """
    *modifiers, last = _parts(written.strip() or written)
    wanted = {_OTHERWISE.get(one.lower(), one.lower()) for one in modifiers}
    if unknown := wanted.difference(_MODIFIERS):
        raise BadKey(f"{sorted(unknown)[0]!r} is none of ctrl, alt and shift")
    name = _last_name(last, wanted)
    key = "+".join([*(one for one in _MODIFIERS if one in wanted), name])
    if key in _SAME:
        raise BadKey(f"terminals send the same for it as for {_SAME[key]}")
    return key


def _parts(written: str) -> list[str]:
    """The modifiers and the key, which may be the plus sign itself."""
    if written.endswith("+"):
        return [*(part for part in written[:-1].split("+") if part), "+"]
    return written.split("+")


def _last_name(last: str, modifiers: set[str]) -> str:
    if len(last) == 1:
        if last.isalpha() and "shift" in modifiers and len(modifiers) == 1:
            modifiers.clear()
            return last.upper()
        return _character_name(last.lower() if modifiers else last)
    name = _OTHERWISE.get(last.lower(), last.lower())
    if name in _PLAIN or _character(name) is not None:
        return name
    raise BadKey("there is no such key")


def _character_name(character: str) -> str:
    if character == " ":
        return "space"
    if character.isalnum():
        return character
    if not character.isprintable():
        raise BadKey("it is no character")
    return _TEXTUAL.get(character) or _unicode_name(character)


def _character(name: str) -> str | None:
    """The character of a long name, None when it is none."""
    if name in _SIGNS:
        return _SIGNS[name]
    for spelled in (name.replace("_", " "), name.replace("_", "-")):
        try:
            return unicodedata.lookup(spelled)
        except KeyError:
            continue
    return None


def is_text(key: str) -> bool:
    """Whether a key writes something where text is typed."""
    return key == "space" or len(key) == 1 or (key not in _PLAIN and "+" not in key)


def shown_name(key: str) -> str:
    """A key as a person reads it."""
    *modifiers, last = key.split("+")
    if len(last) > 1 and last not in _PLAIN:
        last = _character(last) or last
    return "+".join([*modifiers, last])
