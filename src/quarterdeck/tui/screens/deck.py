"""The main screen: the list of replicas, and the one that is being worked with.

    Deck.changed -> frame (once per refresh) -> list, status line, pane

Below 60 columns one of the two is shown at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar
from uuid import UUID

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.changes import (
    Change,
    ChatChanged,
    ConnectionChanged,
    ListChanged,
    Noticed,
    ReplicaChanged,
    TranscriptChanged,
)
from quarterdeck.store.deck import Deck
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import Where, bindings, brief_keys
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.panes.replica import ReplicaPane, Tab
from quarterdeck.tui.panes.terminal import TerminalPane
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.text import one_line
from quarterdeck.tui.widgets.composer import Composer
from quarterdeck.tui.widgets.key_line import KeyLine
from quarterdeck.tui.widgets.replica_list import ReplicaList
from quarterdeck.tui.widgets.status_line import StatusLine
from quarterdeck.wire.replicas import ReplicaDetail, WorkspaceStatus

Command = Callable[[UUID], Awaitable[None]]
WELCOME = "No replicas yet.\nPress n to create one:\na sandbox with your\nrepository and an agent."


class DeckScreen(Screen[None]):
    """List, pane, status line and key line."""

    DEFAULT_CSS = """
    DeckScreen {
        & #body { height: 1fr; }
        & #side { width: 26; border-right: solid $border-blurred; }
        & #main { width: 1fr; }
        & #welcome { padding: 1 2; color: $text-muted; }
        & #banner { height: 1; background: $error-muted; color: $text-error; padding: 0 1; display: none; }
        &.-narrow #side { width: 1fr; border-right: none; }
        &.-narrow #main { display: none; }
        &.-narrow.in-pane #side { display: none; }
        &.-narrow.in-pane #main { display: block; }
        &.-wide #side { width: 34; }
    }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (120, "-wide")]
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.LIST), *bindings(Where.ANYWHERE)]
    AUTO_FOCUS = "ReplicaList"

    def __init__(self, deck: Deck, host: EmulatorHost, directory: Path | None) -> None:
        super().__init__()
        self._deck = deck
        self._host = host
        self._directory = directory
        self._pending: set[type[Change]] = set()
        self._folds: list[TranscriptChanged] = []
        self._scheduled = False
        self._pane_lock = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield StatusLine()
        yield Static(id="banner", markup=False)
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield ReplicaList(WELCOME)
            with Vertical(id="main"):
                yield Static(
                    "Choose a replica and press enter, or n for a new one.",
                    id="welcome",
                    markup=False,
                )
        yield KeyLine()

    def on_mount(self) -> None:
        self._stop_watching = self._deck.changed.watch(self._changed)
        self._show_frame({ListChanged, ConnectionChanged})

    def on_unmount(self) -> None:
        self._stop_watching()

    # what the store tells

    def _changed(self, change: Change) -> None:
        if isinstance(change, Noticed):
            self._notice(change)
            return
        pane = self.pane
        shown = pane.replica_id if pane else None
        match change:
            case TranscriptChanged(replica_id=replica_id):
                if replica_id != shown:
                    return
                self._folds.append(change)
            case ChatChanged(replica_id=replica_id) | ReplicaChanged(replica_id=replica_id):
                if replica_id != shown:
                    return
            case _:
                pass
        self._pending.add(type(change))
        if not self._scheduled:
            self._scheduled = True
            self.call_after_refresh(self._frame)

    async def _frame(self) -> None:
        self._scheduled = False
        pending, self._pending = self._pending, set()
        folds, self._folds = self._folds, []
        self._show_frame(pending)
        pane = self.pane
        if pane is None:
            return
        if {ChatChanged, ReplicaChanged} & pending:
            await pane.show_state()
        chat = pane.chat
        if chat is not None:
            for change in folds:
                if change.chat_id == chat.chat_id:
                    chat.take(change)

    def _show_frame(self, pending: set[type[Change]]) -> None:
        if {ListChanged, ConnectionChanged} & pending:
            states = self._deck.ordered()
            self.query_one(ReplicaList).show(states)
            self.query_one(StatusLine).show(self._deck.connection, states)
        if ConnectionChanged in pending:
            self._show_banner()
        self._show_keys()

    def _show_banner(self) -> None:
        banner = self.query_one("#banner", Static)
        problem = self._deck.connection.problem
        banner.display = problem is not None
        if problem is not None:
            banner.update(one_line(f"{problem} Nothing is lost: ctrl+r tries again now."))

    def _notice(self, notice: Noticed) -> None:
        self.app.notify(
            one_line(notice.text),
            title=one_line(notice.title),
            severity=notice.severity,
            markup=False,
        )

    # where the person is

    @property
    def pane(self) -> ReplicaPane | None:
        """The replica that is shown beside the list."""
        return next(iter(self.query(ReplicaPane)), None)

    @property
    def where(self) -> Where:
        """What has the focus, for help and the key line."""
        focused = self.focused
        if focused is None or isinstance(focused, ReplicaList):
            return Where.LIST
        if isinstance(focused, Composer):
            return Where.COMPOSER
        if any(isinstance(node, TerminalPane) for node in focused.ancestors_with_self):
            return Where.TERMINAL
        return Where.CHAT

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self._show_keys()

    def _show_keys(self) -> None:
        self.query_one(KeyLine).show(brief_keys(self.where))

    async def _show_replica(self, replica_id: UUID) -> ReplicaPane:
        # Cursor moves and a new replica may ask at once: one pane at a time is mounted.
        async with self._pane_lock:
            pane = self.pane
            if pane is None or pane.replica_id != replica_id:
                main = self.query_one("#main", Vertical)
                await main.remove_children()
                pane = ReplicaPane(self._deck, self._host, replica_id)
                await main.mount(pane)
        self._deck.look_at(replica_id)
        return pane

    @property
    def chosen(self) -> ReplicaState | None:
        """The replica under the cursor of the list."""
        selected = self.query_one(ReplicaList).selected
        return self._deck.replicas.get(selected) if selected else None

    @on(ReplicaList.Opened)
    async def _opened(self, event: ReplicaList.Opened) -> None:
        pane = await self._show_replica(event.replica_id)
        self.add_class("in-pane")
        pane.focus_tab()

    @on(ReplicaList.Highlighted)
    async def _highlighted(self, event: ReplicaList.Highlighted) -> None:
        pane = self.pane
        if pane is not None and pane.replica_id not in self._deck.replicas:
            await pane.remove()
        if event.replica_id is not None and not self.has_class("-narrow"):
            await self._show_replica(event.replica_id)

    @on(ChatPane.Left)
    def action_to_list(self) -> None:
        self.remove_class("in-pane")
        self.set_focus(self.query_one(ReplicaList))

    @on(TerminalPane.Left)
    async def _terminal_left(self, event: TerminalPane.Left) -> None:
        if event.to == "chat" and self.pane is not None:
            await self.pane.show("chat")
        else:
            self.action_to_list()

    # actions

    async def action_open(self) -> None:
        self.query_one(ReplicaList).action_open()

    async def action_show(self, tab: Tab) -> None:
        state = self.chosen
        if state is None:
            return
        pane = await self._show_replica(state.id)
        self.add_class("in-pane")
        await pane.show(tab)

    async def action_write(self) -> None:
        await self.action_show("chat")

    @work
    async def action_new_replica(self) -> None:
        from quarterdeck.tui.forms.create import CreateScreen

        made = await self.app.push_screen_wait(CreateScreen(self._deck, self._directory))
        if isinstance(made, ReplicaDetail):
            state = self._deck.add(made)
            listing = self.query_one(ReplicaList)
            listing.show(self._deck.ordered())
            listing.select(state.id)
            pane = await self._show_replica(state.id)
            self.add_class("in-pane")
            pane.focus_tab()

    def action_interrupt(self) -> None:
        state = self.chosen
        chat = self.pane.chat if self.pane else None
        if state is None:
            return
        if chat is not None and chat.replica_id == state.id:
            chat.interrupt()

    def action_sleep(self) -> None:
        if (state := self.chosen) is not None:
            self._command(state, "Put to sleep", self._deck.sleep)

    def action_wake(self) -> None:
        if (state := self.chosen) is None:
            return
        if state.status in {WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING}:
            self.notify(f"{one_line(state.name)} is awake.", markup=False)
            return
        self._command(state, "Wake", self._deck.wake)

    @work
    async def action_delete(self) -> None:
        from quarterdeck.tui.screens.confirm import ConfirmScreen

        state = self.chosen
        if state is None:
            return
        added, removed = state.changed_lines
        changes = f", with +{added} -{removed} changed lines" if added or removed else ""
        sure = await self.app.push_screen_wait(
            ConfirmScreen(
                f"Delete {one_line(state.name)}?",
                f"Its sandbox, files{changes}, terminals and history go for good. "
                "Your own checkout is not touched.",
                "Delete",
            )
        )
        if sure:
            self._command(state, "Delete", self._deck.delete)

    @work
    async def _command(self, state: ReplicaState, verb: str, command: Command) -> None:
        try:
            await command(state.id)
        except ClientError as error:
            self.notify(
                one_line(f"{error} {error.next_step}"),
                title=f"{verb}: {one_line(state.name)}",
                severity="error",
                markup=False,
            )

    def action_reconnect(self) -> None:
        self._deck.reconnect_now()

    def action_help(self) -> None:
        from quarterdeck.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.where))

    def action_leave(self) -> None:
        self.app.exit(0)
