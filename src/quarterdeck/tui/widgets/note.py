"""A few sentences where content will be, or was: they can have the focus, so the keys still work."""

from typing import ClassVar

from textual.binding import BindingType
from textual.widgets import Static

from quarterdeck.tui.actions import Where, prompt_bindings


class Note(Static, can_focus=True):
    """Text in the place of content."""

    DEFAULT_CSS = """
    Note {
        height: 1fr;
        padding: 1 2;
        color: $text-muted;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.NO_TERMINAL)]

    def __init__(self, text: str, *, id: str | None = None) -> None:
        super().__init__(text, id=id, markup=False)
