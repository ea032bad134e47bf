"""Every action of the cockpit: its id, its key, and one line for help.

The same table makes the bindings, the bottom line, the help and the palette, so none of them can
say something the others do not. A person may give an action other keys in the configuration file
(`quarterdeck.tui.keymap`); `keys_of`, `shown_key` and `which` tell the keys as they are then.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from quarterdeck.tui.actions import (
    anywhere,
    automations,
    canvas,
    changes,
    chat,
    environments,
    exec,
    files,
    forms,
    hooks,
    info,
    listing,
    reading,
    settings,
    terminal,
)
from quarterdeck.tui.actions.current import keys_of, shown_key, shown_keys
from quarterdeck.tui.actions.model import OWN, Action, Where

if TYPE_CHECKING:
    from textual.binding import Binding

__all__ = [
    "ACTIONS",
    "BY_STATE",
    "Action",
    "Where",
    "bindings",
    "brief_keys",
    "eager_bindings",
    "keys_of",
    "pressed",
    "prompt_bindings",
    "shown_key",
    "shown_keys",
    "which",
]

ACTIONS: dict[Where, tuple[Action, ...]] = {
    **listing.PLACES,
    **chat.PLACES,
    **terminal.PLACES,
    **forms.PLACES,
    **reading.PLACES,
    **files.PLACES,
    **canvas.PLACES,
    **hooks.PLACES,
    **environments.PLACES,
    **info.PLACES,
    **changes.PLACES,
    **exec.PLACES,
    **automations.PLACES,
    **settings.PLACES,
    **anywhere.PLACES,
}


BY_STATE = frozenset({"replica.sleep", "replica.wake"})
"""What the bottom line offers only where it does something: it depends on a replica's state."""


def bindings(where: Where) -> "list[Binding]":
    """Bindings of what whoever binds them carries out itself: a screen, or a pane."""
    return [
        _binding(action, action.method, priority=False)
        for action in ACTIONS[where]
        if action.method and not action.method.startswith(OWN)
    ]


def prompt_bindings(where: Where) -> "list[Binding]":
    """The same for a widget of the screen: carried out before the next key is looked at.

    So what is typed ahead goes where the key moved the focus to.
    """
    return [
        _binding(action, _of_screen(action.method), priority=True)
        for action in ACTIONS[where]
        if action.method
    ]


def eager_bindings(where: Where) -> "list[Binding]":
    """Bindings of a part of the screen that carries them out itself, before the next key."""
    return [
        _binding(action, action.method.removeprefix(OWN), priority=True)
        for action in ACTIONS[where]
        if action.method
    ]


def _binding(action: Action, method: str, *, priority: bool) -> "Binding":
    from textual.binding import Binding  # the table is also read where nothing is drawn

    keys = action.keys
    return Binding(keys, method, action.help, show=False, priority=priority, id=action.id)


def _of_screen(method: str) -> str:
    if method.startswith(OWN):
        return method.removeprefix(OWN)
    return method if method.startswith(("screen.", "app.")) else f"screen.{method}"


def brief_keys(where: Where, without: Collection[str] = frozenset()) -> tuple[tuple[str, str], ...]:
    """Pairs for the bottom line; what has no key is not there, nor the actions of these ids."""
    told = (action for action in ACTIONS[where] if action.brief and action.id not in without)
    return tuple((key, action.brief) for action in told if (key := shown_key(action)))


def which(where: Where, key: str) -> str:
    """The id of what a key means in a place, empty for nothing."""
    return next((one.id for one in ACTIONS[where] if key in keys_of(one)), "")


def pressed(key: str, action: Action) -> bool:
    """Whether a key is one of an action's, for widgets that look at keys themselves."""
    return key in keys_of(action)
