"""Dialogs: questions with a button for each answer, prompts for a few lines or one of several choices."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from quarterdeck.client.errors import ClientError
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, bindings, keyed
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.fields import LineInput

if TYPE_CHECKING:
    from textual.widgets.button import ButtonVariant


R = TypeVar("R")


class Dialog(ModalScreen[R], Generic[R]):
    """`place` selects the keys that its help shows, as far as the dialog has them.

    It is drawn over the screen below, whose colors stay: to dim them would draw all of it twice. A dialog that
    is a `SettledLayout` too has this class first, as Textual inherits styles from the first base only.
    """

    DEFAULT_CSS = """
    Dialog { background: transparent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.DIALOG)]
    place: ClassVar[KeyContext]

    def show_error(self, field: str, text: str) -> None:
        """Show an error below the field of this id, or below the form for one that has no field."""
        error_line = self.query_one(f"#{field}-error", Static)
        error_line.update(Text(one_line(text)))
        error_line.display = True
        fields = self.query(f"#{field}")
        if fields:
            self.set_focus(fields.first())
        else:
            self.call_after_refresh(error_line.scroll_visible, animate=False)

    def action_help(self) -> None:
        """Show the keys; what was typed is kept."""
        from quarterdeck.tui.screens.help import HelpScreen

        known = frozenset(binding.id for _, binding in self._bindings if binding.id)
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
            border: round $text-warning;
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


@dataclass(frozen=True)
class AskField:
    """`value` is the initial text; `hint` is shown while it is empty."""

    name: str
    label: str
    value: str = ""
    hint: str = ""


class WrongFieldError(Exception):
    """The text of a field is invalid; `text` is shown next to it."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


Submit = Callable[[Mapping[str, str]], Awaitable[None]]
"""Carries out the request. Raises `WrongFieldError`, or the client's errors."""


class AskScreen(Dialog[bool], SettledLayout[bool]):
    """Dismissed with True when it was carried out. A refusal is shown and nothing typed is lost."""

    DEFAULT_CSS = """
    AskScreen {
        align: center middle;
        & > VerticalScroll {
            width: 72;
            max-width: 98%;
            height: auto;
            max-height: 98%;
            padding: 0 2 1 2;
            background: $surface;
            border: round $border;
        }
        & Label { color: $text-muted; margin-top: 1; }
        & .error { color: $text-error; height: auto; display: none; }
        & #hint { color: $text-muted; margin-top: 1; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.FORM
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="form.close"),
        Binding("ctrl+s", "submit", "Carry out", id="form.save"),
        Binding("tab", "app.focus_next", "Next", show=False, priority=True, id="form.next"),
        Binding("down", "app.focus_next", "Next field", show=False, priority=True),
        Binding(
            "shift+tab", "app.focus_previous", "Before", show=False, priority=True, id="form.before"
        ),
        Binding("up", "app.focus_previous", "Previous field", show=False, priority=True),
    ]

    def __init__(self, title: str, fields: Sequence[AskField], submit: Submit, verb: str) -> None:
        super().__init__()
        self._heading = title
        self._fields = fields
        self._submit = submit
        self._verb = verb
        self._busy = False

    def compose(self) -> ComposeResult:
        box = VerticalScroll()
        box.can_focus = False
        box.border_title = Text(self._heading)
        with box:
            for field in self._fields:
                yield Label(field.label, markup=False)
                yield LineInput(field.value, placeholder=field.hint, id=field.name)
                yield Static(id=f"{field.name}-error", classes="error", markup=False)
            yield Static(id="form-error", classes="error", markup=False)
            enter = "enter" if len(self._fields) == 1 else "enter next · {form.save}"
            yield Static(
                keyed(f"{enter} {self._verb} · {{form.close}} close"), id="hint", markup=False
            )

    def on_mount(self) -> None:
        self.set_focus(self.query(Input).first())

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        if event.input is self.query(Input).last():
            self.action_submit()
        else:
            self.focus_next()

    def action_submit(self) -> None:
        if not self._busy:
            self._busy = True
            self._carry_out()

    @work(exclusive=True)
    async def _carry_out(self) -> None:
        for error_line in self.query(".error").results(Static):
            error_line.display = False
        try:
            await self._submit({line.id or "": line.value.strip() for line in self.query(Input)})
        except WrongFieldError as error:
            self.show_error(error.field, str(error))
        except ClientError as error:
            self.show_error("form", f"{error} {error.next_step}")
        else:
            self.dismiss(True)
        finally:
            self._busy = False

    def action_cancel(self) -> None:
        self.dismiss(False)


@dataclass(frozen=True)
class Choice:
    """`id` is the result; an unusable one is shown with its reason, but cannot be chosen."""

    id: str
    label: str
    usable: bool = True


class ChooseScreen(Dialog["str | None"], SettledLayout["str | None"]):
    """Dismissed with the chosen id, or None. With `free`, the typed text may be the result."""

    DEFAULT_CSS = """
    ChooseScreen {
        align: center middle;
        & > Vertical {
            width: 72;
            max-width: 98%;
            height: auto;
            max-height: 90%;
            padding: 0 1;
            background: $surface;
            border: round $border;
        }
        & OptionList { height: auto; max-height: 14; border: none; background: $surface; }
        & Static { color: $text-muted; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.FORM
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="form.close"),
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
    ]

    def __init__(self, title: str, choices: Sequence[Choice], *, free: bool = False) -> None:
        super().__init__()
        self._heading = title
        self._choices = choices
        self._free = free
        self._shown: list[Choice] = []

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = Text(self._heading)
        with box:
            words = "filter, or another name" if self._free else "filter"
            line = Input(placeholder=words, compact=True)
            line.cursor_blink = False
            yield line
            listing = OptionList(markup=False)
            listing.can_focus = False
            yield listing
            yield Static(keyed("enter select · {form.close} close"), markup=False)

    def on_mount(self) -> None:
        self._show("")
        self.set_focus(self.query_one(Input))

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, typed: str) -> None:
        wanted = typed.strip().lower()
        self._shown = [
            choice
            for choice in self._choices
            if wanted in choice.label.lower() or wanted in choice.id.lower()
        ]
        listing = self.query_one(OptionList)
        listing.clear_options()
        listing.add_options(
            Option(Text(one_line(choice.label)), disabled=not choice.usable)
            for choice in self._shown
        )
        listing.action_first()

    def action_move(self, by: int) -> None:
        listing = self.query_one(OptionList)
        if by > 0:
            listing.action_cursor_down()
        else:
            listing.action_cursor_up()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        at = self.query_one(OptionList).highlighted
        if at is not None and self._shown[at].usable:
            self.dismiss(self._shown[at].id)
        elif self._free and event.value.strip():
            self.dismiss(event.value.strip())

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        if self._shown[event.option_index].usable:
            self.dismiss(self._shown[event.option_index].id)

    def action_cancel(self) -> None:
        self.dismiss(None)
