"""A full screen over the deck: environments, automations, settings."""

from typing import ClassVar, Literal
from uuid import UUID

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from quarterdeck.store.changes import Change, ConnectionChanged, ListChanged, Noticed
from quarterdeck.store.deck import Deck
from quarterdeck.tui.actions import Where, bindings, brief_keys
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys, release_keys
from quarterdeck.tui.widgets.key_line import KeyLine
from quarterdeck.tui.widgets.placed import PlaceChanged, place_of
from quarterdeck.tui.widgets.status_line import StatusLine


class PageScreen(SettledLayout[UUID | None]):
    """Status line, body, key line. `home` is the place of what has no keys of its own.

    Dismissed with the replica to go to, or None.
    """

    DEFAULT_CSS = """
    PageScreen #page { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.PAGE), *bindings(Where.ANYWHERE)]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (120, "-wide")]
    home: ClassVar[Where] = Where.PAGE

    def __init__(self, deck: Deck) -> None:
        super().__init__()
        self._deck = deck
        self._scheduled = False

    def compose(self) -> ComposeResult:
        yield StatusLine()
        with Vertical(id="page"):
            yield from self.body()
        yield KeyLine()

    def body(self) -> ComposeResult:
        """What stands between the two lines."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self._stop_watching = self._deck.changed.watch(self._changed)
        self._show_status()
        self.show_keys()
        release_keys(self)

    def on_unmount(self) -> None:
        self._stop_watching()

    def _changed(self, change: Change) -> None:
        if not self.display:  # being closed: its parts go before it does
            return
        if isinstance(change, Noticed):
            self.tell(change.severity, change.title, change.text)
        if isinstance(change, ConnectionChanged | ListChanged) and not self._scheduled:
            self._scheduled = True
            self.call_after_refresh(self._show_status)
        self.take(change)

    def take(self, change: Change) -> None:
        """What the store tells, for the page's own parts."""

    def _show_status(self) -> None:
        self._scheduled = False
        self.query_one(StatusLine).show(self._deck.connection, self._deck.ordered())

    @property
    def where(self) -> Where:
        """What has the focus."""
        return place_of(self.focused, self.home)

    def show_keys(self) -> None:
        """Shows the keys of what has the focus."""
        self.query_one(KeyLine).show(brief_keys(self.where))

    def watch_focused(self, focused: Widget | None) -> None:
        """Other keys are right now."""
        if self.is_mounted:
            self.show_keys()

    @on(PlaceChanged)
    def _place_changed(self) -> None:
        self.show_keys()

    def tell(
        self, severity: Literal["information", "warning", "error"], title: str, text: str
    ) -> None:
        """One notice; whatever is in it can do no harm."""
        self.app.notify(one_line(text), title=one_line(title), severity=severity, markup=False)

    def action_back(self) -> None:
        hold_keys(self)
        self.dismiss(None)

    def action_reconnect(self) -> None:
        self._deck.reconnect_now()

    def action_help(self) -> None:
        from quarterdeck.tui.screens.help import HelpScreen

        hold_keys(self)
        self.app.push_screen(HelpScreen(self.where))

    def action_leave(self) -> None:
        self.app.exit(0)
