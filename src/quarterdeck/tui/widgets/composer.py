"""Where a person writes to an agent: several lines, Enter sends."""

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import TextArea

from quarterdeck.tui.actions import Where, prompt_bindings

NEWLINE_KEYS = {"alt+enter", "ctrl+j", "shift+enter"}
MOST_LINES = 8


class Composer(TextArea):
    """A text area that grows to eight lines; what is in it is never lost."""

    DEFAULT_CSS = """
    Composer {
        height: 3;
        min-height: 3;
        border: round $panel-lighten-2;
        padding: 0 1;
        background: $background;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        &:focus { border: round $border; }
        &.plan { border: round $warning; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.COMPOSER)]

    plan_mode: reactive[bool] = reactive(False)

    class Submitted(Message):
        """The text should go to the agent."""

        def __init__(self, text: str, plan_mode: bool) -> None:
            super().__init__()
            self.text = text
            self.plan_mode = plan_mode

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, show_line_numbers=False, soft_wrap=True, compact=False)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.border_title = "Message"

    def where(self, words: str) -> None:
        """Says where Enter will send the text to."""
        self.border_subtitle = words

    def watch_plan_mode(self, on: bool) -> None:
        self.set_class(on, "plan")
        self.border_title = "Message · plan mode" if on else "Message"

    def on_text_area_changed(self) -> None:
        lines = max(1, min(MOST_LINES, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != lines + 2:
            self.styles.height = lines + 2

    async def _on_key(self, event: events.Key) -> None:
        match event.key:
            case "enter":
                self._enter(event)
            case key if key in NEWLINE_KEYS:
                self._stop(event)
                self.insert("\n")
            case "ctrl+t":
                self._stop(event)
                self.plan_mode = not self.plan_mode
            case _:
                await super()._on_key(event)

    def _enter(self, event: events.Key) -> None:
        self._stop(event)
        row, column = self.cursor_location
        if self.text and self.document.get_line(row)[:column].endswith("\\"):
            self.action_delete_left()
            self.insert("\n")
            return
        if self.text.strip():
            # Taken out at once: what is typed from here on is another message.
            self.post_message(self.Submitted(self.text, self.plan_mode))
            self.text = ""
            self.plan_mode = False

    def _stop(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()

    def put_back(self, text: str, plan_mode: bool) -> None:
        """A message was refused: it stands before what was written since."""
        self.text = f"{text}\n{self.text}" if self.text else text
        self.plan_mode = self.plan_mode or plan_mode
        self.move_cursor(self.document.end)
