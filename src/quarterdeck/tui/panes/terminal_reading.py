"""The part of a terminal's pane that reads: search, marking by keys, links, what programs copy.

TERMINAL --prefix--> TERMINAL_COMMAND --find--> TERMINAL_FIND --enter--> TERMINAL_READING
                          |  `---read----------------------------------------^   |
                          `----link------> TERMINAL_LINK <-----------open-------'
"""

from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input

from quarterdeck.store.deck import Deck
from quarterdeck.tui.actions import Where
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.panes.tabs import TabPane
from quarterdeck.tui.panes.terminal_keys import prefix_key
from quarterdeck.tui.panes.terminal_links import open_address, opener, shown_address
from quarterdeck.tui.panes.terminal_prompt import TerminalPrompt
from quarterdeck.tui.panes.terminal_words import (
    link_words,
    not_opened_words,
    offer_words,
    reading_words,
)
from quarterdeck.tui.terminal.core import Step
from quarterdeck.tui.terminal.host import EmulatorHost, Offers
from quarterdeck.tui.terminal.view import TerminalView
from quarterdeck.tui.type_ahead import hold_keys, release_keys
from quarterdeck.tui.widgets.tab_bar import TabBar

STEPS = {
    "older": Step.NEXT_MATCH,
    "newer": Step.PREVIOUS_MATCH,
    "link": Step.PREVIOUS_LINK,
    "next-link": Step.NEXT_LINK,
    "mark-word": Step.MARK_WORD,
    "mark-lines": Step.MARK_LINES,
    **{
        step.name.lower().replace("_", "-"): step
        for step in Step
        if step < Step.MARK_CELLS or step is Step.SWAP
    },
}
"""Actions that are one step of the reader, by the second part of their id."""


