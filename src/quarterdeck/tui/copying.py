"""Copying to the clipboard of whoever looks at the cockpit.

    on this machine, with a desktop -> its own program (wl-copy, xclip, pbcopy)
    in tmux                         -> tmux, which passes it on to its terminal
    otherwise, and over SSH         -> an OSC 52 sequence

Of the last two no answer ever comes back, so what is told is what was done, and not that it arrived.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any, cast

from textual.app import App
from textual.widget import Widget

from quarterdeck.tui.outer import ask, give, in_tmux, is_remote

TO_TMUX = ["tmux", "load-buffer", "-w", "-"]
TOLD_SECONDS = 4.0
WARNED_SECONDS = 10.0
SURE_BYTES = 74_000
"""Terminals are known that drop a longer OSC 52 sequence."""


def copy_text(widget: Widget, text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Sends a widget's text to the person's clipboard, and says which way it went."""
    app = cast("App[Any]", widget.app)
    app.run_worker(_copy(app, text, environment), group="copy", exclusive=True)


async def _copy(app: App[Any], text: str, environment: Mapping[str, str]) -> None:
    # What is pasted inside the cockpit, whichever way it goes outside.
    app._clipboard = text  # pyright: ignore[reportPrivateUsage]
    told, sure = await _send(app, text, environment)
    characters = "1 character" if len(text) == 1 else f"{len(text)} characters"
    app.notify(
        f"{characters} {told}",
        severity="information" if sure else "warning",
        timeout=TOLD_SECONDS if sure else WARNED_SECONDS,
        markup=False,
    )


async def _send(app: App[Any], text: str, environment: Mapping[str, str]) -> tuple[str, bool]:
    """Sends it one way; how that is told, and whether it is likely to have arrived."""
    program = desktop_program(environment)
    if program and await give(program, text.encode()):
        return f"copied with {program[0]}.", True
    if in_tmux(environment) and await give(TO_TMUX, text.encode()):
        return await _told_by_tmux()
    app.copy_to_clipboard(text)
    if in_tmux(environment):
        return "sent to tmux; it passes them on with: set -s set-clipboard on", False
    if len(text.encode()) > SURE_BYTES:
        return (
            "sent to your terminal's clipboard (OSC 52); some terminals take 74 kB at most.",
            False,
        )
    return "sent to your terminal's clipboard (OSC 52).", True


async def _told_by_tmux() -> tuple[str, bool]:
    if await ask(["tmux", "show", "-sqv", "set-clipboard"]) == "off":
        return "in tmux's buffer only (prefix ]): its set-clipboard is off.", False
    return "given to tmux, for its terminal's clipboard and its own buffer.", True


def desktop_program(environment: Mapping[str, str]) -> list[str]:
    """What sets the clipboard of this machine's desktop; empty where the person sits elsewhere."""
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
