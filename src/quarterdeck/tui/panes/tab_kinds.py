"""The tabs of a replica, in their order; the digits of their labels are their keys.

What a tab needs is loaded when it is first looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from quarterdeck.store.deck import Deck
from quarterdeck.tui.panes.tabs import TabPane
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.widgets.tab_bar import Tab

CHAT = "chat"
"""The first tab; its pane is made with the replica's pane."""


@dataclass(frozen=True)
class TabKind:
    """`name` is what actions call it; `make` returns its pane."""

    name: str
    label: str
    make: Callable[[Deck, EmulatorHost, UUID], TabPane]


def _terminal(deck: Deck, host: EmulatorHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.terminal import TerminalPane

    return TerminalPane(deck, host, replica_id)


def _files(deck: Deck, host: EmulatorHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.files.pane import FilesPane

    return FilesPane(deck, replica_id)


def _canvas(deck: Deck, host: EmulatorHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.canvas.pane import CanvasPane

    return CanvasPane(deck, replica_id)


def _hooks(deck: Deck, host: EmulatorHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.hooks.pane import HooksPane

    return HooksPane(deck, replica_id)


def _changes(deck: Deck, host: EmulatorHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.changes import ChangesPane

    return ChangesPane(deck, replica_id)


def _exec(deck: Deck, host: EmulatorHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.exec import ExecPane

    return ExecPane(deck, replica_id)


KINDS = (
    TabKind("terminal", "Terminal", _terminal),
    TabKind("changes", "Changes", _changes),
    TabKind("files", "Files", _files),
    TabKind("canvas", "Canvas", _canvas),
    TabKind("hooks", "Hooks", _hooks),
    TabKind("exec", "Exec", _exec),
)

TABS = (
    Tab(CHAT, "1 Chat", "1"),
    *(Tab(kind.name, f"{at} {kind.label}", str(at)) for at, kind in enumerate(KINDS, 2)),
)


def kind_of(name: str) -> TabKind | None:
    """The kind of a tab behind the chat."""
    return next((kind for kind in KINDS if kind.name == name), None)
