"""The terminals of a replica: one shown, the others a key away, all of them alive in the sandbox.

replica active, pane shown -> those that are open, or a new one
shell ends                 -> its last screen stays; enter opens another
engine ends (sleep, ...)   -> a note says so; a new terminal once the replica is active again
"""

from collections.abc import Callable
from typing import ClassVar
from uuid import UUID

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key

from quarterdeck.store.deck import Deck
from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.panes.terminal_keys import is_prefix, meaning, prefix_key
from quarterdeck.tui.panes.terminal_sessions import SessionsPane
from quarterdeck.tui.panes.terminal_words import (
    OPENING,
    ended_words,
    inactive_words,
)
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.terminal.view import TerminalView
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import TakesKeys, drop_keys, hold_keys, release_keys
from quarterdeck.tui.widgets.note import Note
from quarterdeck.tui.widgets.placed import PlaceChanged
from quarterdeck.tui.widgets.switcher import Switcher
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar


class TerminalPane(SessionsPane, TakesKeys):
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

    def __init__(self, deck: Deck, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__(deck, host, replica_id)
        self._prefixed = False

    def compose(self) -> ComposeResult:
        yield from self.compose_line()
        with Switcher(initial="no-terminal"):
            yield Note(OPENING, id="no-terminal")

    def on_mount(self) -> None:
        self.show_state()

    # what is shown

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
            self.say_instead(words)
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

    def say_instead(self, words: str) -> None:
        """Part of `SessionsPane`."""
        note = self.query_one("#no-terminal", Note)
        note.update(words)
        focused = self.screen.focused
        inside = focused is not None and self in focused.ancestors
        self._switcher.current = "no-terminal"
        if inside:
            self.screen.set_focus(note)
        self.show_line()

    def show_line(self, words: str = "") -> None:
        """Part of `ReadingPane`: the sessions by name, and what is to be said of them."""
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

    def _shown_name(self, key: str) -> str:
        link = self._links.get(key)
        named = self._memory.names.get(link.session.id) if link is not None else None
        return named or self._titles[key]

    def take_name(self, name: str) -> None:
        """Part of `ReadingPane`: an empty name is the title again."""
        if (link := self._links.get(self._switcher.current or "")) is not None:
            self._memory.name(link.session.id, one_line(name).strip())
            self.show_line()

    # what the views tell

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
            self.show_line()
            self._command(event.key)
        elif place is Where.NO_TERMINAL:
            return False
        elif is_prefix(event.key):
            self._prefixed = True
            self.show_line()
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
            self.show_line(f"There is no terminal {number}.")

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
