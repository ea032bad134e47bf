"""What stands beside the list: one replica's head line, its chat and its terminals."""

from typing import Literal
from uuid import UUID

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import ContentSwitcher, Static

from quarterdeck.store.deck import Deck
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.panes.terminal import TerminalPane
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.text import one_line

Tab = Literal["chat", "terminal"]


def head_words(state: ReplicaState) -> str:
    """Name, agent, branch and changed lines on one line."""
    chat = state.first_chat
    parts = [state.name, chat.record.provider if chat else state.record.coding_agent or ""]
    branches = [status.branch for status in state.record.repository_statuses if status.branch]
    parts.append(branches[0] if branches else "")
    added, removed = state.changed_lines
    if added or removed or state.untracked:
        untracked = f" ?{state.untracked}" if state.untracked else ""
        parts.append(f"+{added} -{removed}{untracked}")
    return " · ".join(one_line(part) for part in parts if part)


class ReplicaPane(Vertical):
    """One replica. Its terminals are opened when they are first looked at, and stay."""

    DEFAULT_CSS = """
    ReplicaPane {
        & #head { height: 1; padding: 0 1; background: $boost; text-style: bold; }
        & #tabs { height: 1; padding: 0 1; color: $text-muted; }
        & ContentSwitcher { height: 1fr; }
        & #note { padding: 1 2; color: $text-muted; }
    }
    """

    def __init__(self, deck: Deck, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__()
        self._deck = deck
        self._host = host
        self.replica_id = replica_id
        self.tab: Tab = "chat"

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield Static(id="tabs", markup=False)
        with ContentSwitcher():
            yield Static("reading …", id="note", markup=False)

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
        self.query_one("#head", Static).update(head_words(state))
        self.query_one("#tabs", Static).update(self._tab_words())
        first = state.first_chat
        if self.chat is None and first is not None:
            pane = ChatPane(self._deck, self.replica_id, first.id)
            pane.id = "chat"
            await self.query_one(ContentSwitcher).add_content(pane, set_current=self.tab == "chat")
        elif self.chat is not None:
            self.chat.show_state()

    def _tab_words(self) -> str:
        words = {"chat": "1 Chat", "terminal": "2 Terminal"}
        return "  ".join(
            f"[{text}]" if name == self.tab else f" {text} " for name, text in words.items()
        )

    async def show(self, tab: Tab) -> None:
        """Shows the chat or the terminals, and gives them the keys."""
        state = self._deck.replicas.get(self.replica_id)
        if state is None:
            return
        switcher = self.query_one(ContentSwitcher)
        if tab == "terminal" and not state.active:
            self.app.notify("A terminal needs an active replica: w wakes it.", severity="warning")
            return
        self.tab = tab
        if tab == "terminal" and self.terminal is None:
            pane = TerminalPane(self._deck, self._host, self.replica_id)
            pane.id = "terminal"
            await switcher.add_content(pane, set_current=True)
        switcher.current = tab if switcher.query(f"#{tab}") else "note"
        self.query_one("#tabs", Static).update(self._tab_words())
        self.focus_tab()

    def focus_tab(self) -> None:
        """Gives the keys to what is shown."""
        if self.tab == "terminal" and self.terminal is not None:
            self.terminal.focus_terminal()
        elif self.chat is not None:
            self.screen.set_focus(self.chat.composer)
