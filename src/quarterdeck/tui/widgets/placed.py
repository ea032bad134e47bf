"""Parts of a screen that have keys of their own."""

from textual.message import Message
from textual.widget import Widget

from quarterdeck.tui.actions import Where


class PlaceChanged(Message):
    """Other keys are right from now on, though the focus has not moved."""


class Placed:
    """Put among the bases of a widget; what has the focus inside it has these keys.

    The nearest one around the focus counts.
    """

    @property
    def place(self) -> Where:
        """Which keys are right here, for help and the bottom line."""
        raise NotImplementedError


def place_of(focused: Widget | None, otherwise: Where) -> Where:
    """The place of what has the focus."""
    for node in focused.ancestors_with_self if focused is not None else ():
        if isinstance(node, Placed):
            return node.place
    return otherwise
