"""What every dialog has: the help of its own keys, and the way out of the cockpit."""

from typing import ClassVar, Generic, TypeVar

from textual.binding import BindingType
from textual.screen import ModalScreen

from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.type_ahead import hold_keys

R = TypeVar("R")


class Dialog(ModalScreen[R], Generic[R]):
    """`place` are the keys that its help tells, as far as the dialog has them."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.DIALOG)]
    place: ClassVar[Where]

    def action_help(self) -> None:
        """Tells the keys; what was typed stays as it is."""
        from quarterdeck.tui.screens.help import HelpScreen

        hold_keys(self)
        known = frozenset(one.id for _, one in self._bindings if one.id)
        self.app.push_screen(HelpScreen(self.place, known))

    def action_leave(self) -> None:
        """Closes the cockpit."""
        self.app.exit(0)
