"""The keys of the current place, of the tabs, and those that work anywhere; then of all places."""

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

from quarterdeck.tui.actions import (
    ACTIONS,
    KeyContext,
    bindings,
    keyed,
    shown_key,
    shown_keys,
)
from quarterdeck.tui.actions.model import ALL_KEYS, AROUND

ALWAYS = (KeyContext.TABS, KeyContext.ANYWHERE)
AUTOMATION_PAGE = (KeyContext.AUTOMATIONS, KeyContext.AUTOMATION_FACTS, KeyContext.AUTOMATION_RUNS)
_AFTER = {
    KeyContext.TERMINAL: [KeyContext.TERMINAL_COMMAND],
}
"""What else works in a place, or after one more key."""
CLOSING = "Closing the cockpit stops nothing: open it again with qd."
REBINDING = 'Rebind in config.toml: [keys] "{id}" = "{key}".'


def help_places(where: KeyContext, *, every: bool, tabs: bool = True) -> list[KeyContext]:
    """Return the places whose keys are shown, in order; those of the tabs only if `tabs` are on the screen."""
    dialog = KeyContext.DIALOG in AROUND.get(where, ())
    first = [where, KeyContext.DIALOG] if dialog else _of_a_page(where)
    if not every:
        return [place for place in first if tabs or place is not KeyContext.TABS]
    return first + [place for place in KeyContext if place not in first]


def _of_a_page(where: KeyContext) -> list[KeyContext]:
    # For automations, the whole page that is open; it has no tabs of a replica.
    if where is KeyContext.AUTOMATION_RUN:
        return [where, KeyContext.ANYWHERE]
    if where in AUTOMATION_PAGE:
        others = [place for place in AUTOMATION_PAGE if place is not where]
        return [where, *others, KeyContext.ANYWHERE]
    around = [place for place in AROUND.get(where, ()) if place not in ALWAYS]
    after = _AFTER.get(where, [])
    return [where, *around, *after, *(place for place in ALWAYS if place != where)]


def key_table(
    where: KeyContext,
    *,
    ids: bool,
    known: frozenset[str] | None = None,
    without: frozenset[str] = frozenset(),
) -> Table:
    """Return the actions of one place; what has no key is dim. `ids` adds the ids for rebinding.

    Only actions in `known`, if given, are listed, and none in `without`.
    """
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=12)
    table.add_column()
    if ids:
        table.add_column(no_wrap=True)
    for action in ACTIONS[where]:
        if known is not None and action.method and action.id not in known:
            continue
        if action.id in without:
            continue
        keys = " ".join(shown_keys(action))
        row = [Text(keys or "no key", style="bold" if keys else "dim"), Text(action.help)]
        table.add_row(*row, *([Text(action.id, style="dim")] if ids else []))
    return table


class HelpScreen(ModalScreen[None]):
    """Closed by Escape, `q` or the key that opened it; `?` again shows all places."""

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
            border: round $border;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.HELP)]

    def __init__(
        self,
        where: KeyContext,
        known: frozenset[str] | None = None,
        *,
        tabs: bool = True,
        without: frozenset[str] = frozenset(),
    ) -> None:
        """Show the keys of a place.

        `known` are the actions of the place that a dialog has; None means all. `without` have no effect
        now. `tabs`: the tabs of a replica are on the screen.
        """
        super().__init__()
        self._without = without
        self._tabs = tabs
        self._where = where
        self._known = known
        self._every = False

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            # The line of keys is empty below it.
            box.border_subtitle = keyed("{help.all} all keys · {help.close} close")
            yield Static(self._content())

    def _content(self) -> Group:
        return Group(*self._parts())

    def _parts(self) -> Iterable[Text | Table]:
        for place in help_places(self._where, every=self._every, tabs=self._tabs):
            yield Text(place.value, style="bold underline")
            here = place is self._where and not self._every
            yield key_table(
                place,
                ids=self._every,
                known=self._known if here else None,
                without=self._without if here else frozenset(),
            )
            yield Text()
        if self._every:
            yield Text(REBINDING.format(id="replica.delete", key="D"))
        elif key := shown_key(ALL_KEYS):
            yield Text(f"Press {key} again for all keys and their config ids.")
        yield Text(CLOSING)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VerticalScroll))

    def action_every_place(self) -> None:
        """Show all places, or only the relevant ones again."""
        self._every = not self._every
        self.query_one(Static).update(self._content())
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_close(self) -> None:
        """Close."""
        self.dismiss(None)
