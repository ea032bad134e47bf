"""What the palette offers: what can be done now where the person was, replicas, pages."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from textual.app import App
from textual.dom import DOMNode
from textual.screen import Screen

from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import ACTIONS, Action, Where, keys_of, shown_key
from quarterdeck.tui.actions.model import AROUND, OWN
from quarterdeck.tui.marks import MARKS
from quarterdeck.tui.screens.deeds import ARCHIVE, INTERRUPT, SLEEP, WAKE, Deed
from quarterdeck.tui.screens.pages import PAGES
from quarterdeck.tui.text import one_line
from quarterdeck.tui.widgets.placed import place_of

SELF = "app.palette"
PAGE = "page."
"""Begins the ids of actions that open a page; the page's name follows."""
DEEDS: dict[str, Deed] = {
    "chat.interrupt": INTERRUPT,
    "replica.sleep": SLEEP,
    "replica.wake": WAKE,
    "replica.archive": ARCHIVE,
}
"""Actions that make no sense for a replica in some states."""
OF_A_REPLICA = ("replica.", "chat.", "tab.")
"""Actions with such ids need a replica, but for `replica.new`."""


@dataclass(frozen=True)
class Entry:
    """One line. One of `action` (which `node` carries out), `replica_id` and `page` says what it does."""

    text: str
    note: str = ""
    kind: str = ""
    action: Action | None = None
    node: DOMNode | None = None
    replica_id: UUID | None = None
    page: str = ""


def entries(
    screen: Screen[object], states: Iterable[ReplicaState], meant: list[ReplicaState]
) -> list[Entry]:
    """Everything there is to choose from. `meant` are the replicas that commands are for."""
    return [*_actions(screen, meant), *_pages(), *_replicas(states)]


def _actions(screen: Screen[object], meant: list[ReplicaState]) -> Iterator[Entry]:
    told: set[str] = {SELF}
    for where in _places(screen):
        for action in ACTIONS[where]:
            if action.id in told or _opens_page(action) or not _makes_sense(action, meant):
                continue
            node = _who_does(action, screen, own=where == _where(screen))
            if node is not None:
                told.add(action.id)
                yield Entry(action.help, shown_key(action), action=action, node=node)


def _where(screen: Screen[object]) -> Where:
    where = getattr(screen, "where", None)
    return where if isinstance(where, Where) else place_of(screen.focused, Where.ANYWHERE)


def _places(screen: Screen[object]) -> list[Where]:
    """Where the person is; then what the screen itself can do."""
    here = _where(screen)
    around = [*AROUND.get(here, ()), Where.LIST, Where.TABS, Where.PAGE, Where.ANYWHERE]
    return list(dict.fromkeys([here, *around]))


def _makes_sense(action: Action, meant: list[ReplicaState]) -> bool:
    if action.id == "replica.new" or not action.id.startswith(OF_A_REPLICA):
        return True
    deed = DEEDS.get(action.id)
    if deed is not None:
        return any(not deed.unfit(state) for state in meant)
    return bool(meant)


def _who_does(action: Action, screen: Screen[object], *, own: bool) -> DOMNode | None:
    """What carries the action out from here, None when nothing does."""
    if not action.method:
        # The widget with the focus does it when it gets the key.
        return screen.focused if own and action.brief and keys_of(action) else None
    name = action.method.partition("(")[0]
    if name.startswith(OWN):
        return screen.focused if own else None
    if name.startswith("app."):
        return cast("App[Any]", screen.app)
    if name.startswith("screen."):
        return screen if _has(screen, name.removeprefix("screen.")) else None
    around: list[DOMNode] = screen.focused.ancestors_with_self if screen.focused else [screen]
    return next((node for node in around if _has(node, name)), None)


def _has(node: DOMNode, name: str) -> bool:
    return hasattr(node, f"action_{name}") and node.check_action(name, ()) is True


def _opens_page(action: Action) -> bool:
    return action.id.startswith(PAGE) and action.id.removeprefix(PAGE) in PAGES


def _pages() -> Iterator[Entry]:
    """The full screens, from wherever the person is."""
    opening = {action.id: action for actions in ACTIONS.values() for action in actions}
    for name in PAGES:
        action = opening.get(f"{PAGE}{name}")
        yield Entry(
            action.help if action else name.capitalize(),
            shown_key(action) if action else "",
            "go to",
            page=name,
        )


def _replicas(states: Iterable[ReplicaState]) -> Iterator[Entry]:
    for state in states:
        mark = MARKS[state.attention]
        yield Entry(one_line(state.name), f"{mark.sign} {mark.word}", "go to", replica_id=state.id)
