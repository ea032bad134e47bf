"""A small dialog of a few lines to fill in: what a chat is called, its goal, a file's name."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Input, Label, Static

from quarterdeck.client.errors import ClientError
from quarterdeck.tui.actions import Where
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys


@dataclass(frozen=True)
class AskField:
    """`value` is what the line begins with; `hint` stands in it while it is empty."""

    name: str
    label: str
    value: str = ""
    hint: str = ""


class WrongFieldError(Exception):
    """What stands in a field cannot be used; `text` is said beside it."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


Submit = Callable[[Mapping[str, str]], Awaitable[None]]
"""Carries out what was filled in. Raises `WrongFieldError`, or the client's errors."""


class AskScreen(SettledLayout[bool], Dialog[bool]):
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
            border: round $primary;
        }
        & Label { color: $text-muted; margin-top: 1; }
        & .error { color: $text-error; height: auto; display: none; }
        & #hint { color: $text-muted; margin-top: 1; }
    }
    """
    place: ClassVar[Where] = Where.FORM
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="form.close"),
        Binding("ctrl+s", "submit", "Carry out", id="form.save"),
        Binding("tab", "app.focus_next", "Next", show=False, priority=True, id="form.next"),
        Binding("down", "app.focus_next", "Next field", show=False, priority=True),
        Binding(
            "shift+tab", "app.focus_previous", "Before", show=False, priority=True, id="form.before"
        ),
        Binding("up", "app.focus_previous", "Field before", show=False, priority=True),
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
        box.border_title = self._heading
        with box:
            for field in self._fields:
                yield Label(field.label, markup=False)
                line = Input(field.value, placeholder=field.hint, id=field.name, compact=True)
                line.cursor_blink = False
                yield line
                yield Static(id=f"{field.name}-error", classes="error", markup=False)
            yield Static(id="form-error", classes="error", markup=False)
            yield Static(
                keyed(f"enter {self._verb}, {{form.close}} closes"), id="hint", markup=False
            )

    def on_mount(self) -> None:
        self.set_focus(self.query(Input).first())
        release_keys(self)

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
        for said in self.query(".error").results(Static):
            said.display = False
        try:
            await self._submit({line.id or "": line.value.strip() for line in self.query(Input)})
        except WrongFieldError as error:
            self._say(error.field, str(error))
        except ClientError as error:
            self._say("form", f"{error} {error.next_step}")
        else:
            self.dismiss(True)
        finally:
            self._busy = False

    def _say(self, field: str, text: str) -> None:
        beside = self.query_one(f"#{field}-error", Static)
        beside.update(one_line(text))
        beside.display = True
        if field != "form":
            self.set_focus(self.query_one(f"#{field}"))

    def action_cancel(self) -> None:
        self.dismiss(False)
