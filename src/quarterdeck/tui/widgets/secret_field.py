"""Where a secret is typed: masked, in memory only, and gone when it is given."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.widgets.placed import Placed


class SecretField(Vertical, Placed):
    """Takes the composer's place while a secret is asked for: no draft is made of what is in it."""

    DEFAULT_CSS = """
    SecretField {
        display: none;
        height: 3;
        border: round $warning;
        padding: 0 1;
        border-title-color: $text-warning;
        border-subtitle-color: $text-muted;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.SECRET)]

    class Given(Message):
        """The person gave the secret to the question."""

        def __init__(self, request_id: str, text: str) -> None:
            super().__init__()
            self.request_id = request_id
            self.text = text

    def __init__(self) -> None:
        super().__init__()
        self._request_id = ""
        self.border_title = "Secret answer"
        self.border_subtitle = keyed("{secret.give} gives it; it is kept nowhere")

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.SECRET

    @property
    def field(self) -> Input:
        """What takes the keys."""
        return self.query_one(Input)

    def compose(self) -> ComposeResult:
        line = Input(password=True, compact=True)
        line.cursor_blink = False
        yield line

    def ask(self, request_id: str) -> None:
        """A secret is asked for: another question begins with an empty field."""
        if request_id != self._request_id:
            self._request_id = request_id
            self.clear()

    def clear(self) -> None:
        """Forgets what was typed."""
        self.field.clear()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value:
            self.post_message(self.Given(self._request_id, event.value))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
