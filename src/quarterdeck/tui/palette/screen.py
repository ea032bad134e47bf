"""The palette over whatever is shown."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input

from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.palette.choices import Choices
from quarterdeck.tui.palette.entries import Entry
from quarterdeck.tui.palette.fuzzy import ranked
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.type_ahead import hold_keys, release_keys


class PaletteScreen(Dialog[Entry | None]):
    """Answers what was chosen."""

    DEFAULT_CSS = """
    PaletteScreen {
        align: center top;
        & > Vertical {
            width: 76;
            max-width: 96%;
            height: 22;
            max-height: 90%;
            margin-top: 1;
            padding: 0 1;
            background: $surface;
            border: round $primary;
        }
        & Input { background: $boost; margin-bottom: 1; }
    }
    """
    place: ClassVar[Where] = Where.PALETTE
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.PALETTE)]

    def __init__(self, entries: list[Entry]) -> None:
        super().__init__()
        self._entries = entries

    def compose(self) -> ComposeResult:
        with Vertical():
            field = Input(placeholder="An action, a replica, a page", compact=True)
            field.cursor_blink = False
            yield field
            yield Choices()

    def on_mount(self) -> None:
        self._show("")
        self.set_focus(self.query_one(Input))
        release_keys(self)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, query: str) -> None:
        self._choices.show(ranked(query, self._entries, lambda entry: entry.text))

    @property
    def _choices(self) -> Choices:
        return self.query_one(Choices)

    def action_move(self, by: int) -> None:
        """To another line."""
        self._choices.move(by)

    @on(Choices.Chosen)
    def action_run(self) -> None:
        """Does what is under the cursor."""
        # Through the queue: what was typed before Enter is in the field by then.
        self.call_later(self._run)

    def _run(self) -> None:
        query = self.query_one(Input).value
        found = ranked(query, self._entries, lambda entry: entry.text)
        chosen = self._choices.chosen
        if chosen is None or all(entry is not chosen for entry, _ in found):
            # The field is ahead of the lines that are shown.
            chosen = found[0][0] if found else None
        if chosen is not None:
            hold_keys(self)
            self.dismiss(chosen)

    def action_close(self) -> None:
        """Back to where the person was."""
        self.dismiss(None)
