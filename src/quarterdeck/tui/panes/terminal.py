"""The terminals of a replica: one shown, the others a key away, all of them running in the sandbox.

replica active, pane shown -> those that are open, or a new one
shell ends                 -> its last screen stays; enter opens another
engine ends (sleep, ...)   -> a note says so; a new terminal once the replica is active again
"""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import ClassVar
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import DescendantFocus, Key
from textual.message import Message
from textual.widgets import Input

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.terminals import TerminalLink
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, keyed, prompt_bindings
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.key_context import KeyContextChanged
from quarterdeck.tui.panes.tabs import TabPane
from quarterdeck.tui.panes.terminal_reading import (
    MOST_OPEN,
    OPENING,
    RUN_ELSEWHERE,
    TerminalPrompt,
    TerminalReader,
    ask_to_close,
    ended_words,
    failed_words,
    inactive_words,
    is_prefix,
    meaning,
    none_open_words,
    offer_words,
    prefix_key,
)
from quarterdeck.tui.panes.terminal_source import LinkSource, OpenTerminal
from quarterdeck.tui.panes.terminal_split import SplitSwitcher, key_of
from quarterdeck.tui.terminal.host import EmulatorHost, Offers
from quarterdeck.tui.terminal.view import TerminalView
from quarterdeck.tui.textual_ext.type_ahead import TakesKeys, discard_keys, hold_keys
from quarterdeck.tui.widgets.lines import Note
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar
from quarterdeck.wire.terminals import (
    MAX_COLS,
    MAX_ROWS,
    MAX_SESSIONS,
    MIN_COLS,
    MIN_ROWS,
    TerminalSession,
)

HELD_FOR_OPENING = "Opening the terminal"


