"""Short notices over a corner of the screen."""

from typing import Any

from textual.app import App
from textual.notifications import Notification, Notify


class SaysOnce(App[Any]):
    """Put before `App` among an app's bases: what is said again takes the place of the first."""

    def on_notify(self, event: Notify) -> None:
        """Part of `App`, which then shows the new one."""
        for one in [one for one in self._notifications if _said(one) == _said(event.notification)]:
            self._unnotify(one, refresh=False)


def _said(notice: Notification) -> tuple[str, str, str]:
    return notice.title, notice.message, notice.severity
