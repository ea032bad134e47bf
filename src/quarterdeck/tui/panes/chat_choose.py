"""A small dialog that chooses one of a list: an agent, a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from quarterdeck.tui.actions import Where
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys


@dataclass(frozen=True)
class Choice:
    """`id` is what is answered; an unusable one is shown, and why, but cannot be chosen."""

    id: str
    label: str
    usable: bool = True


class ChooseScreen(SettledLayout["str | None"], Dialog["str | None"]):
    """Dismissed with the id of what was chosen, or None. With `free`, what was typed may be it."""

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
            border: round $primary;
        }
        & OptionList { height: auto; max-height: 14; border: none; background: $surface; }
        & Static { color: $text-muted; }
    }
    """
    place: ClassVar[Where] = Where.FORM
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
        box.border_title = self._heading
        with box:
            words = "filter, or another name" if self._free else "filter"
            line = Input(placeholder=words, compact=True)
            line.cursor_blink = False
            yield line
            listing = OptionList(markup=False)
            listing.can_focus = False
            yield listing
            yield Static(keyed("enter chooses, {form.close} closes"), markup=False)

    def on_mount(self) -> None:
        self._show("")
        self.set_focus(self.query_one(Input))
        release_keys(self)

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, typed: str) -> None:
        wanted = typed.strip().lower()
        self._shown = [
            one for one in self._choices if wanted in one.label.lower() or wanted in one.id.lower()
        ]
        listing = self.query_one(OptionList)
        listing.clear_options()
        listing.add_options(
            Option(Text(one_line(one.label)), disabled=not one.usable) for one in self._shown
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
