"""Copying to the user's clipboard.

    on this machine, with a desktop -> its own program (wl-copy, xclip, pbcopy)
    in tmux                         -> tmux, which passes it on to its terminal
    otherwise, and over SSH         -> an OSC 52 sequence

The last two never answer, so the message says what was done, and not that it arrived.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from textual.app import App
from textual.widget import Widget

from quarterdeck.tui.host_terminal import ask, give, in_tmux, is_remote

TO_TMUX = ["tmux", "load-buffer", "-w", "-"]
NOTICE_SECONDS = 4.0
WARNING_SECONDS = 10.0
SURE_BYTES = 74_000
"""Some terminals drop a longer OSC 52 sequence."""


def copy_text(widget: Widget, text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Send a widget's text to the user's clipboard, and say which way it went."""
    app = cast("App[Any]", widget.app)
    app.run_worker(partial(_copy, app, text, environment), group="copy", exclusive=True)


async def _copy(app: App[Any], text: str, environment: Mapping[str, str]) -> None:
    # Used for pasting inside the cockpit, whichever way it goes outside.
    app._clipboard = text  # pyright: ignore[reportPrivateUsage]
    outcome, sure = await _send(app, text, environment)
    characters = "1 character" if len(text) == 1 else f"{len(text)} characters"
    app.notify(
        f"{characters} {outcome}",
        severity="information" if sure else "warning",
        timeout=NOTICE_SECONDS if sure else WARNING_SECONDS,
        markup=False,
    )


async def _send(app: App[Any], text: str, environment: Mapping[str, str]) -> tuple[str, bool]:
    """Send it one way; return the text of the message, and whether it is likely to have arrived."""
    program = desktop_program(environment)
    if program and await give(program, text.encode()):
        return f"copied with {program[0]}.", True
    if in_tmux(environment) and await give(TO_TMUX, text.encode()):
        return await _tmux_outcome()
    app.copy_to_clipboard(text)
    if in_tmux(environment):
        return "sent to tmux; it passes them on with: set -s set-clipboard on", False
    if len(text.encode()) > SURE_BYTES:
        return (
            "sent to your terminal's clipboard (OSC 52); some terminals take 74 kB at most.",
            False,
        )
    return "sent to your terminal's clipboard (OSC 52).", True


async def _tmux_outcome() -> tuple[str, bool]:
    if await ask(["tmux", "show", "-sqv", "set-clipboard"]) == "off":
        return "in tmux's buffer only (prefix ]): its set-clipboard is off.", False
    return "sent to tmux, for its terminal's clipboard and its buffer.", True


def desktop_program(environment: Mapping[str, str]) -> list[str]:
    """Return the clipboard command of this machine's desktop; empty when the user is elsewhere."""
    if is_remote(environment):
        return []
    path = environment.get("PATH")
    candidates = [
        ("WAYLAND_DISPLAY", ["wl-copy"]),
        ("DISPLAY", ["xclip", "-selection", "clipboard"]),
    ]
    if sys.platform == "darwin":
        return ["pbcopy"]
    for variable, command in candidates:
        if environment.get(variable) and shutil.which(command[0], path=path):
            return command
    return []
