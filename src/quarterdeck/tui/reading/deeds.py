"""What a key asks for, told to the pane that can do it."""

from typing import cast

from textual.message import Message
from textual.widget import Widget

from quarterdeck.tui.type_ahead import hold_keys


class Deed(Message):
    """Something the pane around does. Keys typed meanwhile are held: the pane releases them."""

    def __init__(self, name: str, origin: Widget) -> None:
        super().__init__()
        self.name = name
        self.origin = origin


class Doer:
    """Put among the bases of a widget with keys that its pane carries out."""

    def action_deed(self, name: str) -> None:
        """Part of the table of actions: `deed('name')`."""
        widget = cast("Widget", self)
        hold_keys(widget)
        widget.post_message(Deed(name, widget))
