"""The line that opens the rarely used fields of a form."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static


class FoldLine(Static, can_focus=True):
    """Opened and folded by enter, space, or a click."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "turn", "Open or fold", show=False)
    ]

    open: reactive[bool] = reactive(False, init=False)

    class Turned(Message):
        """It is open now, or folded."""

        def __init__(self, line: "FoldLine") -> None:
            super().__init__()
            self.line = line

        @property
        def control(self) -> "FoldLine":
            """The line."""
            return self.line

    def __init__(self, count: int, opened: bool) -> None:
        self._count = count
        super().__init__(self._words(opened), classes="fold", markup=False)
        self.set_reactive(FoldLine.open, opened)

    def _words(self, opened: bool) -> str:
        return "▾ Less" if opened else f"▸ {self._count} more: enter opens"

    def watch_open(self, opened: bool) -> None:
        self.update(self._words(opened))
        self.post_message(self.Turned(self))

    def action_turn(self) -> None:
        self.open = not self.open

    def on_click(self) -> None:
        self.action_turn()
