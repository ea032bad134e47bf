"""The main screen: the list of replicas, and the one that is being worked with.

    Deck.changed -> Frame (once per refresh) -> list, status line, pane

Below 60 columns one of the two is shown at a time: the one that has the focus.
"""

import asyncio
from pathlib import Path
from time import monotonic
from typing import ClassVar
from uuid import UUID

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.store.changes import Change, Noticed, ReplicaGone
from quarterdeck.store.connection import Phase
from quarterdeck.store.deck import Deck
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import Where, bindings, brief_keys
from quarterdeck.tui.panes.replica import ReplicaPane, TabName
from quarterdeck.tui.panes.terminal import TerminalPane
from quarterdeck.tui.screens.commands import CommandScreen
from quarterdeck.tui.screens.frame import Frame
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import drop_keys, hold_keys, release_keys
from quarterdeck.tui.widgets.composer import Composer
from quarterdeck.tui.widgets.key_line import KeyLine
from quarterdeck.tui.widgets.queue_view import QueueView
from quarterdeck.tui.widgets.replica_list import ReplicaList
from quarterdeck.tui.widgets.status_line import StatusLine

WELCOME = "No replicas yet.\nPress n to create one:\na sandbox with your\nrepository and an agent."
RESTING = 0.12
"""Seconds between two moves of the cursor below which it is on its way."""
CHOOSE = "Choose a replica and press enter, or n for a new one."


