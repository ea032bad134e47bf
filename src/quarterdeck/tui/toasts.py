"""Short notices over a corner of the screen, out of the way of who writes."""

from typing import Any

from textual.app import App, ScreenStackError
from textual.events import DescendantFocus
from textual.notifications import Notification, Notify
from textual.widgets._toast import ToastRack

LOOK = """
Screen > ToastRack { margin-bottom: 4; }
Screen > ToastRack.-above { dock: top; align: right top; margin: 0; }
"""
"""At the bottom they leave the last lines free, by which a form as high as the screen is saved."""


class SaysOnce(App[Any]):
    """Put before `App` among an app's bases: what is said again takes the place of the first.

    Notices stand at the bottom, or at the top while what has the focus is in the lower half.
    """

    CSS = LOOK

    def on_notify(self, event: Notify) -> None:
        """Part of `App`, which then shows the new one."""
        for one in [one for one in self._notifications if _said(one) == _said(event.notification)]:
            self._unnotify(one, refresh=False)
        self._make_way()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Notices go to the other end when the focus comes near them."""
        if len(self._notifications):
            self.call_after_refresh(self._make_way)

    def _make_way(self) -> None:
        try:
            screen = self.screen
        except ScreenStackError:
            return  # said before the first screen, which will place it
        focused = screen.focused
        low = focused is not None and focused.region.center[1] > self.size.height / 2
        for rack in screen.query(ToastRack):
            rack.set_class(low, "-above")


def _said(notice: Notification) -> tuple[str, str, str]:
    return notice.title, notice.message, notice.severity
