"""Notices at the edge of the screen: each is shown once, and away from the focus."""

from typing import Any

from textual.app import App, ScreenStackError
from textual.notifications import Notification
from textual.widgets._toast import ToastRack

# pyright: reportPrivateUsage=false

STYLES = """
Screen > ToastRack { margin-bottom: 4; }
Screen > ToastRack.-above { dock: top; align: right top; margin: 0; }
Screen.-narrow Toast { max-width: 90%; }
"""
"""At the bottom they leave the last lines free, so that a form as high as the screen can be saved."""


def remove_repeated(app: App[Any], notice: Notification) -> None:
    """Remove the notices with the same text as a new one, which replaces them."""
    for earlier in [
        notification
        for notification in app._notifications
        if _words(notification) == _words(notice)
    ]:
        app._unnotify(earlier, refresh=False)


def _words(notice: Notification) -> tuple[str, str, str]:
    return notice.title, notice.message, notice.severity


def place_notices(app: App[Any]) -> None:
    """Show notices at the bottom, or at the top while the focus is in the lower half."""
    try:
        screen = app.screen
    except ScreenStackError:
        return  # shown before the first screen, which will place it
    focused = screen.focused
    low = focused is not None and focused.region.center[1] > app.size.height / 2
    for rack in screen.query(ToastRack):
        rack.set_class(low, "-above")
