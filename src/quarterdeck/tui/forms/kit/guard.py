"""Asks what should become of changes that were not saved."""

from enum import StrEnum
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.actions.sentences import keyed_briefly
from quarterdeck.tui.forms.kit.style import GUARD
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys


class Unsaved(StrEnum):
    """What a person wants."""

    SAVE = "save"
    DROP = "drop"
    STAY = "stay"


class UnsavedScreen(SettledLayout[Unsaved], Dialog[Unsaved]):
    """Save, drop, or stay; Escape stays."""

    DEFAULT_CSS = GUARD
    place: ClassVar[Where] = Where.UNSAVED
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.UNSAVED)]

    def __init__(self, what: str) -> None:
        """`what` was changed, in a few words."""
        super().__init__()
        self._what = what

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Not saved yet", markup=False)
            yield Static(f"Changed: {one_line(self._what)}.", markup=False)
            with Horizontal():
                yield Button(keyed_briefly("Stay ({unsaved.stay})"), id="stay", compact=True)
                yield Button(
                    keyed_briefly("Drop ({unsaved.drop})"), id="drop", variant="error", compact=True
                )
                yield Button(
                    keyed_briefly("Save ({unsaved.save})"),
                    id="save",
                    variant="primary",
                    compact=True,
                )

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#save", Button))
        release_keys(self)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(Unsaved(event.button.id))

    def action_answer(self, answer: str) -> None:
        self.dismiss(Unsaved(answer))
