"""One line that is typed into above a terminal: what to search for, or a name."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import Input

from quarterdeck.tui.actions import Where
from quarterdeck.tui.panes.terminal_keys import meaning
from quarterdeck.tui.widgets.placed import Placed

LONGEST = 256


class TerminalPrompt(Input, Placed):
    """Takes the place of the sessions' line, so that the terminal keeps its size."""

    DEFAULT_CSS = """
    TerminalPrompt { display: none; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+shift+a", "select_all", show=False),
    ]

    class Did(Message):
        """The person pressed a key of the prompt's own; `action` is its id."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self) -> None:
        super().__init__(compact=True, max_length=LONGEST, select_on_focus=False)
        self.cursor_blink = False
        self.where = Where.TERMINAL_FIND

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return self.where

    def open(self, where: Where, placeholder: str, text: str = "") -> None:
        """Shows the line; who opens it gives it the focus."""
        self.where = where
        self.placeholder = placeholder
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        self.display = True

    async def _on_key(self, event: Key) -> None:
        action = meaning(self.where, event.key)
        if not action:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        self.post_message(self.Did(action))