class ReadingPane(TabPane):
    """Who derives from it says which terminal is shown, and shows the line above it."""

    def __init__(self, deck: Deck, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__(deck, replica_id)
        self._host = host
        self._needle = ""
        self._link = ""
        self._offered: dict[str, str] = {}
        """What programs want to copy, by the key of their session."""

    def compose_line(self) -> ComposeResult:
        """The line above the terminal: the sessions, or a prompt with words beside it."""
        with Horizontal(id="above"):
            yield TerminalPrompt()
            yield TabBar(id="sessions")

    @property
    def current(self) -> TerminalView | None:
        """The terminal that is shown, ended or not."""
        raise NotImplementedError

    def show_line(self, words: str = "") -> None:
        """Shows the line above the terminal anew, or words in it until the next time."""
        raise NotImplementedError

    @property
    def prompt(self) -> TerminalPrompt:
        """The line for a search or a name."""
        return self.query_one(TerminalPrompt)

    @property
    def reading_place(self) -> Where | None:
        """The place while something here has the keys; null when the program has."""
        if self._link:
            return Where.TERMINAL_LINK
        view = self.current
        return Where.TERMINAL_READING if view is not None and view.reads else None

    @property
    def line_words(self) -> str:
        """What the line above the terminal says now; empty when it is free."""
        view = self.current
        if self._link:
            return link_words(shown_address(self._link), bool(opener(self._link)))
        if view is not None and view.reads:
            typing = self.prompt.display
            return reading_words(view.reading, view.lines_back, self._needle, named=not typing)
        if view is not None and (offered := self._offered.get(view.id or "")):
            return offer_words(offered, prefix_key())
        return ""

    # reading

    def read_terminal(self) -> None:
        """The keys go through the screen from now on."""
        if (view := self.current) is not None:
            self._needle = ""
            view.start_reading()
            self.show_line()

    def leave_reading(self) -> None:
        """The keys are the program's again."""
        self._link = ""
        self._close_prompt()
        if (view := self.current) is not None:
            view.stop_reading()
        self.show_line()

    def do_reading(self, action: str) -> None:
        """Carries out what a key means while reading; nothing for another key."""
        view, name = self.current, action.partition(".")[2]
        if view is None or not action:
            return
        if step := STEPS.get(name):
            view.read(step)
        match name:
            case "leave":
                self.leave_reading()
            case "mark":
                view.read(Step.UNMARK if view.reading.marking else Step.MARK_CELLS)
            case "copy":
                self._copy_marked(view)
            case "find":
                self.find_in_terminal()
            case "open":
                self._ask_about_link(view)
            case _:
                pass

    @work(group="reading", exclusive=True)
    async def _copy_marked(self, view: TerminalView) -> None:
        text = await view.marked_text()
        if text:
            self.leave_reading()
            copy_text(self, text)
        else:
            self.show_line(
                keyed(
                    "Nothing is marked: {reading.mark} marks from here, {reading.mark-lines} whole lines."
                )
            )

    # searching and naming

    def find_in_terminal(self) -> None:
        """Asks what to search for, and searches while it is typed."""
        if (view := self.current) is None:
            return
        hold_keys(self)
        view.start_reading()
        self._open_prompt(Where.TERMINAL_FIND, "Search back for", self._needle)
        view.find(self._needle)

    def _open_prompt(self, where: Where, placeholder: str, text: str) -> None:
        prompt = self.prompt
        prompt.open(where, placeholder, text)
        self.screen.set_focus(prompt)
        release_keys(self)

    def ask_name(self, placeholder: str, name: str) -> None:
        """Asks for a name; `take_name` gets it."""
        hold_keys(self)
        self._open_prompt(Where.TERMINAL_NAME, placeholder, name)

    def take_name(self, name: str) -> None:
        """The person named the terminal that is shown."""
        raise NotImplementedError

    def _close_prompt(self) -> None:
        if self.prompt.display:
            self.prompt.display = False
            self.take_keys()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.prompt.where is Where.TERMINAL_FIND and (view := self.current) is not None:
            self._needle = event.value
            view.find(event.value)

    @on(TerminalPrompt.Did)
    def _prompt_did(self, event: TerminalPrompt.Did) -> None:
        event.stop()
        match event.action:
            case "finding.done" if self._needle:
                self._close_prompt()
                self.show_line()
            case "finding.older" | "finding.newer":
                self.do_reading(event.action)
            case "naming.done":
                self.take_name(self.prompt.value)
                self._close_prompt()
            case "naming.leave":
                self._close_prompt()
            case _:
                self.leave_reading()

    # links

    def newest_link(self) -> None:
        """Goes to the newest link and asks about it."""
        if (view := self.current) is not None:
            view.start_reading()
            view.read(Step.NEWEST)
            view.read(Step.LINE_END)
            view.read(Step.PREVIOUS_LINK)
            self._ask_about_link(view)

    @work(group="reading", exclusive=True)
    async def _ask_about_link(self, view: TerminalView) -> None:
        uri = await view.link_here()
        if uri:
            self._ask(uri)
        else:
            self.show_line("There is no link here: u goes to the one before.")

    def on_terminal_view_link_wanted(self, event: TerminalView.LinkWanted) -> None:
        """The person clicked at a link with Ctrl held down."""
        event.stop()
        if event.view is self.current:
            self._ask(event.uri)

    def _ask(self, uri: str) -> None:
        self._link = uri
        self.show_line()

    def do_link(self, action: str) -> None:
        """Carries out what a key means while a link is asked about."""
        uri = self._link
        match action:
            case "link.open" if command := opener(uri):
                self._end_link("")
                self._open(command)
            case "link.open":
                self.show_line()
            case "link.copy":
                self._end_link("")
                copy_text(self, shown_address(uri))
            case "link.leave":
                self._end_link("")
            case _:
                pass

    def _end_link(self, words: str) -> None:
        self._link = ""
        self.show_line(words)

    @work(group="reading")
    async def _open(self, command: list[str]) -> None:
        if not await open_address(command):
            self.show_line(not_opened_words(command[0]))

    # what programs want on the clipboard

    def on_terminal_view_clipboard_offered(self, event: TerminalView.ClipboardOffered) -> None:
        """A program asked; nothing is copied before the person says so."""
        event.stop()
        key = event.view.id or ""
        if self._host.offers is Offers.REFUSE:
            return
        if event.text:
            self._offered[key] = event.text
        else:
            self._offered.pop(key, None)
        self.show_line()

    def allow_copy(self) -> None:
        """The person lets the program copy."""
        view = self.current
        offered = self._offered.pop(view.id or "", "") if view is not None else ""
        if offered:
            self.show_line()
            copy_text(self, offered)
        else:
            self.show_line("No program asked to copy anything.")

    def on_terminal_view_reading_changed(self, event: TerminalView.ReadingChanged) -> None:
        """Its count, or how far back it is."""
        event.stop()
        if event.view is self.current:
            self.show_line()
