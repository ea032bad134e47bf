"""The keys of what has the focus, of the tabs, and those that work anywhere; then of all places."""

from collections.abc import Iterable
from typing import ClassVar

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from quarterdeck.tui.actions import ACTIONS, Where, bindings, shown_key, shown_keys
from quarterdeck.tui.actions.anywhere import ALL_KEYS
from quarterdeck.tui.actions.model import AROUND
from quarterdeck.tui.type_ahead import release_keys

ALWAYS = (Where.TABS, Where.ANYWHERE)
CLOSING = "Closing the cockpit stops nothing: open it again with qd."
REBINDING = 'Other keys: a table [keys] in config.toml, as in "{id}" = "{key}".'


def places_told(where: Where, *, every: bool) -> list[Where]:
    """The places whose keys are told, in order."""
    dialog = Where.DIALOG in AROUND.get(where, ())
    first = [where, Where.DIALOG] if dialog else _of_a_page(where)
    if not every:
        return first
    return first + [place for place in Where if place not in first]


def _of_a_page(where: Where) -> list[Where]:
    around = [place for place in AROUND.get(where, ()) if place not in ALWAYS]
    after = [Where.TERMINAL_COMMAND] if where is Where.TERMINAL else []
    return [where, *around, *after, *(place for place in ALWAYS if place != where)]


def key_table(where: Where, *, ids: bool, known: frozenset[str] | None = None) -> Table:
    """The actions of one place; what has no key is dim. `ids` tells how to name them.

    With `known`, what is not among these ids is left out.
    """
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=12)
    table.add_column()
    if ids:
        table.add_column(no_wrap=True)
    for action in ACTIONS[where]:
        if known is not None and action.method and action.id not in known:
            continue
        keys = " ".join(shown_keys(action))
        row = [Text(keys or "no key", style="bold" if keys else "dim"), Text(action.help)]
        table.add_row(*row, *([Text(action.id, style="dim")] if ids else []))
    return table


class HelpScreen(ModalScreen[None]):
    """Closed by Escape, `q` or the key that opened it elsewhere; `?` again tells all places."""

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        & > VerticalScroll {
            width: 84;
            max-width: 96%;
            height: auto;
            max-height: 90%;
            padding: 1 2;
            background: $surface;
            border: round $primary;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.HELP)]

    def __init__(self, where: Where, known: frozenset[str] | None = None) -> None:
        """`known` are the actions of the place that a dialog has; None stands for all."""
        super().__init__()
        self._where = where
        self._known = known
        self._every = False

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._content())

    def _content(self) -> Group:
        return Group(*self._parts())

    def _parts(self) -> Iterable[Text | Table]:
        for place in places_told(self._where, every=self._every):
            yield Text(place.value, style="bold underline")
            known = self._known if place is self._where and not self._every else None
            yield key_table(place, ids=self._every, known=known)
            yield Text()
        if self._every:
            yield Text(REBINDING.format(id="replica.delete", key="D"))
        elif key := shown_key(ALL_KEYS):
            yield Text(f"{key} again tells the keys of all places, and what to call them.")
        yield Text(CLOSING)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VerticalScroll))
        release_keys(self)

    def action_every_place(self) -> None:
        """Tells all places, or those that matter here again."""
        self._every = not self._every
        self.query_one(Static).update(self._content())
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_close(self) -> None:
        """Back to where the person was."""
        self.dismiss(None)
