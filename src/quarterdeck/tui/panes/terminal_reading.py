"""Reading in the Terminal tab: search, marking by keys, links.

TERMINAL --prefix--> TERMINAL_COMMAND --find--> TERMINAL_FIND --enter--> TERMINAL_READING
                          |  `---read----------------------------------------^   |
                          `----link------> TERMINAL_LINK <-----------open-------'
"""

from functools import partial
from typing import TYPE_CHECKING

from quarterdeck.tui.actions import KeyContext
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.outside import open_address, opener, shown_address
from quarterdeck.tui.panes.terminal_keys import link_words, not_opened_words, reading_words
from quarterdeck.tui.terminal.core import Step
from quarterdeck.tui.terminal.view import TerminalView

if TYPE_CHECKING:
    from quarterdeck.tui.panes.terminal import TerminalPane

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


class TerminalReader:
    """Reading mode of the terminal that a pane shows, and questions about its links."""

    def __init__(self, pane: "TerminalPane") -> None:
        self._pane = pane
        self._needle = ""
        self._link = ""
        """The address of the link question."""

    @property
    def place(self) -> KeyContext | None:
        """The place while the reader has the keys; None when the program has them."""
        if self._link:
            return KeyContext.TERMINAL_LINK
        view = self._pane.current
        return KeyContext.TERMINAL_READING if view is not None and view.reads else None

    @property
    def words(self) -> str:
        """The line above the terminal; empty outside reading mode."""
        view = self._pane.current
        if self._link:
            return link_words(shown_address(self._link), bool(opener(self._link)))
        if view is not None and view.reads:
            typing = self._pane.prompt.display
            return reading_words(view.reading, view.lines_back, self._needle, named=not typing)
        return ""

    # reading

    def start(self) -> None:
        """Give the keys to the reader."""
        if (view := self._pane.current) is not None:
            self._needle = ""
            view.start_reading()
            self._pane.show_line()

    def leave(self) -> None:
        """Give the keys to the program again."""
        self._link = ""
        self._pane.close_prompt()
        if (view := self._pane.current) is not None:
            view.stop_reading()
        self._pane.show_line()

    def read(self, action: str) -> None:
        """Handle a key while reading; ignore others."""
        view, name = self._pane.current, action.partition(".")[2]
        if view is None or not action:
            return
        if step := STEPS.get(name):
            view.read(step)
        match name:
            case "leave":
                self.leave()
            case "mark":
                view.read(Step.UNMARK if view.reading.marking else Step.MARK_CELLS)
            case "copy":
                self._pane.run_worker(
                    partial(self._copy_marked, view), group="reading", exclusive=True
                )
            case "find":
                self.find()
            case "open":
                self._ask_about_link(view)
            case _:
                pass

    async def _copy_marked(self, view: TerminalView) -> None:
        text = await view.marked_text()
        if text:
            self.leave()
            copy_text(self._pane, text)
        else:
            self._pane.show_line(
                keyed("No selection. {reading.mark} starts one, {reading.mark-lines} by lines.")
            )

    # searching

    def find(self) -> None:
        """Ask for a search text, and search while it is typed."""
        if (view := self._pane.current) is None:
            return
        view.start_reading()
        self._pane.open_prompt(KeyContext.TERMINAL_FIND, "Search back for", self._needle)
        view.find(self._needle)

    def search(self, needle: str) -> None:
        """Search for a text."""
        if (view := self._pane.current) is not None:
            self._needle = needle
            view.find(needle)

    def end_search(self, action: str) -> None:
        """Handle a key of the search prompt."""
        match action:
            case "finding.done" if self._needle:
                self._pane.close_prompt()
                self._pane.show_line()
            case "finding.older" | "finding.newer":
                self.read(action)
            case _:
                self.leave()

    # links

    def newest_link(self) -> None:
        """Go to the newest link and ask about it."""
        if (view := self._pane.current) is not None:
            view.start_reading()
            view.read(Step.NEWEST)
            view.read(Step.LINE_END)
            view.read(Step.PREVIOUS_LINK)
            self._ask_about_link(view)

    def _ask_about_link(self, view: TerminalView) -> None:
        self._pane.run_worker(partial(self._ask_here, view), group="reading", exclusive=True)

    async def _ask_here(self, view: TerminalView) -> None:
        uri = await view.link_here()
        if uri:
            self.ask(uri)
        else:
            self._pane.show_line("There is no link here; u goes to the previous one.")

    def ask(self, uri: str) -> None:
        """Ask what to do with a link."""
        self._link = uri
        self._pane.show_line()

    def follow(self, action: str) -> None:
        """Handle a key while a link question is open."""
        uri = self._link
        match action:
            case "link.open" if command := opener(uri):
                self.ask("")
                self._pane.run_worker(partial(self._open, command), group="reading")
            case "link.open":
                self._pane.show_line()
            case "link.copy":
                self.ask("")
                copy_text(self._pane, shown_address(uri))
            case "link.leave":
                self.ask("")
            case _:
                pass

    async def _open(self, command: list[str]) -> None:
        if not await open_address(command):
            self._pane.show_line(not_opened_words(command[0]))
