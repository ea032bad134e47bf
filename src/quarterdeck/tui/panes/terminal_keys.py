"""What a key means in a terminal's pane, by the table of actions as it is in effect."""

from quarterdeck.tui.actions import Where, keys_of, which
from quarterdeck.tui.actions.terminal import PREFIX


def is_prefix(key: str) -> bool:
    """Whether a key begins a command."""
    return key in keys_of(PREFIX)


def prefix_key() -> str:
    """The key that begins a command; that of the table where a person wants none."""
    return next(iter(keys_of(PREFIX)), PREFIX.keys)


def meaning(where: Where, key: str) -> str:
    """The id of the action that a key is in a place; empty for none."""
    return which(where, key)