class DeckScreen(CommandScreen):
    """List, pane, status line and key line."""

    DEFAULT_CSS = """
    DeckScreen {
        & #body { height: 1fr; }
        & #side { width: 26; border-right: solid $panel-lighten-2; }
        & #main { width: 1fr; }
        & #words { padding: 1 2; color: $text-muted; }
        & #banner {
            height: auto;
            max-height: 3;
            background: $error-muted;
            color: $text-error;
            padding: 0 1;
            display: none;
        }
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
        super().__init__(deck, directory)
        self._host = host
        self._frame = Frame()
        self._scheduled = False
        self._pane_lock = asyncio.Lock()
        self._moved_at = 0.0

    def compose(self) -> ComposeResult:
        yield StatusLine()
        yield Static(id="banner", markup=False)
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield ReplicaList()
            with Vertical(id="main"):
                yield Static(CHOOSE, id="words", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        self._stop_watching = self._deck.changed.watch(self._changed)
        self._rest = self.set_interval(RESTING, self._show_selected, pause=True)
        self._show_list()
        self._show_keys()

    def on_unmount(self) -> None:
        self._stop_watching()

    # what the store tells

    def _changed(self, change: Change) -> None:
        if isinstance(change, Noticed):
            self._notice(change)
            return
        pane = self.pane
        if not self._frame.add(change, pane.replica_id if pane else None):
            return
        if not self._scheduled:
            self._scheduled = True
            self.call_after_refresh(self._show_frame)

    async def _show_frame(self) -> None:
        self._scheduled = False
        frame, self._frame = self._frame, Frame()
        for gone in frame.gone:
            await self._say_gone(gone)
        if frame.listing or frame.connection:
            self._show_list()
        if frame.connection:
            self._show_banner()
        pane = self.pane
        if pane is None:
            return
        if frame.replica or frame.connection:
            await pane.show_state()
        if frame.connection and self._deck.online:
            pane.come_online()
        chat = pane.chat
        if chat is not None:
            for change in frame.folds:
                if change.chat_id == chat.chat_id:
                    chat.take(change)

    def _show_list(self) -> None:
        states = self._deck.ordered()
        self.listing.empty = WELCOME if self._deck.listed else ""
        self.listing.show(states)
        self.query_one(StatusLine).show(self._deck.connection, states)

    def _show_banner(self) -> None:
        banner = self.query_one("#banner", Static)
        connection = self._deck.connection
        banner.display = connection.problem is not None
        if connection.problem is None:
            return
        comfort = "Nothing typed is lost: ctrl+r tries again now."
        if connection.phase == Phase.REFUSED:
            comfort = "ctrl+r tries again."
        banner.update(one_line(f"{connection.problem} {comfort}"))

    async def _say_gone(self, gone: ReplicaGone) -> None:
        pane = self.pane
        if pane is None or pane.replica_id != gone.replica_id:
            return
        name = one_line(gone.name)
        if gone.elsewhere:
            self.tell("warning", name, "It was deleted elsewhere, with all its files.")
        if self._inside(pane) or self.focused is None:
            self.action_to_list()
        await self._replace(Static(f"{name} was deleted.", id="words", markup=False))

    def _notice(self, notice: Noticed) -> None:
        self.tell(notice.severity, notice.title, notice.text)

    # where the person is

    @property
    def listing(self) -> ReplicaList:
        return self.query_one(ReplicaList)

    @property
    def pane(self) -> ReplicaPane | None:
        """The replica that is shown beside the list."""
        return next(iter(self.query(ReplicaPane)), None)

    @property
    def chosen(self) -> ReplicaState | None:
        """The replica that keys mean: the one worked in, else the one under the cursor."""
        pane = self.pane
        if pane is not None and self._inside(pane):
            return self._deck.replicas.get(pane.replica_id)
        selected = self.listing.selected
        return self._deck.replicas.get(selected) if selected else None

    def _inside(self, pane: Widget) -> bool:
        return self.focused is not None and pane in self.focused.ancestors

    @property
    def where(self) -> Where:
        """What has the focus, for help and the key line."""
        focused = self.focused
        match focused:
            case None | ReplicaList():
                return Where.LIST
            case Composer():
                return Where.COMPOSER
            case QueueView():
                return Where.QUEUE
            case _:
                pass
        pane = next((n for n in focused.ancestors if isinstance(n, TerminalPane)), None)
        if pane is None:
            return Where.CHAT
        return Where.TERMINAL if pane.live else Where.NO_TERMINAL

    def watch_focused(self, focused: Widget | None) -> None:
        """In a narrow window the part with the focus is the one shown."""
        if focused is not None:
            self.set_class(not isinstance(focused, ReplicaList), "in-pane")
        elif self.is_mounted:
            self.call_after_refresh(self._find_focus)
        if self.is_mounted:
            self._show_keys()

    def _find_focus(self) -> None:
        """Nothing has the keys, and no other window does: the list takes them."""
        app_focus: bool = self.app.app_focus
        if self.focused is None and self.is_current and app_focus:
            self.set_focus(self.listing)

    @on(TerminalPane.Changed)
    def _show_keys(self) -> None:
        self.query_one(KeyLine).show(brief_keys(self.where))

    async def _replace(self, content: Widget) -> None:
        main = self.query_one("#main", Vertical)
        # One frame for both, and none of a widget that has left the screen already.
        with self.app.batch_update():
            await main.remove_children()
            await main.mount(content)

    async def show_replica(self, replica_id: UUID) -> ReplicaPane:
        """The pane of a replica, made if another one is shown."""
        # Cursor moves and a new replica may ask at once: one pane at a time is mounted.
        async with self._pane_lock:
            pane = self.pane
            if pane is None or pane.replica_id != replica_id:
                pane = ReplicaPane(self._deck, self._host, replica_id)
                await self._replace(pane)
        self._deck.look_at(replica_id)
        return pane

    @on(ReplicaList.Opened)
    async def _opened(self, event: ReplicaList.Opened) -> None:
        await self._open(event.replica_id)

    async def _open(self, replica_id: UUID) -> None:
        hold_keys(self)
        pane = await self.show_replica(replica_id)
        self.add_class("in-pane")
        pane.focus_tab()

    @on(ReplicaList.Highlighted)
    async def _highlighted(self, event: ReplicaList.Highlighted) -> None:
        replica_id = event.replica_id
        if replica_id != self.listing.selected or self.has_class("-narrow"):
            return
        if replica_id is None:
            await self._replace(Static(CHOOSE, id="words", markup=False))
            return
        now = monotonic()
        if now - self._moved_at < RESTING:
            # A key is held down: the pane waits for the cursor to rest.
            self._rest.reset()
            self._rest.resume()
        else:
            await self._show_selected()
        self._moved_at = now

    async def _show_selected(self) -> None:
        self._rest.pause()
        selected, pane = self.listing.selected, self.pane
        if selected is None or self.has_class("-narrow") or selected not in self._deck.replicas:
            return
        if pane is None or not self._inside(pane):
            await self.show_replica(selected)

    @on(TerminalPane.Left)
    async def _terminal_left(self, event: TerminalPane.Left) -> None:
        if event.to == "chat" and self.pane is not None:
            await self.pane.show("chat")
        else:
            self.action_to_list()

    # actions that move the focus; those that change a replica are in the base class

    def action_to_list(self) -> None:
        pane = self.pane
        self.set_focus(self.listing)
        if pane is not None:
            self.listing.select(pane.replica_id)
        release_keys(self)

    async def action_open(self) -> None:
        if (state := self.chosen) is not None:
            await self._open(state.id)

    async def action_show(self, tab: TabName) -> None:
        if (state := self.chosen) is None:
            return
        hold_keys(self)
        pane = await self.show_replica(state.id)
        self.add_class("in-pane")
        await pane.show(tab)

    async def action_write(self) -> None:
        chat = self.pane.chat if self.pane else None
        if chat is not None and self._inside(chat):
            self.set_focus(chat.composer)
        else:
            await self.action_show("chat")

    def action_to_transcript(self) -> None:
        if (chat := self.pane.chat if self.pane else None) is not None:
            self.set_focus(chat.transcript)

    def action_to_queue(self) -> None:
        if (chat := self.pane.chat if self.pane else None) is not None:
            self.set_focus(chat.queue if chat.queue.actionable else chat.transcript)

    def action_next_part(self) -> None:
        if (chat := self.pane.chat if self.pane else None) is not None:
            self.set_focus(chat.queue if chat.queue.actionable else chat.composer)

    def on_app_blur(self, _: events.AppBlur) -> None:
        drop_keys(self)
