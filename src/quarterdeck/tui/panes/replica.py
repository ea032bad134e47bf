"""What stands beside the list: one replica's head line, its chat and its terminals."""

import asyncio
from uuid import UUID

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.store.deck import Deck
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.panes.tab_kinds import CHAT, TABS, kind_of
from quarterdeck.tui.panes.tabs import TabPane
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys
from quarterdeck.tui.widgets.head_line import HeadLine
from quarterdeck.tui.widgets.note import Note
from quarterdeck.tui.widgets.switcher import Switcher
from quarterdeck.tui.widgets.tab_bar import TabBar
from quarterdeck.wire.replicas import WorkspaceStatus


class ReplicaPane(Vertical):
    """One replica. A tab's pane is made when it is first looked at, and stays."""

    DEFAULT_CSS = """
    ReplicaPane {
        & Switcher { height: 1fr; }
        & #unisolated { height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none; }
    }
    """

    def __init__(self, deck: Deck, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__()
        self._deck = deck
        self._host = host
        self.replica_id = replica_id
        self.tab = CHAT
        self._focus_wanted = False
        self._tabs = Switcher(initial="note")
        self.made = asyncio.Event()
        """Set when its first parts are there: nobody else is to show or remove any before."""

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
            self.made.set()

    @property
    def chat(self) -> ChatPane | None:
        """The chat, once the replica's record is here."""
        return next((one for one in self._tabs.children if isinstance(one, ChatPane)), None)

    @property
    def panes(self) -> list[TabPane]:
        """What was looked at, beside the chat."""
        return [one for one in self._tabs.children if isinstance(one, TabPane)]

    def pane(self, name: str) -> TabPane | None:
        """A tab's pane, once it was looked at."""
        return next((pane for pane in self.panes if pane.id == name), None)

    async def show_state(self) -> None:
        """Shows the replica as the store has it."""
        state = self._deck.replicas.get(self.replica_id)
        if state is None:
            return
        self.query_one(HeadLine).show(state)
        self.query_one("#tabs", TabBar).show(TABS, self.tab)
        reason = self.query_one("#unisolated", Static)
        reason.display = state.unisolated is not None
        reason.update(f"Not isolated: {one_line(state.unisolated or '')}")
        for pane in self.panes:
            # A hidden one is brought up to date when it is looked at again; only terminals,
            # which end and begin with their engine, follow it all the time.
            if pane.id == self.tab or pane.follows_hidden:
                pane.show_state()
        first = state.chat_to_show
        if self.chat is not None:
            self.chat.show_state()
        elif first is not None:
            pane = ChatPane(self._deck, self.replica_id, first.id)
            pane.id = CHAT
            if await self._tabs.bring(pane, show=self.tab == CHAT) and self._focus_wanted:
                self.focus_tab()

    def come_online(self) -> None:
        """The line is back."""
        if self.chat is not None:
            self.chat.come_online()
        for pane in self.panes:
            pane.come_online()

    async def show(self, tab: str) -> None:
        """Shows a tab, and gives it the keys."""
        before, self.tab = self.pane(self.tab), tab
        switcher = self._tabs
        kind = kind_of(tab)
        if kind is not None and self.pane(tab) is None:
            made = kind.make(self._deck, self._host, self.replica_id)
            made.id = tab
            if not await switcher.bring(made):
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
        """Gives the keys to what is shown, as soon as it is there."""
        if (pane := self.pane(self.tab)) is not None:
            pane.take_keys()
            return
        self._focus_wanted = self.chat is None
        if self.chat is None:
            self.screen.set_focus(self.query_one("#note", Note))
            return
        self.screen.set_focus(self._chat_target(self.chat))
        release_keys(self)

    @on(TabPane.Mentioned)
    async def _mentioned(self, event: TabPane.Mentioned) -> None:
        event.stop()
        if self.chat is not None:
            self.chat.composer.insert_word(event.text)
            if event.upload is not None:
                self.chat.attach_upload(*event.upload)
            await self.show(CHAT)
            self.screen.set_focus(self.chat.writing_target)

    def _chat_target(self, chat: ChatPane) -> Widget:
        state = self._deck.replicas.get(self.replica_id)
        if state is not None and state.status == WorkspaceStatus.ERROR:
            # There w tries again, as the note above the composer says.
            return chat.transcript
        return chat.writing_target

    @on(TabBar.Chosen, "#tabs")
    async def _tab_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        await self.show(event.key)
