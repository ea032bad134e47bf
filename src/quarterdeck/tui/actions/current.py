"""The keys as they are now: the table's, but for what the person asked for instead.

A process has one person, and so one keymap: what is drawn and what is bound are both asked here.
"""

from collections.abc import Mapping

from quarterdeck.tui.actions.key_names import shown_name
from quarterdeck.tui.actions.model import Action

UNBOUND = "unbound:"
"""Begins the name of a key that no terminal sends, one for each action without keys."""

_instead: dict[str, tuple[str, ...]] = {}


def use_keys(instead: Mapping[str, tuple[str, ...]]) -> None:
    """Takes other keys for some actions, by id; all others have those of the table."""
    _instead.clear()
    _instead.update(instead)


def keymap() -> dict[str, str]:
    """What is otherwise than in the table, as Textual wants it."""
    return {
        action_id: ",".join(keys) or f"{UNBOUND}{action_id}" for action_id, keys in _instead.items()
    }


def keys_of(action: Action) -> tuple[str, ...]:
    """The keys of an action, as Textual calls them."""
    return _instead.get(action.id, action.default)


def is_rebound(action: Action) -> bool:
    """Whether the person asked for other keys."""
    return action.id in _instead


def shown_keys(action: Action) -> tuple[str, ...]:
    """The keys of an action as a person reads them."""
    return tuple(shown_name(key) for key in keys_of(action))


def shown_key(action: Action) -> str:
    """The first key of an action as a person reads it; empty when it has none."""
    return next(iter(shown_keys(action)), "")
