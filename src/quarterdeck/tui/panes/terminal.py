"""The terminals of a replica: one shown, the others a key away, all of them alive in the sandbox.

replica active, pane shown -> those that are open, or a new one
shell ends                 -> its last screen stays; enter opens another
engine ends (sleep, ...)   -> a note says so; a new terminal once the replica is active again
"""

import asyncio
from typing import ClassVar
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.message import Message
from textual.widgets import ContentSwitcher

from quarterdeck.client.errors import ClientError
from quarterdeck.store.deck import Deck
from quarterdeck.store.terminals import TerminalLink
from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.panes.terminal_words import (
    NONE_OPEN,
    OPENING,
    PREFIX_HELP,
    ended_words,
    failed_words,
    inactive_words,
)
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.terminal.view import TerminalView
from quarterdeck.tui.terminal_source import LinkSource
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import TakesKeys, drop_keys, hold_keys, release_keys
from quarterdeck.tui.widgets.note import Note
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar
from quarterdeck.wire.terminals import MAX_COLS, MAX_ROWS, MIN_COLS, MIN_ROWS, TerminalSession


class TerminalPane(Vertical, TakesKeys):
    """Finds the terminals that are open, or opens the first one, when it is looked at."""

    DEFAULT_CSS = """
    TerminalPane {
        & ContentSwitcher { height: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.NO_TERMINAL)]

    class Left(Message):
        """The person goes elsewhere: `list` or `chat`."""

        def __init__(self, to: str) -> None:
            super().__init__()
            self.to = to

    class Gone(Message):
        """A session can be shown no longer."""

        def __init__(self, key: str, error: ClientError) -> None:
            super().__init__()
            self.key = key
            self.error = error

    class Changed(Message):
        """Another terminal is shown, or the one shown ended: other keys are right."""

    def __init__(self, deck: Deck, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__()
        self._deck = deck
        self._host = host
        self._replica_id = replica_id
        self._links: dict[str, TerminalLink] = {}
        self._titles: dict[str, str] = {}
        self._ended: dict[str, int | None] = {}
        self._prefixed = False
        self._focus_wanted = False
        self._work = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield TabBar(id="sessions")
        with ContentSwitcher(initial="no-terminal"):
            yield Note(OPENING, id="no-terminal")

    def on_mount(self) -> None:
        self.show_state()

    async def on_unmount(self) -> None:
        for link in self._links.values():
            await link.close()

    # what is shown

    @property
    def _switcher(self) -> ContentSwitcher:
        return self.query_one(ContentSwitcher)

    @property
    def current(self) -> TerminalView | None:
        """The terminal that is shown, ended or not."""
        shown = self._switcher.visible_content
        return shown if isinstance(shown, TerminalView) else None

    @property
    def live(self) -> bool:
        """Whether the keys go to a shell."""
        view = self.current
        return view is not None and view.id not in self._ended

    @property
    def _shown(self) -> bool:
        return bool(self.display) and self.is_mounted

    def show_state(self) -> None:
        """The replica may be in another state: its terminals end and begin with its engine."""
        state = self._deck.replicas.get(self._replica_id)
        if state is None:
            return
        words = inactive_words(state)
        if words:
            self._say_instead(words)
            if self._links:
                self._forget_all()
        elif not self._links and self._shown:
            self._find_or_open()

    def focus_terminal(self) -> None:
        """Gives the keys to the terminal that is shown, or to the first one when it opens."""
        view = self.current
        if view is not None:
            self._focus_wanted = False
            self.screen.set_focus(view)
            release_keys(self)
            return
        self.screen.set_focus(self.query_one("#no-terminal", Note))
        state = self._deck.replicas.get(self._replica_id)
        self._focus_wanted = state is not None and not inactive_words(state)
        if self._focus_wanted:
            self._find_or_open()
        else:
            drop_keys(self)

    def _say_instead(self, words: str) -> None:
        """Shows words where no terminal is, and keeps the focus in the pane."""
        note = self.query_one("#no-terminal", Note)
        note.update(words)
        focused = self.screen.focused
        inside = focused is not None and self in focused.ancestors
        self._switcher.current = "no-terminal"
        if inside:
            self.screen.set_focus(note)
        self._show_sessions()

    def _show_sessions(self, words: str = "") -> None:
        current = self._switcher.current
        tabs = [
            Tab(key, f"{number} {title}{' (ended)' if key in self._ended else ''}")
            for number, (key, title) in enumerate(self._titles.items(), 1)
        ]
        if self._prefixed:
            words = PREFIX_HELP
        elif not words and current in self._ended:
            words = ended_words(self._ended[current])
        self.query_one("#sessions", TabBar).show(tabs, current, words)
        self.post_message(self.Changed())

    # sessions

    @work(group="sessions")
    async def _find_or_open(self) -> None:
        async with self._work:
            if self._links:
                return
            terminals = self._deck.client.terminals
            try:
                found = await terminals.list(self._replica_id)
                running = [session for session in found if not session.exited]
                if not running:
                    running = [await terminals.create(self._replica_id, *self._room())]
            except ClientError as error:
                self._not_opened(error)
                return
            for session in running:
                await self._add(session)

    @work(group="sessions")
    async def _open(self, instead_of: str | None = None) -> None:
        async with self._work:
            try:
                session = await self._deck.client.terminals.create(self._replica_id, *self._room())
            except ClientError as error:
                self._not_opened(error)
                return
            await self._add(session)
            if instead_of is not None:
                await self._close(instead_of)

    def _not_opened(self, error: ClientError) -> None:
        problem = f"{error} {error.next_step}"
        drop_keys(self)
        if self._links:
            self._show_sessions(one_line(problem))
        else:
            self._say_instead(failed_words(problem))

    def _room(self) -> tuple[int, int]:
        size = self._switcher.size
        columns = max(MIN_COLS, min(MAX_COLS, size.width))
        return columns, max(MIN_ROWS, min(MAX_ROWS, size.height))

    async def _add(self, session: TerminalSession) -> None:
        key = f"terminal-{session.id.hex}"
        link = TerminalLink(self._deck.client, self._replica_id, session)
        self._links[key] = link
        self._titles[key] = session.title
        source = LinkSource(link, lambda error: self._tell_gone(key, error))
        view = TerminalView(source, self._host, id=key)
        await self._switcher.add_content(view, set_current=True)
        self._show_sessions()
        note_focused = self.query_one("#no-terminal", Note).has_focus
        if self._focus_wanted or note_focused:
            self.focus_terminal()

    def _tell_gone(self, key: str, error: ClientError) -> None:
        self.post_message(self.Gone(key, error))

    async def _forget(self, key: str) -> None:
        """Shows a session no longer; what runs in it is not touched."""
        link = self._links.pop(key, None)
        self._titles.pop(key, None)
        self._ended.pop(key, None)
        if link is None:
            return
        if self._switcher.current == key:
            if self._links:
                self._next()
            else:
                self._say_instead(NONE_OPEN)
        await link.close()
        await self._switcher.query(f"#{key}").remove()
        self._show_sessions()

    async def _close(self, key: str) -> None:
        link = self._links.get(key)
        await self._forget(key)
        if link is None:
            return
        try:
            await self._deck.client.terminals.close(self._replica_id, link.session.id)
        except ClientError as error:
            self._show_sessions(one_line(f"{error} {error.next_step}"))

    @work(group="sessions")
    async def _forget_all(self) -> None:
        async with self._work:
            for key in list(self._links):
                await self._forget(key)
        # Words of a replica at rest, not of a pane that was emptied.
        self.show_state()

    @work(group="sessions")
    async def _close_current(self) -> None:
        key = self._switcher.current
        if key is None or key not in self._links:
            return
        async with self._work:
            await self._close(key)
        if not self._links:
            self.post_message(self.Left("list"))

    @on(Gone)
    async def _session_gone(self, event: Gone) -> None:
        event.stop()
        await self._forget(event.key)
        if not self._links:
            self.show_state()

    # what the views tell

    def on_terminal_view_title_changed(self, event: TerminalView.TitleChanged) -> None:
        if event.view.id in self._titles and event.title:
            self._titles[event.view.id] = event.title
            self._show_sessions()

    def on_terminal_view_ended(self, event: TerminalView.Ended) -> None:
        if event.view.id in self._links:
            self._ended[event.view.id] = event.code
            self._show_sessions()

    def on_terminal_view_copy_wanted(self, event: TerminalView.CopyWanted) -> None:
        event.stop()
        copy_text(self, event.text)

    @on(TabBar.Chosen, "#sessions")
    def _session_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self._show(event.key)

    # keys

    def take_key(self, event: Key) -> bool:
        """The prefix key and the one after it; nothing else is taken from the shell."""
        if self._prefixed:
            self._prefixed = False
            self._show_sessions()
            self._act(event.key)
            return True
        self._prefixed = event.key == TerminalView.PREFIX
        if self._prefixed:
            self._show_sessions()
        return self._prefixed

    def _act(self, key: str) -> None:
        match key:
            case "l" | "escape" | "left":
                self._leave("list")
            case "1":
                self._leave("chat")
            case "c":
                hold_keys(self)
                self._focus_wanted = True
                self._open()
            case "n":
                self._next()
            case "x":
                self._close_current()
            case TerminalView.PREFIX if (view := self.current) is not None:
                # In its turn behind the keys that the view still has before it.
                view.call_later(view.send_prefix)
            case _:
                pass

    def _leave(self, to: str) -> None:
        hold_keys(self)
        self.post_message(self.Left(to))

    def on_key(self, event: Key) -> None:
        """Keys of a shell that has ended, or of the note in its place."""
        if self.live:
            return
        match event.key:
            case "enter" if self._switcher.current in self._ended:
                hold_keys(self)
                self._focus_wanted = True
                self._open(instead_of=self._switcher.current)
            case "enter":
                hold_keys(self)
                self.focus_terminal()
            case "x":
                self._close_current()
            case _:
                return
        event.stop()
        event.prevent_default()

    def _next(self) -> None:
        keys = list(self._links)
        if keys:
            current = self._switcher.current
            at = keys.index(current) if current in keys else -1
            self._show(keys[(at + 1) % len(keys)])

    def _show(self, key: str) -> None:
        self._switcher.current = key
        self._show_sessions()
        self.focus_terminal()
