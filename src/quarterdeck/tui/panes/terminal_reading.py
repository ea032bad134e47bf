"""Reading in the Terminal tab: search, marking by keys, links; and the tab's texts and prompts.

TERMINAL --prefix--> TERMINAL_COMMAND --find--> TERMINAL_FIND --enter--> TERMINAL_READING
                          |  `---read----------------------------------------^   |
                          `----link------> TERMINAL_LINK <-----------open-------'
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, action_id_of, keyed, keys_of
from quarterdeck.tui.actions.tabs import PREFIX
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.outside import (
    OutsideError,
    look_at,
    open_address,
    opener,
    shown_address,
)
from quarterdeck.tui.terminal.core import Reading, Step
from quarterdeck.tui.terminal.view import TerminalView
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.terminals import MAX_SESSIONS

if TYPE_CHECKING:
    from quarterdeck.tui.panes.terminal import TerminalPane


RUN_ELSEWHERE = {
    "terminal.next-waiting": "next_waiting",
    "terminal.zoom": "zoom",
    "terminal.help": "help",
    "terminal.palette": "app.palette",
    "terminal.search": "app.search",
}
"""Actions after the prefix key that are the screen's or the application's."""


def is_prefix(key: str) -> bool:
    """Return whether a key is the prefix key."""
    return key in keys_of(PREFIX)


def prefix_key() -> str:
    """Return the prefix key; the default where the user configured none."""
    return next(iter(keys_of(PREFIX)), PREFIX.keys)


def meaning(where: KeyContext, key: str) -> str:
    """Return the id of the action of a key in a place; empty for none."""
    return action_id_of(where, key)


OPENING = "Opening a terminal …"
MOST_OPEN = f"Limit of {MAX_SESSIONS} terminals reached; close one first."
OFFER_SHOWN = 24
"""Characters shown of what a program wants to copy."""


def none_open_words() -> str:
    """Return the text for a replica whose only terminal was closed."""
    return keyed("No terminal is open. {terminal.again} open one · {app.list} list")


def reading_words(reading: Reading, back: int, needle: str, *, named: bool) -> str:
    """Return the position while reading; `named`: the search text is shown nowhere else."""
    parts = ["marking"] if reading.marking else []
    if needle:
        found = _found(reading)
        parts.append(f"{one_line(needle)}: {found}" if named else found)
    parts = parts or ["reading"]
    parts.append(f"{back} lines back" if back else "at the end")
    return " · ".join(parts)


def _found(reading: Reading) -> str:
    if reading.match:
        return f"{reading.match} of {reading.matches}"
    if reading.matches:
        return "1 match" if reading.matches == 1 else f"{reading.matches} matches"
    return "not found"


def link_words(address: str, openable: bool) -> str:
    """Ask what to do with a link; `address` is safe to display."""
    keys = keyed("{link.open} open · {link.copy} copy" if openable else "{link.copy} copy")
    return f"{keys}: {address}"


def not_opened_words(opener: str) -> str:
    """Return the text for a browser that did not start."""
    return f"{opener} could not open it. Copy the address instead."


def offer_words(text: str, prefix: str) -> str:
    """Ask about what a program wants to copy."""
    shown = one_line(text)
    cut = shown if len(shown) <= OFFER_SHOWN else shown[: OFFER_SHOWN - 1] + "…"
    allow = keyed("{terminal.allow}")
    return f"{prefix} {allow} allow clipboard write ({len(text)} characters): {cut}"


def ended_words(code: int | None) -> str:
    """Return the line above a shell that has ended."""
    code_note = "" if code is None else f" ({code})"
    return f"ended{code_note}: " + keyed("{terminal.again} open another · {terminal.dismiss} close")


def failed_words(problem: str) -> str:
    """Return the text for a terminal that could not be opened."""
    keys = keyed("{terminal.again} retry · {app.list} list")
    return f"No terminal could be opened: {problem}\n\n{keys}"


def inactive_words(state: ReplicaState) -> str:
    """Return why a replica has no terminals now; empty when it can have some."""
    match state.status:
        case WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return "The replica is being prepared. A terminal opens as soon as it is active."
        case WorkspaceStatus.ERROR:
            return keyed(
                "The replica failed, so it has no terminals. See the chat ({tab.chat}) for the reason.\n\n"
                "{replica.wake} retries."
            )
        case status:
            return (
                f"The replica is {status}. Its terminals have ended; its files are kept.\n\n"
                + keyed("{replica.wake} wakes it and opens a new terminal.")
            )


LONGEST = 256


def ask_to_close(asker: Widget, close: Callable[[], object]) -> None:
    """Ask before a terminal and its programs are ended, and then do it."""
    from quarterdeck.tui.kit.dialogs import ConfirmScreen

    def answered(agreed: bool | None) -> None:
        if agreed:
            close()

    question = ConfirmScreen("Close this terminal?", "The programs that run in it end.", "Close")
    asker.app.push_screen(question, answered)


class TerminalPrompt(Input, HasKeyContext):
    """Replaces the sessions' line, so that the terminal keeps its size."""

    DEFAULT_CSS = """
    TerminalPrompt { display: none; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+shift+a", "select_all", show=False),
    ]

    class Did(Message):
        """The user pressed a key of the prompt; `action` is its id."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self) -> None:
        super().__init__(compact=True, max_length=LONGEST, select_on_focus=False)
        self.cursor_blink = False
        self.where = KeyContext.TERMINAL_FIND

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return self.where

    def open(self, where: KeyContext, placeholder: str, text: str = "") -> None:
        """Show the line; the caller focuses it."""
        self.where = where
        self.placeholder = placeholder
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        self.display = True

    async def _on_key(self, event: Key) -> None:
        action = meaning(self.where, event.key)
        if not action:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        self.post_message(self.Did(action))


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
            case "edit":
                self._pane.run_worker(
                    partial(self._open_whole, view), group="reading", exclusive=True
                )
            case _:
                pass

    async def _open_whole(self, view: TerminalView) -> None:
        """Open a copy of the screen and the scrollback in the editor."""
        for step in (Step.UNMARK, Step.OLDEST, Step.MARK_LINES, Step.NEWEST):
            view.read(step)
        text = await view.marked_text()
        self.leave()
        try:
            await look_at(cast("App[Any]", self._pane.app), "terminal.txt", text.encode())
        except OutsideError as error:
            self._pane.show_line(str(error))

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
            self._pane.show_line("No link here; u goes to the previous link.")

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
