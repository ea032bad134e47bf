"""What a person types over changes: comments, the words around them, and what to search for."""

from typing import ClassVar, Literal

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import TextArea

from quarterdeck.tui.actions import Where, which
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.tui.widgets.placed import Placed

MOST_LINES = 8

Purpose = Literal["comment", "summary", "search"]
_PLACES = {"comment": Where.COMMENT, "summary": Where.SUMMARY, "search": Where.SEARCH}


class ReviewField(TextArea, Placed):
    """A few lines below the changes; not there until it is needed."""

    DEFAULT_CSS = """
    ReviewField {
        display: none;
        height: 3;
        min-height: 3;
        border: round $panel-lighten-2;
        padding: 0 1;
        background: $background;
        border-title-color: $text-warning;
        border-subtitle-color: $text-muted;
        &:focus { border: round $border; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    class Done(Message):
        """Enter, or Escape (`left`): what stands in it is what was meant, or not yet."""

        def __init__(self, purpose: Purpose, text: str, *, left: bool) -> None:
            super().__init__()
            self.purpose: Purpose = purpose
            self.text = text
            self.left = left

    def __init__(self) -> None:
        super().__init__(show_line_numbers=False, soft_wrap=True, compact=False)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.purpose: Purpose = "comment"

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return _PLACES[self.purpose]

    def open(self, purpose: Purpose, title: str, text: str, note: str = "") -> None:
        """Shows it with a text, and gives it the keys."""
        self.purpose = purpose
        self.text = text
        self.border_title, self.border_subtitle = title, note
        self.move_cursor(self.document.end)
        self.display = True
        self.screen.set_focus(self)

    def close(self) -> None:
        """It is not there any more."""
        self.display = False
        self.text = ""

    def on_text_area_changed(self) -> None:
        lines = max(1, min(MOST_LINES, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != lines + 2:
            self.styles.height = lines + 2

    async def _on_key(self, event: events.Key) -> None:
        match which(self.place, event.key).rpartition(".")[2]:
            case "keep" | "send" | "go" | "leave" as meant:
                self._stop(event)
                hold_keys(self)
                self.post_message(self.Done(self.purpose, self.text, left=meant == "leave"))
            case "newline":
                self._stop(event)
                self.insert("\n")
            case _ if self.purpose == "search" and self._would_break(event.key):
                self._stop(event)
            case _:
                await super()._on_key(event)

    @staticmethod
    def _would_break(key: str) -> bool:
        return key == "enter" or bool(which(Where.COMMENT, key))

    def _stop(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
