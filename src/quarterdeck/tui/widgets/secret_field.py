"""Input of a secret: masked, in memory only, and cleared when it is sent."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from quarterdeck.tui.actions import KeyContext, prompt_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.kit.key_context import HasKeyContext


class SecretField(Vertical, HasKeyContext):
    """Replaces the composer while a secret is requested: its text is never a draft."""

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

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.SECRET)]

    class Given(Message):
        """The user answered the question with the secret."""

        def __init__(self, request_id: str, text: str) -> None:
            super().__init__()
            self.request_id = request_id
            self.text = text

    def __init__(self) -> None:
        super().__init__()
        self._request_id = ""
        self.border_title = "Secret answer"
        self.border_subtitle = keyed("{secret.give} submit · never stored")

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.SECRET

    @property
    def field(self) -> Input:
        """The widget that gets the focus."""
        return self.query_one(Input)

    def compose(self) -> ComposeResult:
        line = Input(password=True, compact=True)
        line.cursor_blink = False
        yield line

    def ask(self, request_id: str) -> None:
        """Note that a secret is requested: another question starts with an empty field."""
        if request_id != self._request_id:
            self._request_id = request_id
            self.clear()

    def clear(self) -> None:
        """Forget what was typed."""
        self.field.clear()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value:
            self.post_message(self.Given(self._request_id, event.value))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
