"""The terminals of a replica: one shown, the others a key away, all of them alive in the sandbox.

replica active, pane shown -> those that are open, or a new one
shell ends                 -> its last screen stays; enter opens another
engine ends (sleep, ...)   -> a note says so; a new terminal once the replica is active again
"""

import asyncio
from collections.abc import Callable
from typing import ClassVar
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key
from textual.message import Message

from quarterdeck.client.errors import ClientError
from quarterdeck.store.deck import Deck
from quarterdeck.store.terminals import TerminalLink
from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.panes.terminal_keys import is_prefix, meaning, prefix_key
from quarterdeck.tui.panes.terminal_reading import ReadingPane
from quarterdeck.tui.panes.terminal_words import (
    MOST_OPEN,
    OPENING,
    ended_words,
    failed_words,
    inactive_words,
    none_open_words,
)
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.terminal.view import TerminalView
from quarterdeck.tui.terminal_source import LinkSource
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import TakesKeys, drop_keys, hold_keys, release_keys
from quarterdeck.tui.widgets.note import Note
from quarterdeck.tui.widgets.placed import PlaceChanged
from quarterdeck.tui.widgets.switcher import Switcher
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar
from quarterdeck.wire.terminals import (
    MAX_COLS,
    MAX_ROWS,
    MAX_SESSIONS,
    MIN_COLS,
    MIN_ROWS,
    TerminalSession,
)


