"""What stands beside the list: one replica's head line, its chat and its terminals."""

from typing import Literal
from uuid import UUID

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Static

from quarterdeck.store.deck import Deck
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.panes.terminal import TerminalPane
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys
from quarterdeck.tui.widgets.head_line import HeadLine
from quarterdeck.tui.widgets.note import Note
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar
from quarterdeck.wire.replicas import WorkspaceStatus

TabName = Literal["chat", "terminal"]
TABS = (Tab("chat", "1 Chat"), Tab("terminal", "2 Terminal"))


class ReplicaPane(Vertical):
    """One replica. Its terminals are opened when they are first looked at, and stay."""

    DEFAULT_CSS = """
    ReplicaPane {
        & ContentSwitcher { height: 1fr; }
        & #unisolated { height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none; }
    }
    """

    def __init__(self, deck: Deck, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__()
        self._deck = deck
        self._host = host
        self.replica_id = replica_id
        self.tab: TabName = "chat"
        self._focus_wanted = False

    def compose(self) -> ComposeResult:
        yield HeadLine()
        yield Static(id="unisolated", markup=False)
        yield TabBar(id="tabs")
        with ContentSwitcher(initial="note"):
            yield Note("reading …", id="note")

    async def on_mount(self) -> None:
        await self.show_state()

    @property
    def chat(self) -> ChatPane | None:
        """The chat, once the replica's record is here."""
        return next(iter(self.query(ChatPane)), None)

    @property
    def terminal(self) -> TerminalPane | None:
        """The terminals, once they were looked at."""
        return next(iter(self.query(TerminalPane)), None)

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
        if self.terminal is not None:
            self.terminal.show_state()
        first = state.first_chat
        if self.chat is not None:
            self.chat.show_state()
        elif first is not None:
            pane = ChatPane(self._deck, self.replica_id, first.id)
            pane.id = "chat"
            await self.query_one(ContentSwitcher).add_content(pane, set_current=self.tab == "chat")
            if self._focus_wanted:
                self.focus_tab()

    def come_online(self) -> None:
        """The line is back."""
        if self.chat is not None:
            self.chat.come_online()
        if self.terminal is not None:
            self.terminal.show_state()

    async def show(self, tab: TabName) -> None:
        """Shows the chat or the terminals, and gives them the keys."""
        switcher = self.query_one(ContentSwitcher)
        self.tab = tab
        if tab == "terminal" and self.terminal is None:
            pane = TerminalPane(self._deck, self._host, self.replica_id)
            pane.id = "terminal"
            await switcher.add_content(pane, set_current=True)
        switcher.current = tab if switcher.query(f"#{tab}") else "note"
        self.query_one("#tabs", TabBar).show(TABS, self.tab)
        self.focus_tab()

    def focus_tab(self) -> None:
        """Gives the keys to what is shown, as soon as it is there."""
        if self.tab == "terminal" and self.terminal is not None:
            self.terminal.focus_terminal()
            return
        self._focus_wanted = self.chat is None
        if self.chat is None:
            self.screen.set_focus(self.query_one("#note", Note))
            return
        self.screen.set_focus(self._chat_target(self.chat))
        release_keys(self)

    def _chat_target(self, chat: ChatPane) -> Widget:
        state = self._deck.replicas.get(self.replica_id)
        if state is not None and state.status == WorkspaceStatus.ERROR:
            # There w tries again, as the note above the composer says.
            return chat.transcript
        return chat.composer

    @on(TabBar.Chosen, "#tabs")
    async def _tab_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        await self.show("terminal" if event.key == "terminal" else "chat")
