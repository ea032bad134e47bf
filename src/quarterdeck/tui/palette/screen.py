"""The palette over whatever is shown."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input

from quarterdeck.tui.actions import KeyContext, prompt_bindings
from quarterdeck.tui.kit.dialogs import Dialog
from quarterdeck.tui.palette.entries import PaletteChoices, PaletteEntry
from quarterdeck.tui.palette.fuzzy import ranked


class PaletteScreen(Dialog[PaletteEntry | None]):
    """Dismissed with the chosen entry."""

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
    place: ClassVar[KeyContext] = KeyContext.PALETTE
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.PALETTE)]

    def __init__(self, entries: list[PaletteEntry]) -> None:
        super().__init__()
        self._entries = entries

    def compose(self) -> ComposeResult:
        with Vertical():
            field = Input(placeholder="Search commands and replicas", compact=True)
            field.cursor_blink = False
            yield field
            yield PaletteChoices()

    def on_mount(self) -> None:
        self._show("")
        self.set_focus(self.query_one(Input))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, query: str) -> None:
        self._choices.show(ranked(query, self._entries, lambda entry: entry.text))

    @property
    def _choices(self) -> PaletteChoices:
        return self.query_one(PaletteChoices)

    def action_move(self, by: int) -> None:
        """Move to another line."""
        self._choices.move(by)

    @on(PaletteChoices.Chosen)
    def action_run(self) -> None:
        """Choose the entry under the cursor."""
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
            self.dismiss(chosen)

    def action_close(self) -> None:
        """Close."""
        self.dismiss(None)
