"""Copying to the clipboard of the terminal that the cockpit runs in.

The text goes out as an OSC 52 sequence; no answer ever comes back, so what is told is what was
done, and not that it arrived.
"""

import os
from collections.abc import Mapping
from typing import Any, cast

from textual.app import App
from textual.widget import Widget

IN_TMUX = " tmux passes it on with: set -g set-clipboard on"
TOLD_SECONDS = 4.0


def copy_text(widget: Widget, text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Sends a widget's text to the outer terminal's clipboard, and says so."""
    app = cast("App[Any]", widget.app)
    app.copy_to_clipboard(text)
    characters = "character" if len(text) == 1 else "characters"
    told = f"{len(text)} {characters} sent to your terminal's clipboard."
    hint = IN_TMUX if environment.get("TMUX") else ""
    app.notify(told + hint, timeout=TOLD_SECONDS, markup=False)