class TerminalPane(ReadingPane, TakesKeys):
    """Finds the terminals that are open, or opens the first one, when it is looked at."""

    DEFAULT_CSS = """
    TerminalPane {
        & Switcher { height: 1fr; }
        & #above { height: 1; }
        & #above > * { width: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.NO_TERMINAL)]
    follows_hidden = True

    class Gone(Message):
        """A session can be shown no longer."""

        def __init__(self, key: str, error: ClientError) -> None:
            super().__init__()
            self.key = key
            self.error = error

    def __init__(self, deck: Deck, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__(deck, host, replica_id)
        self._memory = deck.terminals
        self._links: dict[str, TerminalLink] = {}
        self._titles: dict[str, str] = {}
        self._ended: dict[str, int | None] = {}
        self._prefixed = False
        self._focus_wanted = False
        self._work = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield from self.compose_line()
        with Switcher(initial="no-terminal"):
            yield Note(OPENING, id="no-terminal")

    def on_mount(self) -> None:
        self.show_state()

    async def on_unmount(self) -> None:
        for link in self._links.values():
            await link.close()

    # what is shown

    @property
    def _switcher(self) -> Switcher:
        return self.query_one(Switcher)

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
    def place(self) -> Where:
        """Part of `Placed`."""
        if self._prefixed:
            return Where.TERMINAL_COMMAND
        return self.reading_place or (Where.TERMINAL if self.live else Where.NO_TERMINAL)

    @property
    def _shown(self) -> bool:
        return bool(self.display) and self.is_mounted

    def show_state(self) -> None:
        """The replica may be in another state: its terminals end and begin with its engine."""
        state = self._deck.replicas.get(self.replica_id)
        if state is None:
            return
        words = inactive_words(state)
        if words:
            self._say_instead(words)
            if self._links:
                self._forget_all()
        elif not self._links and self._shown:
            self._find_or_open()

    def come_online(self) -> None:
        """Part of `TabPane`."""
        self.show_state()

    def take_keys(self) -> None:
        """Gives the keys to the terminal that is shown, or to the first one when it opens."""
        view = self.current
        if view is not None:
            self._focus_wanted = False
            self.screen.set_focus(view)
            release_keys(self)
            return
        self.screen.set_focus(self.query_one("#no-terminal", Note))
        state = self._deck.replicas.get(self.replica_id)
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
            Tab(key, f"{number} {self._shown_name(key)}{' (ended)' if key in self._ended else ''}")
            for number, key in enumerate(self._titles, 1)
        ]
        if not self._prefixed:
            words = words or self.line_words
            if not words and current in self._ended:
                words = ended_words(self._ended[current])
        self.query_one("#sessions", TabBar).show(tabs, current, words)
        self.post_message(PlaceChanged())

    def show_line(self, words: str = "") -> None:
        """Part of `ReadingPane`."""
        self._show_sessions(words)

    def _shown_name(self, key: str) -> str:
        link = self._links.get(key)
        named = self._memory.names.get(link.session.id) if link is not None else None
        return named or self._titles[key]

    def take_name(self, name: str) -> None:
        """Part of `ReadingPane`: an empty name is the title again."""
        if (link := self._links.get(self._switcher.current or "")) is not None:
            self._memory.name(link.session.id, one_line(name).strip())
            self._show_sessions()

    # sessions

    @work(group="sessions")
    async def _find_or_open(self) -> None:
        async with self._work:
            if self._links:
                return
            terminals = self._deck.client.terminals
            try:
                found = await terminals.list(self.replica_id)
                running = [session for session in found if not session.exited]
                if not running:
                    running = [await terminals.create(self.replica_id, *self._room())]
            except ClientError as error:
                self._not_opened(error)
                return
            for session in running:
                await self._add(session)
            self._show_remembered()

    def _show_remembered(self) -> None:
        """The terminal that was shown when the replica was looked at last."""
        shown = self._memory.shown.get(self.replica_id)
        for key, link in self._links.items():
            if link.session.id == shown and key != self._switcher.current:
                focused = self.current is not None and self.current.has_focus
                self._switcher.current = key
                self._show_sessions()
                if focused:
                    self.take_keys()

    @work(group="sessions")
    async def _open_another(self, instead_of: str | None = None) -> None:
        async with self._work:
            if len(self._links) >= MAX_SESSIONS and instead_of is None:
                self._refuse(MOST_OPEN)
                return
            try:
                session = await self._deck.client.terminals.create(self.replica_id, *self._room())
            except ClientError as error:
                self._not_opened(error)
                return
            await self._add(session)
            if instead_of is not None:
                await self._close(instead_of)

    def _not_opened(self, error: ClientError) -> None:
        self._refuse(f"{error} {error.next_step}")

    def _refuse(self, problem: str) -> None:
        drop_keys(self)
        self._focus_wanted = False
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
        link = TerminalLink(self._deck.client, self.replica_id, session)
        self._links[key] = link
        self._titles[key] = session.title
        source = LinkSource(link, lambda error: self._tell_gone(key, error))
        view = TerminalView(source, self._host, id=key)
        if not await self._switcher.bring(view):
            return
        self._show_sessions()
        note_focused = self.query_one("#no-terminal", Note).has_focus
        if self._focus_wanted or note_focused:
            self.take_keys()

    def _tell_gone(self, key: str, error: ClientError) -> None:
        self.post_message(self.Gone(key, error))

    async def _forget(self, key: str) -> None:
        """Shows a session no longer; what runs in it is not touched."""
        link = self._links.pop(key, None)
        self._titles.pop(key, None)
        self._ended.pop(key, None)
        self._offered.pop(key, None)
        if link is None:
            return
        if self._switcher.current == key:
            if self._links:
                self._next()
            else:
                self._say_instead(none_open_words())
        await link.close()
        await self._switcher.query(f"#{key}").remove()
        self._show_sessions()

    async def _close(self, key: str) -> None:
        link = self._links.get(key)
        await self._forget(key)
        if link is None:
            return
        self._memory.name(link.session.id, "")
        try:
            await self._deck.client.terminals.close(self.replica_id, link.session.id)
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
        """The prefix key and the one after it, and all while somebody reads."""
        if self.prompt.has_focus:
            return False
        place = self.place
        if place is Where.TERMINAL_COMMAND:
            self._prefixed = False
            self._show_sessions()
            self._command(event.key)
        elif place is Where.NO_TERMINAL:
            return False
        elif is_prefix(event.key):
            self._prefixed = True
            self._show_sessions()
        elif place is Where.TERMINAL_READING:
            self.do_reading(meaning(place, event.key))
        elif place is Where.TERMINAL_LINK:
            self.do_link(meaning(place, event.key))
        else:
            return False
        return True

    def _command(self, key: str) -> None:
        """What the key after the prefix means."""
        action = meaning(Where.TERMINAL_COMMAND, key)
        commands: dict[str, Callable[[], object]] = {
            "terminal.list": lambda: self._leave("list"),
            "terminal.chat": lambda: self._leave("chat"),
            "terminal.new": self._open_new,
            "terminal.next": self._next,
            "terminal.previous": lambda: self._next(-1),
            "terminal.close": self._close_current,
            "terminal.find": self.find_in_terminal,
            "terminal.read": self.read_terminal,
            "terminal.link": self.newest_link,
            "terminal.rename": self._rename,
            "terminal.allow": self.allow_copy,
            "terminal.palette": lambda: self.app.call_later(self.app.run_action, "palette"),
        }
        if command := commands.get(action):
            command()
        elif action:
            self._choose(int(action.removeprefix("terminal.")))
        elif is_prefix(key) and (view := self.current) is not None:
            # In its turn behind the keys that the view still has before it.
            view.call_later(view.send_prefix, prefix_key())

    def _rename(self) -> None:
        key = self._switcher.current
        if key in self._titles:
            self.ask_name(self._titles[key], self._shown_name(key))

    def _choose(self, number: int) -> None:
        keys = list(self._links)
        if number <= len(keys):
            self._show(keys[number - 1])
        else:
            self._show_sessions(f"There is no terminal {number}.")

    def _open_new(self, instead_of: str | None = None) -> None:
        hold_keys(self)
        self._focus_wanted = True
        self._open_another(instead_of)

    def _leave(self, to: str) -> None:
        hold_keys(self)
        self.post_message(self.Left(to))

    def on_key(self, event: Key) -> None:
        """Keys of a shell that has ended, or of the note in its place."""
        if self.place is not Where.NO_TERMINAL:
            return
        ended = self._switcher.current in self._ended
        match meaning(Where.NO_TERMINAL, event.key):
            case "terminal.again" if ended:
                self._open_new(instead_of=self._switcher.current)
            case "terminal.again":
                hold_keys(self)
                self.take_keys()
            case "terminal.dismiss":
                self._close_current()
            case "ended.find" if ended:
                self.find_in_terminal()
            case "ended.read" if ended:
                self.read_terminal()
            case _:
                return
        event.stop()
        event.prevent_default()

    def _next(self, step: int = 1) -> None:
        keys = list(self._links)
        if keys:
            current = self._switcher.current
            at = keys.index(current) if current in keys else -1
            self._show(keys[(at + step) % len(keys)])

    def _show(self, key: str) -> None:
        self.leave_reading()
        self._switcher.current = key
        if (link := self._links.get(key)) is not None:
            self._memory.shown[self.replica_id] = link.session.id
        self._show_sessions()
        self.take_keys()
