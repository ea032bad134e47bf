"""Every action of the cockpit: its id, its key, and one line for help.

The same table makes the bindings, the bottom line, the help and the palette, so none of them can
disagree with the others. A user may rebind actions in the configuration file
(`quarterdeck.tui.options`); `keys_of`, `shown_key` and `action_id_of` use the current keys.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING

from quarterdeck.tui.actions.model import (
    OWN,
    SHARED_PLACES,
    Action,
    KeyContext,
    keys_of,
    shown_key,
    shown_keys,
)
from quarterdeck.tui.actions.pages import (
    AUTOMATION_PLACES,
    ENVIRONMENT_PLACES,
    FORM_PLACES,
    SETTINGS_PLACES,
)
from quarterdeck.tui.actions.replicas import GIT_PLACES, INFO_PLACES, LIST_PLACES
from quarterdeck.tui.actions.tabs import (
    CANVAS_PLACES,
    CHANGES_PLACES,
    CHAT_PLACES,
    EXEC_PLACES,
    FILES_PLACES,
    HOOKS_PLACES,
    READING_PLACES,
    TERMINAL_PLACES,
)

if TYPE_CHECKING:
    from textual.binding import Binding


__all__ = [
    "ACTIONS",
    "BY_STATE",
    "ON_REPLICAS",
    "Action",
    "KeyContext",
    "action_id_of",
    "action_named",
    "bindings",
    "brief_keys",
    "eager_bindings",
    "keyed",
    "keys_of",
    "pressed",
    "prompt_bindings",
    "shown_key",
    "shown_keys",
]

ACTIONS: dict[KeyContext, tuple[Action, ...]] = {
    **LIST_PLACES,
    **CHAT_PLACES,
    **TERMINAL_PLACES,
    **FORM_PLACES,
    **READING_PLACES,
    **FILES_PLACES,
    **CANVAS_PLACES,
    **HOOKS_PLACES,
    **ENVIRONMENT_PLACES,
    **INFO_PLACES,
    **CHANGES_PLACES,
    **GIT_PLACES,
    **EXEC_PLACES,
    **AUTOMATION_PLACES,
    **SETTINGS_PLACES,
    **SHARED_PLACES,
}


BY_STATE = frozenset({"replica.sleep", "replica.wake", "chat.interrupt", "composer.interrupt"})
"""Shown in the bottom line only where they have an effect: it depends on the state of a replica."""
ON_REPLICAS = BY_STATE | {
    "replica.open",
    "replica.terminal",
    "replica.get-changes",
    "replica.delete",
    "list.mark",
}
"""Shown in the bottom line only when there is a replica."""


def bindings(where: KeyContext) -> "list[Binding]":
    """Return bindings whose actions are methods of the binder itself: a screen, or a pane."""
    return [
        _binding(action, action.method, priority=False)
        for action in ACTIONS[where]
        if action.method and not action.method.startswith(OWN)
    ]


def prompt_bindings(where: KeyContext) -> "list[Binding]":
    """Return the same for a widget of the screen, handled before the next key is processed.

    So type-ahead goes where the key moved the focus to.
    """
    return [
        _binding(action, _of_screen(action.method), priority=True)
        for action in ACTIONS[where]
        if action.method
    ]


def eager_bindings(where: KeyContext) -> "list[Binding]":
    """Return bindings that a part of the screen handles itself, before the next key."""
    return [
        _binding(action, action.method.removeprefix(OWN), priority=True)
        for action in ACTIONS[where]
        if action.method
    ]


def _binding(action: Action, method: str, *, priority: bool) -> "Binding":
    from textual.binding import Binding  # the table is also read where nothing is rendered

    keys = action.keys
    return Binding(keys, method, action.help, show=False, priority=priority, id=action.id)


def _of_screen(method: str) -> str:
    if method.startswith(OWN):
        return method.removeprefix(OWN)
    return method if method.startswith(("screen.", "app.")) else f"screen.{method}"


def brief_keys(
    where: KeyContext,
    without: Collection[str] = frozenset(),
    labels: Mapping[str, str] | None = None,
) -> tuple[tuple[str, str], ...]:
    """Return key and label pairs for the bottom line, without actions that have no key or one of these ids.

    `labels`, by id, replace those of the table.
    """
    actions = (action for action in ACTIONS[where] if action.brief and action.id not in without)
    found = ((shown_key(action), (labels or {}).get(action.id, action.brief)) for action in actions)
    return tuple((key, label) for key, label in found if key)


def action_id_of(where: KeyContext, key: str) -> str:
    """Return the id of the action that a key has in a place, or an empty string."""
    return next((action.id for action in ACTIONS[where] if key in keys_of(action)), "")


def pressed(key: str, action: Action) -> bool:
    """Return whether a key is bound to an action, for widgets that handle keys themselves."""
    return key in keys_of(action)


_ID = re.compile(r"\{([a-z]+[.-][a-z0-9._-]+)\}")
PALETTE = "the palette"
"""Where to find an action that has no key."""


@cache
def action_named(action_id: str) -> Action:
    """Return the action with an id.

    Raises:
        KeyError: no such action.
    """
    for actions in ACTIONS.values():
        for action in actions:
            if action.id == action_id:
                return action
    raise KeyError(action_id)


def keyed(sentence: str) -> str:
    """Insert the keys of actions into a sentence, as in `{replica.wake} wakes it`.

    Call this when the sentence is shown, not earlier: a user may have rebound keys.
    """
    return _ID.sub(lambda found: shown_key(action_named(found[1])) or PALETTE, sentence)
