"""The line that searches the transcript of a chat."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Static

from quarterdeck.tui.actions import KeyContext
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.transcript_view import TranscriptView

NOWHERE = "not found"


class FindLine(Horizontal, HasKeyContext):
    """Hidden until it is opened, when its parts are mounted. Enter goes to the transcript, where n and N continue."""

    DEFAULT_CSS = """
    FindLine {
        display: none;
        height: 1;
        padding: 0 1;
        background: $surface;
        & > .sign { width: 2; color: $text-primary; }
        & > Input { width: 1fr; background: $surface; }
        & > #found { width: auto; padding-left: 1; color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave(False)", "Close", show=False, id="find.close", priority=True),
        Binding("tab", "leave(True)", "To the text", show=False, id="find.text", priority=True),
    ]

    def __init__(self, view: TranscriptView, read_older: Callable[[], Awaitable[bool]]) -> None:
        """Search in `view`. `read_older` adds a page of older messages to it; False when there is none."""
        super().__init__()
        self._view = view
        self._read_older = read_older
        self._found = False
        self.field = Input(compact=True, placeholder="find in the transcript")
        """The widget that gets the focus."""
        self.field.cursor_blink = False
        self._message = Static(id="found", markup=False)

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.CHAT_FIND

    def begin(self) -> None:
        """Ask for a search text."""
        if not self.field.is_attached:
            self.mount(Static("/", classes="sign"), self.field, self._message)
        self.display = True
        self.screen.set_focus(self.field)

    def end(self) -> None:
        """Hide the line, and the marks in the transcript."""
        self.workers.cancel_group(self, "find")
        self.display = False
        self.field.clear()
        self._view.find("")

    def again(self, by: int) -> None:
        """Go to the next match (1), or to the previous one (-1)."""
        if not self._view.finding:
            self.begin()
        elif self._view.find_again(by):
            self._show_place()
        elif by < 0 and self._view.has_older:
            self._find_older()
        else:
            self._go_round(by)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.workers.cancel_group(self, "find")
        self._found = self._view.find(event.value)
        if self._found or not event.value:
            self._show_place()
        else:
            self._show_message(NOWHERE)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_leave(True)

    def action_leave(self, keep: bool) -> None:
        """Go to the transcript; `keep` the marks, and continue there with n and N."""
        self.screen.set_focus(self._view)
        if not keep or not self.field.value:
            self.end()
        elif not self._found:
            self._find_older()

    @work(group="find", exclusive=True)
    async def _find_older(self) -> None:
        """Read page after page until there is a match."""
        self._show_message("looking in older messages …")
        while await self._read_older():
            if self._view.find_again(-1):
                self._show_place()
                return
        if self._view.has_older:
            self._show_message("not found further up")
        else:
            self._go_round(-1)

    def _go_round(self, by: int) -> None:
        if self._view.find_again(by, around=True):
            self._show_place("on from the start" if by > 0 else "on from the end")
        else:
            self._show_message(NOWHERE)

    def _show_place(self, more: str = "") -> None:
        """Show the number of the match, and how many there are; a plus while older messages are not counted."""
        place = self._view.found
        plus = "+" if self._view.has_older else ""
        found = f"{place.number} of {place.total}{plus}" if place else ""
        self._show_message(" · ".join(part for part in (more, found) if part))

    def _show_message(self, text: str) -> None:
        self._message.update(text)
