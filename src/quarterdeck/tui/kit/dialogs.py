"""Dialogs, and questions with a button for each answer."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, bindings
from quarterdeck.tui.actions.sentences import keyed

if TYPE_CHECKING:
    from textual.widgets.button import ButtonVariant

R = TypeVar("R")


class Dialog(ModalScreen[R], Generic[R]):
    """`place` selects the keys that its help shows, as far as the dialog has them."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.DIALOG)]
    place: ClassVar[KeyContext]

    def action_help(self) -> None:
        """Show the keys; what was typed is kept."""
        from quarterdeck.tui.screens.help import HelpScreen

        known = frozenset(one.id for _, one in self._bindings if one.id)
        self.app.push_screen(HelpScreen(self.place, known))

    def action_leave(self) -> None:
        """Close the cockpit."""
        self.app.exit(0)


class DialogButton(NamedTuple, Generic[R]):
    """A button: the result that it dismisses the dialog with, and its look."""

    value: R
    id: str
    label: str
    variant: "ButtonVariant" = "default"


class QuestionScreen(Dialog[R], Generic[R]):
    """A question with a button for each answer; the button `focused` has the focus."""

    DEFAULT_CSS = """
    QuestionScreen {
        align: center middle;
        & > Vertical {
            width: 64;
            max-width: 94%;
            height: auto;
            padding: 1 2;
            background: $surface;
            border: round $warning;
        }
        & Horizontal { height: auto; margin-top: 1; align-horizontal: right; }
        & Button { margin-left: 2; }
    }
    """

    def __init__(
        self, texts: Sequence[str], answers: Sequence[DialogButton[R]], focused: str
    ) -> None:
        super().__init__()
        self._texts = texts
        self._answers = {answer.id: answer for answer in answers}
        self._focused = focused

    def compose(self) -> ComposeResult:
        with Vertical():
            for text in self._texts:
                yield Static(text, markup=False)
            with Horizontal():
                for _, id, label, variant in self._answers.values():
                    yield Button(label, id=id, variant=variant, compact=True)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(f"#{self._focused}", Button))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.action_answer(event.button.id or "")

    def action_answer(self, id: str) -> None:
        """Answer with the button of this id."""
        self.dismiss(self._answers[id].value)


class ConfirmScreen(QuestionScreen[bool]):
    """Yes or no; Enter and Escape mean no."""

    DEFAULT_CSS = "ConfirmScreen > Vertical { max-width: 90%; border: round $error; }"
    place: ClassVar[KeyContext] = KeyContext.CONFIRM
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KeyContext.CONFIRM),
        Binding("left,right", "app.focus_next", "Other button", show=False),
    ]

    def __init__(self, question: str, consequence: str, yes: str) -> None:
        no = DialogButton(False, "no", keyed("No ({confirm.no})"))
        sure = DialogButton(True, "yes", f"{yes} {keyed('({confirm.yes})')}", "error")
        super().__init__((question, consequence), (no, sure), "no")


class Unsaved(StrEnum):
    """What to do with unsaved changes."""

    SAVE = "save"
    DROP = "drop"
    STAY = "stay"


class UnsavedScreen(QuestionScreen[Unsaved]):
    """Save, drop, or stay; Escape stays."""

    DEFAULT_CSS = """
    UnsavedScreen { background: $background; &:ansi { background: ansi_default; } }
    """
    place: ClassVar[KeyContext] = KeyContext.UNSAVED
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.UNSAVED)]

    def __init__(self, what: str) -> None:
        """Ask about unsaved changes; `what` describes them in a few words."""
        super().__init__(
            ("Unsaved changes", f"Edited: {one_line(what)}."),
            (
                DialogButton(Unsaved.STAY, "stay", keyed("Cancel ({unsaved.stay})")),
                DialogButton(Unsaved.DROP, "drop", keyed("Discard ({unsaved.drop})"), "error"),
                DialogButton(Unsaved.SAVE, "save", keyed("Save ({unsaved.save})"), "primary"),
            ),
            "save",
        )
