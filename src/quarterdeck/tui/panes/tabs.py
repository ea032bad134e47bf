"""Tabs of a replica.

The tabs of a replica, in their order; the digits of their labels are their keys.

What a tab needs is loaded when it is first shown.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from uuid import UUID

from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from quarterdeck.store.app_state import AppState
from quarterdeck.tui.actions import KeyContext, bindings
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.widgets.tab_bar import Tab

if TYPE_CHECKING:
    from quarterdeck.tui.terminal.host import EmulatorHost

GetHost = Callable[[], "EmulatorHost"]
"""Returns what draws terminals, which is created for the first one."""


class TabPane(Vertical, HasKeyContext):
    """Created when it is first shown, and kept as long as its replica is shown.

    While another tab is shown it must cost nothing: no timers, no reads.
    """

    follows_hidden: ClassVar[bool] = False
    """Whether `show_state` is also called while another tab is shown."""

    class Left(Message):
        """The user goes elsewhere: to the list, or to another tab."""

        def __init__(self, to: str) -> None:
            super().__init__()
            self.to = to

    class Mentioned(Message):
        """Text for the composer of the chat, which is then shown.

        `upload` is a pending canvas upload, by name and id, to attach to the message.
        """

        def __init__(self, text: str, upload: tuple[str, str] | None = None) -> None:
            super().__init__()
            self.text = text
            self.upload = upload

    def __init__(self, app_state: AppState, replica_id: UUID) -> None:
        super().__init__()
        self._app_state = app_state
        self.replica_id = replica_id

    @property
    def keys_target(self) -> Widget:
        """The widget that gets the focus when the tab is chosen."""
        raise NotImplementedError

    def take_keys(self) -> None:
        """Focus the visible part, as soon as it exists."""
        self.screen.set_focus(self.keys_target)

    def show_state(self) -> None:
        """Show the replica as the store has it. Called once a frame when it changed, while shown."""

    def come_online(self) -> None:
        """Note that the connection is back: what could not be read is read now, if it is shown."""

    def shown(self) -> None:
        """Note that the tab is shown from now on."""

    def hidden(self) -> None:
        """Note that another tab is shown."""


CHAT = "chat"
"""The first tab; its pane is created with the replica's pane."""


class TabKind(NamedTuple):
    """`name` is used by actions; `make` returns its pane."""

    name: str
    label: str
    make: Callable[[AppState, GetHost, UUID], TabPane]


def _terminal(app_state: AppState, host: GetHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.terminal import TerminalPane

    return TerminalPane(app_state, host(), replica_id)


def _files(app_state: AppState, host: GetHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.files import FilesPane

    return FilesPane(app_state, replica_id)


def _canvas(app_state: AppState, host: GetHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.canvas import CanvasPane

    return CanvasPane(app_state, replica_id)


def _hooks(app_state: AppState, host: GetHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.hooks import HooksPane

    return HooksPane(app_state, replica_id)


def _changes(app_state: AppState, host: GetHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.changes import ChangesPane

    return ChangesPane(app_state, replica_id)


def _exec(app_state: AppState, host: GetHost, replica_id: UUID) -> TabPane:
    from quarterdeck.tui.panes.exec import ExecPane

    return ExecPane(app_state, replica_id)


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


def tabs_beside(shown: str, *, chat_waits: bool) -> tuple[Tab, ...]:
    """Return the tabs; while another one is shown, the chat's says that it waits for the user."""
    if not chat_waits or shown == CHAT:
        return TABS
    return (Tab(CHAT, "1 Chat ▲", "1▲", needs_you=True), *TABS[1:])


def kind_of(name: str) -> TabKind | None:
    """Return the kind of a tab after the chat."""
    return next((kind for kind in KINDS if kind.name == name), None)


def pane_bindings(where: KeyContext) -> list[Binding]:
    """Return bindings for the focused part, handled before the next key.

    They belong to the part and not to its pane, or they would be taken from a field next to it.
    """
    return [
        Binding(
            binding.key, _of_pane(binding.action), binding.description, show=False,
            priority=True, id=binding.id,
        )
        for binding in bindings(where)
    ]  # fmt: skip


def _of_pane(action: str) -> str:
    return action if action.startswith(("screen.", "app.")) else f"pane({action!r})"


class PaneKeys:
    """Mixin for a part that binds `pane_bindings`."""

    async def action_pane(self, action: str) -> None:
        """Have the pane carry an action out."""
        assert isinstance(self, Widget)
        pane = next(node for node in self.ancestors if isinstance(node, TabPane))
        await pane.run_action(action)


class ReadingTab(TabPane):
    """Reads when it is shown, and when the connection is back while it is shown.

    Subclasses implement the reading (`read`), and call `moved_on` to check whether to read again.
    """

    def __init__(self, app_state: AppState, replica_id: UUID) -> None:
        super().__init__(app_state, replica_id)
        self.is_shown = False
        self._state: tuple[object, ...] | None = None

    def read(self) -> None:
        """Start reading the content."""
        raise NotImplementedError

    def shown(self) -> None:
        self.is_shown = True
        self.read()

    def hidden(self) -> None:
        self.is_shown = False

    def come_online(self) -> None:
        if self.is_shown:
            self.read()

    def moved_on(self) -> bool:
        """Return whether the replica's state has changed since the last call, and the tab is shown.

        The end of the turn, or the new state, reports changes by an agent or a wake-up.
        """
        state = self._app_state.replicas.get(self.replica_id)
        now = (state.status, state.works) if state else None
        before, self._state = self._state, now
        return self.is_shown and before not in (None, now)
