"""What is said of images, and where none can be shown."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.app import App

from quarterdeck.tui.panes.terminal_links import OPENERS

FEW_COLORS = frozenset({"standard", "windows"})
"""Names of color systems with sixteen colors: of these no picture can be made."""


class NotShownError(Exception):
    """An image cannot be shown; the text says why."""


def why_none(app: App[Any]) -> str:
    """Why this terminal shows no pictures at all; empty when it does."""
    if app.no_color:
        return "NO_COLOR is set, so no picture can be shown."
    if app.console.color_system in FEW_COLORS:
        return "This terminal has 16 colors, too few for a picture."
    return ""


def saved_words(paths: list[Path], environment: Mapping[str, str] = os.environ) -> str:
    """Where images were saved, and how to look at them on this machine's own screen."""
    where = f"Saved: {', '.join(str(path.absolute()) for path in paths)}"
    program = _opener(environment)
    return f"{where}. To open: {program} {paths[0].absolute()}" if program else f"{where}."


def _opener(environment: Mapping[str, str]) -> str:
    if "SSH_CONNECTION" in environment:
        return ""  # what opens here is not seen there
    if sys.platform == "darwin":
        return "open"
    return next((name for name in OPENERS if shutil.which(name)), "")
