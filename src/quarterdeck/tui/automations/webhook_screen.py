"""How to call a new webhook, shown once; later it is masked until revealed."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.dialogs import Dialog


class WebhookScreen(Dialog[None]):
    """Closed by escape or enter; `y` copies."""

    DEFAULT_CSS = """
    WebhookScreen {
        align: center middle;
        & > Vertical {
            width: 84;
            max-width: 96%;
            height: auto;
            padding: 1 2;
            background: $surface;
            border: round $primary;
        }
        & #call { margin: 1 0; color: $text-accent; }
        & .muted { color: $text-muted; }
        & .notice { color: $text-warning; }
        & Horizontal { height: auto; margin-top: 1; align-horizontal: right; }
        & Button { margin-left: 2; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.SHOWN_ONCE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="shown.copy"),
        Binding("escape", "close", "Close", id="shown.close"),
        Binding("left,right", "app.focus_next", "Other button", show=False),
    ]

    def __init__(self, name: str, call: str, notices: Sequence[str] = ()) -> None:
        """`notices` say what keeps calls from reaching the service."""
        super().__init__()
        self._name = name
        self._call = call
        self._notices = notices

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(f"The webhook of {one_line(self._name)}", markup=False)
            yield Static(one_line(self._call), id="call", markup=False)
            yield Static(
                "Whoever has the token can start a run, unless calls have to be signed. "
                "A POST of JSON is its payload.",
                classes="muted",
                markup=False,
            )
            for notice in self._notices:
                yield Static(one_line(notice), classes="notice", markup=False)
            with Horizontal():
                yield Button(
                    keyed("Copy ({shown.copy})"), id="copy", variant="primary", compact=True
                )
                yield Button(keyed("Close ({shown.close})"), id="close", compact=True)

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#close", Button))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "copy":
            self.action_copy()
        else:
            self.action_close()

    def action_copy(self) -> None:
        copy_text(self, self._call)

    def action_close(self) -> None:
        self.dismiss(None)
