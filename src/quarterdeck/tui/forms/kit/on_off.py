"""A switch in words: colour alone tells some people nothing."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static


class OnOff(Static, can_focus=True):
    """On or off; space, enter and a click turn it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "turn", "Turn it", show=False),
    ]

    value: reactive[bool] = reactive(False, init=False)

    class Changed(Message):
        """It was turned."""

        def __init__(self, switch: "OnOff") -> None:
            super().__init__()
            self.switch = switch

        @property
        def control(self) -> "OnOff":
            """The switch."""
            return self.switch

    def __init__(self, held: bool, *, id: str | None = None) -> None:
        super().__init__(_words(held), markup=False, id=id)
        self.set_reactive(OnOff.value, held)

    def watch_value(self) -> None:
        self.update(_words(self.value))
        self.post_message(self.Changed(self))

    def action_turn(self) -> None:
        self.value = not self.value

    def on_click(self) -> None:
        self.action_turn()


def _words(on: bool) -> str:
    return "[x] yes" if on else "[ ] no"
