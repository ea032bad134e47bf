"""The right side of the main screen: one replica's head line, its chat and its terminals."""

import asyncio
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.store.app_state import AppState
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.panes.tabs import CHAT, TABS, TabPane, kind_of
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.tui.widgets.lines import HeadLine, Note
from quarterdeck.tui.widgets.tab_bar import Switcher, TabBar
from quarterdeck.wire.replicas import WorkspaceStatus


class ReplicaPane(Vertical):
    """One replica. A tab's pane is created when it is first shown, and kept."""

    DEFAULT_CSS = """
    ReplicaPane {
        & Switcher { height: 1fr; }
        & #unisolated { height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none; }
    }
    """

    def __init__(self, app_state: AppState, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__()
        self._app_state = app_state
        self._host = host
        self.replica_id = replica_id
        self.tab = CHAT
        self._chat_made = asyncio.Event()
        self._tabs = Switcher(initial="note")
        self.parts_ready = asyncio.Event()
        """Set when its first parts exist: until then nothing else may show or remove any."""

    def compose(self) -> ComposeResult:
        yield HeadLine()
        yield Static(id="unisolated", markup=False)
        yield TabBar(id="tabs")
        with self._tabs:
            yield Note("reading …", id="note")

    async def on_mount(self) -> None:
        try:
            await self.show_state()
        finally:
            self.parts_ready.set()

    @property
    def chat(self) -> ChatPane | None:
        """The chat, once the replica's record has been read."""
        return next((one for one in self._tabs.children if isinstance(one, ChatPane)), None)

    @property
    def panes(self) -> list[TabPane]:
        """The panes that were shown, besides the chat."""
        return [one for one in self._tabs.children if isinstance(one, TabPane)]

    def pane(self, name: str) -> TabPane | None:
        """Return a tab's pane, once it was shown."""
        return next((pane for pane in self.panes if pane.id == name), None)

    async def show_state(self) -> None:
        """Show the replica as the store has it."""
        state = self._app_state.replicas.get(self.replica_id)
        if state is None or not self.query(HeadLine):  # closed before its parts were created
            return
        self.query_one(HeadLine).show(state)
        self.query_one("#tabs", TabBar).show(TABS, self.tab)
        reason = self.query_one("#unisolated", Static)
        reason.display = state.unisolated is not None
        reason.update(f"Not isolated: {one_line(state.unisolated or '')}")
        for pane in self.panes:
            # A hidden one is updated when it is shown again; only terminals,
            # which end and start with their engine, follow it all the time.
            if pane.id == self.tab or pane.follows_hidden:
                pane.show_state()
        first = state.chat_to_show
        if self.chat is not None:
            self.chat.show_state()
        elif first is not None:
            pane = ChatPane(self._app_state, self.replica_id, first.id)
            pane.id = CHAT
            if await self._tabs.bring(pane, show=self.tab == CHAT):
                self._chat_made.set()

    def come_online(self) -> None:
        """Note that the connection is back."""
        if self.chat is not None:
            self.chat.come_online()
        for pane in self.panes:
            pane.come_online()

    async def show(self, tab: str) -> None:
        """Show a tab, and focus it."""
        before, self.tab = self.pane(self.tab), tab
        switcher = self._tabs
        kind = kind_of(tab)
        if kind is not None and self.pane(tab) is None:
            pane = kind.make(self._app_state, self._host, self.replica_id)
            pane.id = tab
            if not await switcher.bring(pane):
                return
        switcher.current = tab if switcher.query(f"#{tab}") else "note"
        self.query_one("#tabs", TabBar).show(TABS, self.tab)
        now = self.pane(tab)
        if before is not None and before is not now:
            before.hidden()
        if now is not None:
            now.shown()
            now.show_state()
        self.focus_tab()

    def focus_tab(self) -> None:
        """Focus the visible part, as soon as it exists."""
        self.workers.cancel_group(self, "focus")
        if (pane := self.pane(self.tab)) is not None:
            pane.take_keys()
        elif self.chat is not None:
            self.screen.set_focus(self._chat_target(self.chat))
        else:
            self.screen.set_focus(self.query_one("#note", Note))
            self._focus_chat()

    @work(group="focus")
    async def _focus_chat(self) -> None:
        """Hold keys until the replica's record, and so the chat, is there."""
        with hold_keys(self, "Reading the chat"):
            await self._chat_made.wait()
            if self.chat is not None:
                self.screen.set_focus(self._chat_target(self.chat))

    @on(TabPane.Mentioned)
    async def _mentioned(self, event: TabPane.Mentioned) -> None:
        event.stop()
        if self.chat is not None:
            self.chat.composer.insert_word(event.text)
            if event.upload is not None:
                self.chat.messages.attach_upload(*event.upload)
            await self.show(CHAT)
            self.screen.set_focus(self.chat.writing_target)

    def _chat_target(self, chat: ChatPane) -> Widget:
        state = self._app_state.replicas.get(self.replica_id)
        if state is not None and state.status == WorkspaceStatus.ERROR:
            # There w retries, as the note above the composer says.
            return chat.transcript
        return chat.writing_target

    @on(TabBar.Chosen, "#tabs")
    async def _tab_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        await self.show(event.key)
