"""What is on a screen of the cockpit, cell by cell, read without changing it."""

from typing import Any

from textual._context import visible_screen_stack
from textual.app import App
from textual.strip import Strip


def shown_strips(app: App[Any]) -> list[Strip]:
    """The lines of the screen, with what a dialog lets show through.

    Whoever reads may be the first to have the dialog drawn, before the app has. Textual keeps what
    was drawn, and without the screens below it that would be a dialog on nothing.
    """
    visible_screen_stack.set(app._background_screens)
    return app.screen._compositor.render_strips()
