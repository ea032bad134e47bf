"""Asks before something is destroyed, and names what goes."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.type_ahead import release_keys


class ConfirmScreen(Dialog[bool]):
    """Yes or no; no is what Enter and Escape say."""

    DEFAULT_CSS = """
    ConfirmScreen {
        align: center middle;
        & > Vertical {
            width: 64;
            max-width: 90%;
            height: auto;
            padding: 1 2;
            background: $surface;
            border: round $error;
        }
        & Horizontal { height: auto; margin-top: 1; align-horizontal: right; }
        & Button { margin-left: 2; }
    }
    """
    place: ClassVar[Where] = Where.CONFIRM
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Where.CONFIRM),
        Binding("left,right", "app.focus_next", "Other button", show=False),
    ]

    def __init__(self, question: str, consequence: str, yes: str) -> None:
        super().__init__()
        self._question = question
        self._consequence = consequence
        self._yes = yes

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question, markup=False)
            yield Static(self._consequence, markup=False)
            with Horizontal():
                yield Button(keyed("No ({confirm.no})"), id="no", compact=True)
                yield Button(
                    f"{self._yes} {keyed('({confirm.yes})')}",
                    id="yes",
                    variant="error",
                    compact=True,
                )

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#no", Button))
        release_keys(self)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
