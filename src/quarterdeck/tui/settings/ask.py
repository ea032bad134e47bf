"""One line that is asked for; a refusal stands below it, and nothing that was typed is lost."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from quarterdeck.client.errors import ClientError
from quarterdeck.tui.actions import Where, prompt_bindings, shown_key
from quarterdeck.tui.actions.settings import PLACES
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.surroundings import NotPossible
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys

EMPTY = "Nothing was typed."


class AskScreen(Dialog[str | None]):
    """`take` is given what was typed; the screen closes when that has worked, and answers it."""

    DEFAULT_CSS = """
    AskScreen, SecretScreen {
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
        & #problem { color: $text-error; height: auto; }
        & #secret { margin: 1 0; color: $text-success; }
    }
    """
    place: ClassVar[Where] = Where.ASKED
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.ASKED)]

    def __init__(
        self,
        title: str,
        explained: str,
        take: Callable[[str], Awaitable[object]],
        *,
        secret: bool = False,
    ) -> None:
        super().__init__()
        self._title = title
        self._explained = explained
        self._take = take
        self._secret = secret
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(one_line(self._title), classes="title", markup=False)
            yield Static(one_line(self._explained), classes="dim", markup=False)
            yield Input(password=self._secret, compact=True)
            yield Static(id="problem", markup=False)
            done, cancel = (shown_key(action) for action in PLACES[Where.ASKED])
            yield Static(f"{done} takes it   {cancel} cancels", classes="dim", markup=False)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(Input))
        release_keys(self)

    def action_submit(self) -> None:
        """Takes what was typed, behind what is still being typed."""
        self.call_later(self._submit)

    def action_cancel(self) -> None:
        """Leaves everything as it was."""
        self.dismiss(None)

    def _submit(self) -> None:
        typed = self.query_one(Input).value.strip()
        if self._busy:
            return
        if not typed:
            self._tell(EMPTY)
            return
        self._busy = True
        self._tell("")
        self._carry_out(typed)

    @work
    async def _carry_out(self, typed: str) -> None:
        try:
            await self._take(typed)
        except ClientError as error:
            self._tell(f"{error} {error.next_step}")
        except NotPossible as error:
            self._tell(str(error))
        else:
            self.dismiss(typed)
        finally:
            self._busy = False

    def _tell(self, problem: str) -> None:
        self.query_one("#problem", Static).update(one_line(problem))


class SecretScreen(Dialog[None]):
    """Shows a text that is told this once."""

    place: ClassVar[Where] = Where.SHOWN_ONCE
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.SHOWN_ONCE)]
    DEFAULT_CSS = AskScreen.DEFAULT_CSS

    def __init__(self, title: str, secret: str) -> None:
        super().__init__()
        self._title = title
        self._shown = secret

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(one_line(self._title), classes="title", markup=False)
            yield Static("It is shown this once, and kept nowhere readable.", classes="dim")
            yield Static(one_line(self._shown), id="secret", markup=False)
            copy, close = (shown_key(action) for action in PLACES[Where.SHOWN_ONCE])
            yield Static(f"{copy} copies it   {close} closes", classes="dim", markup=False)

    def on_mount(self) -> None:
        release_keys(self)

    def action_copy(self) -> None:
        """To the clipboard, if the terminal takes it."""
        from quarterdeck.tui.copying import copy_text

        copy_text(self.query_one("#secret", Static), self._shown)

    def action_close(self) -> None:
        """It is kept."""
        self.dismiss(None)
