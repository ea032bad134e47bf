"""The line in which words to find are written, below the transcript."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from quarterdeck.tui.actions import Where
from quarterdeck.tui.widgets.placed import Placed


class FindLine(Horizontal, Placed):
    """Absent until it is asked for. Enter goes to the transcript, where n and N go on."""

    DEFAULT_CSS = """
    FindLine {
        display: none;
        height: 1;
        margin: 0 1;
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

    class Changed(Message):
        """Other words are looked for."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    class Left(Message):
        """The person is done writing; `keep` the marks, and go on with n and N."""

        def __init__(self, keep: bool) -> None:
            super().__init__()
            self.keep = keep

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.CHAT_FIND

    @property
    def field(self) -> Input:
        """What takes the keys."""
        return self.query_one(Input)

    def compose(self) -> ComposeResult:
        yield Static("/", classes="sign")
        line = Input(compact=True, placeholder="find in the transcript")
        line.cursor_blink = False
        yield line
        yield Static(id="found", markup=False)

    def say(self, text: str) -> None:
        """What came of it."""
        self.query_one("#found", Static).update(text)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_leave(True)

    def action_leave(self, keep: bool) -> None:
        self.post_message(self.Left(keep and bool(self.field.value)))
