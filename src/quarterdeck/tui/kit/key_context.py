"""Which keys apply at the focus."""

from collections.abc import Mapping

from textual.message import Message
from textual.widget import Widget

from quarterdeck.tui.actions import KeyContext


class KeyContextChanged(Message):
    """The current keys have changed, though the focus has not moved."""


class HasKeyContext:
    """Mixin for a widget; whatever has the focus inside it uses these keys.

    The nearest one around the focus applies.
    """

    @property
    def place(self) -> KeyContext:
        """The place whose keys apply here, for help and the bottom line."""
        raise NotImplementedError

    @property
    def without(self) -> frozenset[str]:
        """The actions of the place, by id, that currently have no effect."""
        return frozenset[str]()

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels for the bottom line, by action id, that currently replace those of the table."""
        return {}


def nearest_context(focused: Widget | None) -> HasKeyContext:
    """Return what says which keys have an effect at the focus."""
    around = focused.ancestors_with_self if focused is not None else ()
    return next((node for node in around if isinstance(node, HasKeyContext)), HasKeyContext())


def key_context_of(focused: Widget | None, otherwise: KeyContext) -> KeyContext:
    """Return the place of the focused widget."""
    for node in focused.ancestors_with_self if focused is not None else ():
        if isinstance(node, HasKeyContext):
            return node.place
    return otherwise
