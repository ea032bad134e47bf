"""A prompt for one line of the settings, and a text that is shown once."""

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, bindings, prompt_bindings, shown_key
from quarterdeck.tui.actions.pages import SETTINGS_PLACES
from quarterdeck.tui.host_services import NotSupportedError
from quarterdeck.tui.kit.dialogs import Dialog
from quarterdeck.tui.kit.prompts import AskField, AskScreen, WrongFieldError

EMPTY = "Required."


class AskValueScreen(AskScreen, inherit_bindings=False):
    """`take` is given the typed text; the screen closes when that has succeeded."""

    DEFAULT_CSS = """
    AskValueScreen { background: $background 60%; &:ansi { background: transparent; } }
    AskValueScreen, SecretScreen {
        align: center middle;
        & > Vertical {
            width: 72;
            max-width: 96%;
            height: auto;
            padding: 1 2;
            background: $surface;
            border: round $primary;
        }
        & Input { margin: 1 0; background: $boost; }
        & .title { text-style: bold; }
        & .dim { color: $text-muted; }
        & #secret { margin: 1 0; color: $text-success; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.ASKED
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KeyContext.DIALOG),
        *prompt_bindings(KeyContext.ASKED),
    ]

    def __init__(
        self,
        title: str,
        explained: str,
        take: Callable[[str], Awaitable[object]],
        *,
        secret: bool = False,
    ) -> None:
        super().__init__(title, [AskField("value", explained)], self._take_value, "save")
        self._take = take
        self._secret = secret
        self.typed = ""
        """The typed text, once it was accepted."""

    def compose(self) -> ComposeResult:
        (field,) = self._fields
        with Vertical():
            yield Static(one_line(self._heading), classes="title", markup=False)
            yield Static(one_line(field.label), classes="dim", markup=False)
            yield Input(password=self._secret, compact=True, id=field.name)
            yield Static(id=f"{field.name}-error", classes="error", markup=False)
            yield Static(id="form-error", classes="error", markup=False)
            done, cancel = (shown_key(action) for action in SETTINGS_PLACES[KeyContext.ASKED])
            yield Static(f"{done} save · {cancel} cancel", classes="dim", markup=False)

    def action_submit(self) -> None:
        """Accept the text, after what is still being typed."""
        self.call_later(super().action_submit)

    async def _take_value(self, values: Mapping[str, str]) -> None:
        if not values["value"]:
            raise WrongFieldError("value", EMPTY)
        try:
            await self._take(values["value"])
        except NotSupportedError as error:
            raise WrongFieldError("value", str(error)) from error
        self.typed = values["value"]


class SecretScreen(Dialog[None]):
    """Shows a text that is shown only once."""

    place: ClassVar[KeyContext] = KeyContext.SHOWN_ONCE
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.SHOWN_ONCE)]
    DEFAULT_CSS = AskValueScreen.DEFAULT_CSS

    def __init__(self, title: str, secret: str) -> None:
        super().__init__()
        self._title = title
        self._shown = secret

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(one_line(self._title), classes="title", markup=False)
            yield Static("Shown once. Copy it now.", classes="dim")
            yield Static(one_line(self._shown), id="secret", markup=False)
            copy, close = (shown_key(action) for action in SETTINGS_PLACES[KeyContext.SHOWN_ONCE])
            yield Static(f"{copy} copy · {close} close", classes="dim", markup=False)

    def action_copy(self) -> None:
        """Copy to the clipboard, if the terminal accepts it."""
        from quarterdeck.tui.clipboard import copy_text

        copy_text(self.query_one("#secret", Static), self._shown)

    def action_close(self) -> None:
        """Close; the user has saved the secret."""
        self.dismiss(None)
