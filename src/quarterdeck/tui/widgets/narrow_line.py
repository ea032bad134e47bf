"""The line above the list of replicas: what it is narrowed to, and how many are marked."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from quarterdeck.store.attention import WORDS
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.tui.widgets.placed import Placed

SUGGESTED = [f"is:{word}" for word in WORDS.values()]


class NarrowLine(Vertical, Placed):
    """Absent while everything is shown and nothing marked."""

    DEFAULT_CSS = """
    NarrowLine {
        height: auto;
        & Input { display: none; background: $boost; }
        & Static { display: none; padding: 0 1; color: $text-muted; }
        &.typing Input { display: block; }
        &.told Static { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.NARROWING)]

    class Changed(Message):
        """Other replicas should be shown."""

        def __init__(self, typed: str) -> None:
            super().__init__()
            self.typed = typed

    class Left(Message):
        """The person goes back to the list."""

    def __init__(self) -> None:
        super().__init__()
        self._field = Input(
            placeholder="name, is:asks, env:, repo:, agent:, from:, !not",
            suggester=SuggestFromList(SUGGESTED, case_sensitive=False),
            compact=True,
        )
        self._field.cursor_blink = False
        self._told = Static(markup=False)

    def compose(self) -> ComposeResult:
        yield self._field
        yield self._told

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.NARROWING

    @property
    def typed(self) -> str:
        """What the list is narrowed to, as it was typed."""
        return self._field.value

    def start(self) -> None:
        """Lets the person type."""
        self.add_class("typing")
        self.screen.set_focus(self._field)

    def show(self, shown: int, all_: int, marked: int) -> None:
        """Says how many are shown, of how many, and how many are marked."""
        parts = [f"{shown} of {all_}"] if self.typed.strip() else []
        parts += [f"{marked} marked"] if marked else []
        self.set_class(bool(parts), "told")
        self._told.update("  ".join(parts))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    def action_all(self) -> None:
        """Shows everything again."""
        self._go(lambda: self._leave(""))

    def action_leave_line(self) -> None:
        """Back to the list, which stays as it is."""
        self._go(lambda: self._leave(self.typed))

    def _go(self, leave: Callable[[], None]) -> None:
        # Through the field's queue: what was typed before the key is in it by then.
        hold_keys(self)
        self._field.call_later(leave)

    def _leave(self, typed: str) -> None:
        self._field.value = typed
        self.set_class(bool(typed.strip()), "typing")
        self.post_message(self.Left())
