"""Pages that cover the whole screen.

The full screens over the list of replicas, by their names in actions.

A row's function loads what its screen needs: the start of the cockpit does not wait for it. It is given the replica
that keys apply to.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal, cast
from uuid import UUID

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from quarterdeck.store.app_state import AppState
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.services import Services
from quarterdeck.store.signals import Change, ConnectionChanged, ListChanged, Noticed
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, bindings, brief_keys
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.key_context import KeyContextChanged, key_context_of
from quarterdeck.tui.widgets.status_line import KeyLine, StatusLine

if TYPE_CHECKING:
    from quarterdeck.tui.app import Cockpit

NONE_WAITS = ("Nothing needs you", "No agent asks, and no turn has ended since you last looked.")


class PageScreen(SettledLayout[UUID | None]):
    """Status line, body, key line: a page of one service. `home` is the place of what has no keys itself.

    Dismissed with the replica to go to, or None.
    """

    DEFAULT_CSS = """
    PageScreen #page { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KeyContext.PAGE),
        *bindings(KeyContext.ANYWHERE),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (120, "-wide")]
    home: ClassVar[KeyContext] = KeyContext.PAGE

    def __init__(self, app_state: AppState) -> None:
        super().__init__()
        self._app_state = app_state
        self._scheduled = False

    def compose(self) -> ComposeResult:
        yield StatusLine()
        with Vertical(id="page"):
            yield from self.body()
        yield KeyLine()

    def body(self) -> ComposeResult:
        """Return the widgets between the top and the bottom line."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self._stop_watching = (
            self._app_state.changed.watch(self._changed),
            self._services.changed.watch(self._any_changed),
        )
        self._show_status()
        self.show_keys()

    def on_unmount(self) -> None:
        for stop in self._stop_watching:
            stop()

    @property
    def _services(self) -> Services:
        return cast("Cockpit", self.app).services

    def _changed(self, change: Change) -> None:
        if self.display:  # not being closed: its parts are removed before it
            self.take(change)

    def _any_changed(self, change: Change) -> None:
        """Show what happens on any service."""
        if not self.display:
            return
        if isinstance(change, Noticed):
            self.tell(change.severity, change.title, change.text)
        if isinstance(change, ConnectionChanged | ListChanged) and not self._scheduled:
            self._scheduled = True
            self.call_after_refresh(self._show_status)

    def take(self, change: Change) -> None:
        """Handle a change from the store of its service, for the page's own parts."""

    def _show_status(self) -> None:
        self._scheduled = False
        self.query_one(StatusLine).show(self._services.connections, self._services.all())

    @property
    def where(self) -> KeyContext:
        """The place of the focus."""
        return key_context_of(self.focused, self.home)

    def show_keys(self) -> None:
        """Show the keys of the current place."""
        # Below a dialog they do not work.
        self.query_one(KeyLine).show(brief_keys(self.where) if self.is_active else ())

    def on_screen_suspend(self) -> None:
        """Note that a dialog covers the page."""
        self.show_keys()

    def on_screen_resume(self) -> None:
        """Note that nothing covers the page any more."""
        self.show_keys()

    def watch_focused(self, focused: Widget | None) -> None:
        """Show the keys of the new focus."""
        if self.is_mounted:
            self.show_keys()

    @on(KeyContextChanged)
    def _place_changed(self) -> None:
        self.show_keys()

    def tell(
        self, severity: Literal["information", "warning", "error"], title: str, text: str
    ) -> None:
        """Show one notice; its texts are sanitized."""
        self.app.notify(one_line(text), title=one_line(title), severity=severity, markup=False)

    def action_back(self) -> None:
        self.dismiss(None)

    def action_next_waiting(self) -> None:
        """Leave the page for the next replica that needs the user."""
        if (state := self._services.next_waiting()) is not None:
            self.dismiss(state.id)
        else:
            self.tell("information", *NONE_WAITS)

    def action_reconnect(self) -> None:
        self._services.reconnect_now()

    def action_help(self) -> None:
        from quarterdeck.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.where, tabs=False))

    def action_leave(self) -> None:
        self.app.exit(0)


def _environments(app_state: AppState, replica: ReplicaState | None) -> PageScreen:
    from quarterdeck.tui.environments.screen import EnvironmentsScreen

    return EnvironmentsScreen(app_state, replica.record.environment_id if replica else None)


def _automations(app_state: AppState, _: ReplicaState | None) -> PageScreen:
    from quarterdeck.tui.automations.screen import AutomationsScreen

    return AutomationsScreen(app_state)


def _settings(app_state: AppState, _: ReplicaState | None) -> PageScreen:
    from quarterdeck.tui.settings.screen import SettingsScreen

    return SettingsScreen(app_state)


PAGES: dict[str, Callable[[AppState, ReplicaState | None], PageScreen]] = {
    "environments": _environments,
    "automations": _automations,
    "settings": _settings,
}
