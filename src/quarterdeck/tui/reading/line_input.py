"""One line to type in."""

from textual.geometry import Size
from textual.reactive import Reactive
from textual.widgets import Input


class LineInput(Input):
    """An input of one row whose text does not lay the screen out again with every character."""

    DEFAULT_CSS = """
    LineInput {
        background: $surface;
        &:focus { background: $boost; }
        & > .input--cursor { text-style: reverse; }
    }
    """

    virtual_size = Reactive(Size(0, 0), layout=False)

    def __init__(self, *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, compact=True, id=id)
        self.cursor_blink = False
