"""The keys of what has the focus, then those that work anywhere."""

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from quarterdeck.tui.actions import ACTIONS, Where, shown_key
from quarterdeck.tui.type_ahead import release_keys


def key_table(where: Where) -> Table:
    """The actions of one place as a table."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for action in ACTIONS[where]:
        keys = " ".join(shown_key(key) for key in action.keys.split(","))
        table.add_row(Text(keys, style="bold"), Text(action.help))
    return table


class HelpScreen(ModalScreen[None]):
    """Closed by Escape, `?` or `q`."""

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        & > VerticalScroll {
            width: 76;
            max-width: 96%;
            height: auto;
            max-height: 90%;
            padding: 1 2;
            background: $surface;
            border: round $primary;
        }
        & .title { text-style: bold; color: $text-primary; }
        & .space { height: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,f1", "dismiss", "Close")
    ]

    def __init__(self, where: Where) -> None:
        super().__init__()
        self._where = where

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            places = [self._where, *(place for place in Where if place != self._where)]
            for place in places:
                yield Static(place.value, classes="title", markup=False)
                yield Static(key_table(place))
                yield Static("", classes="space")
            yield Static("Closing the cockpit stops nothing: open it again with qd.", markup=False)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VerticalScroll))
        release_keys(self)
