"""Names of keys, and the current keys of actions.

The current keys are those of the table unless the user rebound them.

A process has one user, and so one keymap, for both rendering and bindings.
"""

import re
import string
import unicodedata
from collections.abc import Mapping
from typing import Final

from quarterdeck.tui.actions.model import Action

_NAMED: Final = {
    "slash": "/",
    "backslash": "\\",
    "at": "@",
    "minus": "-",
    "plus": "+",
    "underscore": "_",
}
"""Characters that Textual names differently from Unicode."""
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
"""Terminals send the same for both."""


class InvalidKeyNameError(ValueError):
    """The key is not one that a terminal sends; the text says why."""


def key_name(written: str) -> str:
    """Return Textual's name of a key as a user writes it, such as `?`, `D`, `ctrl+d` or `PgUp`.

    Raises:
        InvalidKeyNameError: unknown key.
    """
    *modifiers, last = _parts(written.strip() or written)
    wanted = {_OTHERWISE.get(modifier.lower(), modifier.lower()) for modifier in modifiers}
    if unknown := wanted.difference(_MODIFIERS):
        raise InvalidKeyNameError(f"{sorted(unknown)[0]!r} is not ctrl, alt or shift")
    name = _last_name(last, wanted)
    key = "+".join([*(modifier for modifier in _MODIFIERS if modifier in wanted), name])
    if key in _SAME:
        raise InvalidKeyNameError(f"terminals send the same for it as for {_SAME[key]}")
    return key


def _parts(written: str) -> list[str]:
    """Return the modifiers and the key, which may be the plus sign itself."""
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
    raise InvalidKeyNameError("unknown key")


def _character_name(character: str) -> str:
    if character == " ":
        return "space"
    if character.isalnum():
        return character
    if not character.isprintable():
        raise InvalidKeyNameError("not a character")
    return _TEXTUAL.get(character) or _unicode_name(character)


def _character(name: str) -> str | None:
    """Return the character of a long name, or None."""
    if name in _SIGNS:
        return _SIGNS[name]
    for spelled in (name.replace("_", " "), name.replace("_", "-")):
        try:
            return unicodedata.lookup(spelled)
        except KeyError:
            continue
    return None


def is_text(key: str) -> bool:
    """Return whether a key inserts text where text is typed."""
    return key == "space" or len(key) == 1 or (key not in _PLAIN and "+" not in key)


def shown_name(key: str) -> str:
    """Return a key as it is displayed."""
    *modifiers, last = key.split("+")
    if len(last) > 1 and last not in _PLAIN:
        last = _character(last) or last
    return "+".join([*modifiers, "esc" if last == "escape" else last])


UNBOUND = "unbound:"
"""Prefix of the name of a key that no terminal sends, one for each action without keys."""

_instead: dict[str, tuple[str, ...]] = {}


def use_keys(instead: Mapping[str, tuple[str, ...]]) -> None:
    """Rebind some actions, by id; all others keep the keys of the table."""
    _instead.clear()
    _instead.update(instead)


def keymap() -> dict[str, str]:
    """Return the bindings that differ from the table, in Textual's format."""
    return {
        action_id: ",".join(keys) or f"{UNBOUND}{action_id}" for action_id, keys in _instead.items()
    }


def keys_of(action: Action) -> tuple[str, ...]:
    """Return the keys of an action, by Textual's names."""
    return _instead.get(action.id, action.default)


def is_rebound(action: Action) -> bool:
    """Return whether the user rebound the action."""
    return action.id in _instead


def shown_keys(action: Action) -> tuple[str, ...]:
    """Return the keys of an action as they are displayed."""
    return tuple(shown_name(key) for key in keys_of(action))


def shown_key(action: Action) -> str:
    """Return the first key of an action as it is displayed; empty when it has none."""
    return next(iter(shown_keys(action)), "")