class TerminalPane(TabPane, TakesKeys):
    """Finds the open terminals, or opens the first one, when it is shown."""

    DEFAULT_CSS = """
    TerminalPane {
        & SplitSwitcher { height: 1fr; }
        & #above { height: 1; }
        & #above > * { width: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.NO_TERMINAL)]
    follows_hidden = True

    class Gone(Message):
        """A session can no longer be shown."""

        def __init__(self, key: str, error: ClientError) -> None:
            super().__init__()
            self.key = key
            self.error = error

    def __init__(self, app_state: AppState, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__(app_state, replica_id)
        self._host = host
        self._memory = app_state.terminals
        self._reader = TerminalReader(self)
        # Kept: opening a terminal may go on while the contents of the pane are removed.
        self._switcher = SplitSwitcher(self._memory, replica_id, initial="no-terminal")
        self._terminals: dict[str, OpenTerminal] = {}
        """By the id of their view, in numerical order."""
        self._prefixed = False
        self._focus_wanted = False
        self._work = asyncio.Lock()

    def compose(self) -> ComposeResult:
        with Horizontal(id="above"):
            yield TerminalPrompt()
            yield TabBar(id="sessions")
        with self._switcher:
            yield Note(OPENING, id="no-terminal")

    def on_mount(self) -> None:
        self.show_state()

    async def on_unmount(self) -> None:
        for terminal in self._terminals.values():
            await terminal.link.close()

    # display

    @property
    def _is_removed(self) -> bool:
        """Whether the pane, or its contents before it, were removed."""
        return not self._switcher.is_attached

    @property
    def prompt(self) -> TerminalPrompt:
        """The line for a search or a name."""
        return self.query_one(TerminalPrompt)

    @property
    def current(self) -> TerminalView | None:
        """The terminal that is shown, ended or not."""
        shown = self._switcher.query_children(TerminalView)
        return next((view for view in shown if view.id == self._switcher.current), None)

    def _terminal(self, key: str | None) -> OpenTerminal | None:
        return self._terminals.get(key or "")

    @property
    def _shown_terminal(self) -> OpenTerminal | None:
        return self._terminal(self._switcher.current)

    @property
    def live(self) -> bool:
        """Whether the keys go to a shell."""
        view = self.current
        terminal = self._terminal(view.id) if view is not None else None
        return view is not None and (terminal is None or not terminal.ended)

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        if self._prefixed:
            return KeyContext.TERMINAL_COMMAND
        return self._reader.place or (KeyContext.TERMINAL if self.live else KeyContext.NO_TERMINAL)

    @property
    def _shown(self) -> bool:
        return bool(self.display) and self.is_mounted

    def show_state(self) -> None:
        """Note that the replica may be in another state: its terminals end and start with its engine."""
        state = self._app_state.replicas.get(self.replica_id)
        if state is None:
            return
        words = inactive_words(state)
        if words:
            self._say_instead(words)
            if self._terminals:
                self._forget_all()
        elif not self._terminals and self._shown:
            self._find_or_open()

    def come_online(self) -> None:
        """Part of `TabPane`."""
        self.show_state()

    def take_keys(self) -> None:
        """Focus the terminal that is shown, or the first one when it opens."""
        if self._is_removed:
            return
        view = self.current
        if view is not None:
            self._focus_wanted = False
            self.screen.set_focus(view)
            return
        self.screen.set_focus(self.query_one("#no-terminal", Note))
        state = self._app_state.replicas.get(self.replica_id)
        self._focus_wanted = state is not None and not inactive_words(state)
        if self._focus_wanted:
            self._find_or_open()
        else:
            discard_keys(self)

    def _say_instead(self, words: str) -> None:
        """Show a text where there is no terminal, and keep the focus in the pane."""
        if self._is_removed:
            return
        note = self.query_one("#no-terminal", Note)
        note.update(words)
        focused = self.screen.focused
        inside = focused is not None and self in focused.ancestors
        self._switcher.current = "no-terminal"
        if inside:
            self.screen.set_focus(note)
        self.show_line()

    def show_line(self, words: str = "") -> None:
        """Show the sessions by name in the line above the terminal, or a text until the next update."""
        if self._is_removed:
            return
        tabs = [
            Tab(key, f"{number} {self._name_of(terminal)}{' (ended)' if terminal.ended else ''}")
            for number, (key, terminal) in enumerate(self._terminals.items(), 1)
        ]
        if not self._prefixed:
            words = words or self._reader.words or self._line_words()
        self.query_one("#sessions", TabBar).show(tabs, self._switcher.current, words)
        self.post_message(KeyContextChanged())

    def _line_words(self) -> str:
        terminal = self._shown_terminal
        if terminal is not None and terminal.offered:
            return offer_words(terminal.offered, prefix_key())
        return ended_words(terminal.exit_code) if terminal is not None and terminal.ended else ""

    def _name_of(self, terminal: OpenTerminal) -> str:
        return self._memory.names.get(terminal.link.session.id) or terminal.title

    # the prompt

    def open_prompt(self, where: KeyContext, placeholder: str, text: str) -> None:
        """Ask for a search or a name in the line above the terminal."""
        prompt = self.prompt
        prompt.open(where, placeholder, text)
        self.screen.set_focus(prompt)

    def close_prompt(self) -> None:
        """Close the prompt; the keys are the terminal's."""
        if self.prompt.display:
            self.prompt.display = False
            self.take_keys()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.prompt.where is KeyContext.TERMINAL_FIND:
            self._reader.search(event.value)

    @on(TerminalPrompt.Did)
    def _prompt_did(self, event: TerminalPrompt.Did) -> None:
        event.stop()
        match event.action:
            case "naming.done":
                self._take_name(self.prompt.value)
                self.close_prompt()
            case "naming.leave":
                self.close_prompt()
            case action:
                self._reader.end_search(action)

    def _rename(self) -> None:
        if (terminal := self._shown_terminal) is not None:
            self.open_prompt(KeyContext.TERMINAL_NAME, terminal.title, self._name_of(terminal))

    def _take_name(self, name: str) -> None:
        """Name the terminal that is shown; an empty name restores the title."""
        if (terminal := self._shown_terminal) is not None:
            self._memory.name(terminal.link.session.id, one_line(name).strip())
            self.show_line()

    # opening and closing

    @work(group="sessions")
    async def _find_or_open(self) -> None:
        hold = hold_keys(self, HELD_FOR_OPENING) if self._focus_wanted else nullcontext()
        with hold:
            async with self._work:
                if not self._terminals:
                    await self._find_sessions()

    async def _find_sessions(self) -> None:
        terminals = self._app_state.client.terminals
        try:
            found = await terminals.list(self.replica_id)
            running = [session for session in found if not session.exited]
            if not running:
                running = [await terminals.create(self.replica_id, *self._room())]
        except ClientError as error:
            self._refuse(f"{error} {error.next_step}")
            return
        for session in running[:MAX_SESSIONS]:  # a hostile service may list any number
            await self._add(session)
        if not self._is_removed:
            await self._show_remembered()

    async def _show_remembered(self) -> None:
        """Show the terminal, or the two, that were shown when the replica was last shown."""
        paired = await self._switcher.restore(self._terminals)
        shown = self._memory.shown.get(self.replica_id, paired)
        for key, terminal in self._terminals.items():
            if terminal.link.session.id == shown and key != self._switcher.current:
                focused = self.current is not None and self.current.has_focus
                self._switcher.current = key
                self.show_line()
                if focused:
                    self.take_keys()

    def _open_new(self, instead_of: str | None = None, *, beside: bool | None = None) -> None:
        self._focus_wanted = True
        self._open_another(instead_of, beside)

    @work(group="sessions")
    async def _open_another(self, instead_of: str | None, beside: bool | None) -> None:
        with hold_keys(self, HELD_FOR_OPENING):
            async with self._work:
                first = self._switcher.current
                opened = await self._open_session(instead_of)
                if opened is not None and beside is not None and first in self._terminals:
                    await self._switcher.pair_up(first, opened, beside=beside)

    async def _open_session(self, instead_of: str | None) -> str | None:
        """Open a terminal; return the id of its view, None when that failed or it has ended already."""
        if len(self._terminals) >= MAX_SESSIONS and instead_of is None:
            self._refuse(MOST_OPEN)
            return None
        try:
            session = await self._app_state.client.terminals.create(self.replica_id, *self._room())
        except ClientError as error:
            self._refuse(f"{error} {error.next_step}")
            return None
        if not await self._add(session):
            return None
        if instead_of is not None:
            await self._switcher.replace(instead_of, key_of(session.id))
            await self._close(instead_of)
        return key_of(session.id)

    def _refuse(self, problem: str) -> None:
        if self._focus_wanted:
            discard_keys(self)
        self._focus_wanted = False
        if self._terminals:
            self.show_line(one_line(problem))
        else:
            self._say_instead(failed_words(problem))

    def _room(self) -> tuple[int, int]:
        size = self._switcher.size
        columns = max(MIN_COLS, min(MAX_COLS, size.width))
        return columns, max(MIN_ROWS, min(MAX_ROWS, size.height))

    async def _add(self, session: TerminalSession) -> bool:
        """Show a session; False when it ended, or the pane was removed, before its view was there."""
        key = key_of(session.id)
        if key in self._terminals:  # a service that lists it twice, or calls an open one new
            return True
        link = TerminalLink(self._app_state.client, self.replica_id, session)
        self._terminals[key] = OpenTerminal(link, session.title)
        source = LinkSource(link, lambda error: self.post_message(self.Gone(key, error)))
        view = TerminalView(source, self._host, id=key)
        if not await self._switcher.bring(view):
            return False
        self.show_line()
        note_focused = self.query_one("#no-terminal", Note).has_focus
        if self._focus_wanted or note_focused:
            self.take_keys()
        return True

    async def _forget(self, key: str) -> None:
        """Stop showing a session; its programs are not affected."""
        terminal = self._terminals.pop(key, None)
        if terminal is None:
            return
        partner = self._switcher.partner(key)
        if partner is not None:
            self._switcher.part()
        if self._switcher.current == key:
            if partner is not None:
                self._show(partner)
            elif self._terminals:
                self._next()
            else:
                self._say_instead(none_open_words())
        await terminal.link.close()
        # The end of a worker, as when the cockpit is closed, must not cancel that of the widget.
        await asyncio.shield(self._switcher.query(f"#{key}").remove()())
        self.show_line()

    async def _close(self, key: str) -> None:
        terminal = self._terminals.get(key)
        await self._forget(key)
        if terminal is None:
            return
        session_id = terminal.link.session.id
        self._memory.name(session_id, "")
        try:
            await self._app_state.client.terminals.close(self.replica_id, session_id)
        except ClientError as error:
            self.show_line(one_line(f"{error} {error.next_step}"))

    @work(group="sessions")
    async def _forget_all(self) -> None:
        async with self._work:
            for key in list(self._terminals):
                await self._forget(key)
        # For a replica at rest, not for a pane that was emptied.
        self.show_state()

    @work(group="sessions")
    async def _close_current(self) -> None:
        if (key := self._switcher.current) is None or key not in self._terminals:
            return
        with hold_keys(self, "Closing the terminal"):
            async with self._work:
                await self._close(key)
            if not self._terminals:
                self.post_message(self.Left("list"))

    @on(Gone)
    async def _session_gone(self, event: Gone) -> None:
        event.stop()
        await self._forget(event.key)
        if not self._terminals:
            self.show_state()

    # two terminals together

    @work(group="sessions")
    async def action_split(self, beside: bool) -> None:
        """Open a second terminal beside or below this one; move it there if it is open."""
        if not await self._switcher.turn(beside=beside):
            self._open_new(beside=beside)

    def action_other_terminal(self) -> None:
        """Go to the other one of two terminals."""
        if (other := self._switcher.partner(self._switcher.current)) is not None:
            self._show(other)
        else:
            self.show_line(keyed("Not split. {terminal.split-below} opens a second terminal."))

    def action_terminal_alone(self) -> None:
        """Show each of the two terminals alone again."""
        self._switcher.part()
        self.take_keys()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Note that the other one of two terminals was clicked."""
        key = event.widget.id
        if key is not None and key == self._switcher.partner(self._switcher.current):
            self._show(key)

    # choosing a terminal

    def _next(self, step: int = 1) -> None:
        keys = list(self._terminals)
        if keys:
            current = self._switcher.current
            at = keys.index(current) if current in keys else -1
            self._show(keys[(at + step) % len(keys)])

    def _choose(self, number: int) -> None:
        keys = list(self._terminals)
        if number <= len(keys):
            self._show(keys[number - 1])
        else:
            self.show_line(f"There is no terminal {number}.")

    def _show(self, key: str) -> None:
        self._reader.leave()
        self._switcher.current = key
        if (terminal := self._terminals.get(key)) is not None:
            self._memory.shown[self.replica_id] = terminal.link.session.id
        self.show_line()
        self.take_keys()

    @on(TabBar.Chosen, "#sessions")
    def _session_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self._show(event.key)

    # events of the views

    def on_terminal_view_title_changed(self, event: TerminalView.TitleChanged) -> None:
        if (terminal := self._terminal(event.view.id)) is not None and event.title:
            terminal.title = event.title
            self.show_line()

    def on_terminal_view_ended(self, event: TerminalView.Ended) -> None:
        if (terminal := self._terminal(event.view.id)) is not None:
            terminal.ended, terminal.exit_code = True, event.code
            self.show_line()

    def on_terminal_view_copy_wanted(self, event: TerminalView.CopyWanted) -> None:
        event.stop()
        copy_text(self, event.text)

    def on_terminal_view_link_wanted(self, event: TerminalView.LinkWanted) -> None:
        """Open a link that the person clicked with Ctrl held down."""
        event.stop()
        if event.view is self.current:
            self._reader.ask(event.uri)

    def on_terminal_view_reading_changed(self, event: TerminalView.ReadingChanged) -> None:
        """Show the new count of the search, or how far back the reader is."""
        event.stop()
        if event.view is self.current:
            self.show_line()

    def on_terminal_view_clipboard_offered(self, event: TerminalView.ClipboardOffered) -> None:
        """Offer what a program wants to copy; nothing is copied before the user confirms it."""
        event.stop()
        terminal = self._terminal(event.view.id)
        if terminal is not None and self._host.offers is not Offers.REFUSE:
            terminal.offered = event.text
            self.show_line()

    def _allow_copy(self) -> None:
        terminal = self._shown_terminal
        if terminal is not None and terminal.offered:
            offered, terminal.offered = terminal.offered, ""
            self.show_line()
            copy_text(self, offered)
        else:
            self.show_line("No program asked to copy anything.")

    # keys

    def take_key(self, event: Key) -> bool:
        """Handle the prefix key and the one after it, and all keys in reading mode; False for others."""
        if self.prompt.has_focus:
            return False
        place = self.place
        if place is KeyContext.TERMINAL_COMMAND:
            self._prefixed = False
            self.show_line()
            self._command(event.key)
        elif place is KeyContext.NO_TERMINAL:
            return False
        elif is_prefix(event.key):
            self._prefixed = True
            self.show_line()
        elif place is KeyContext.TERMINAL_READING:
            self._reader.read(meaning(place, event.key))
        elif place is KeyContext.TERMINAL_LINK:
            self._reader.follow(meaning(place, event.key))
        else:
            return False
        return True

    def _command(self, key: str) -> None:
        """Carry out the key after the prefix."""
        action = meaning(KeyContext.TERMINAL_COMMAND, key)
        commands: dict[str, Callable[[], object]] = {
            "terminal.list": lambda: self.post_message(self.Left("list")),
            "terminal.chat": lambda: self.post_message(self.Left("chat")),
            "terminal.new": self._open_new,
            "terminal.next": self._next,
            "terminal.previous": lambda: self._next(-1),
            "terminal.close": lambda: ask_to_close(self, self._close_current),
            "terminal.find": self._reader.find,
            "terminal.read": self._reader.start,
            "terminal.link": self._reader.newest_link,
            "terminal.rename": self._rename,
            "terminal.allow": self._allow_copy,
            "terminal.split-beside": lambda: self.action_split(True),
            "terminal.split-below": lambda: self.action_split(False),
            "terminal.other": self.action_other_terminal,
            "terminal.alone": self.action_terminal_alone,
        }
        if command := commands.get(action):
            command()
        elif action in RUN_ELSEWHERE:
            self.app.call_later(self.screen.run_action, RUN_ELSEWHERE[action])
        elif action.removeprefix("terminal.").isdecimal():
            self._choose(int(action.removeprefix("terminal.")))
        elif is_prefix(key) and (view := self.current) is not None:
            # In its turn after the keys that the view still has before it.
            view.call_later(view.send_prefix, prefix_key())

    def on_key(self, event: Key) -> None:
        """Handle keys for a shell that has ended, or for the note in its place."""
        if self.place is not KeyContext.NO_TERMINAL:
            return
        terminal = self._shown_terminal
        ended = terminal is not None and terminal.ended
        match meaning(KeyContext.NO_TERMINAL, event.key):
            case "terminal.again" if ended:
                self._open_new(instead_of=self._switcher.current)
            case "terminal.again":
                self.take_keys()
            case "terminal.dismiss":
                self._close_current()
            case "ended.find" if ended:
                self._reader.find()
            case "ended.read" if ended:
                self._reader.start()
            case _:
                return
        event.stop()
        event.prevent_default()
