"""Notifies a user who is elsewhere that a replica asks, failed or has finished.

AppState.changed -> NoticeWatch (store) -> AttentionNotice -> Messenger -> terminal
"""

import os
from collections.abc import Callable, Mapping

from quarterdeck.store.notices import AttentionNotice
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.host_terminal import ESCAPE, in_tmux, through_tmux, tmux_passes

BELL = "\a"
_BY_PROGRAM = {"iTerm.app": "9", "WezTerm": "777", "ghostty": "777", "WarpTerminal": "777"}
_BY_TERM = {"xterm-kitty": "9", "xterm-ghostty": "777", "wezterm": "777", "foot": "777"}


def protocol_of(environment: Mapping[str, str]) -> str:
    """Return the terminal's protocol for notices: `9`, `777`, or `bell` where it is not known to support any."""
    program, term = environment.get("TERM_PROGRAM", ""), environment.get("TERM", "")
    if known := _BY_PROGRAM.get(program) or _BY_TERM.get(term):
        return known
    if environment.get("LC_TERMINAL") == "iTerm2" or environment.get("KITTY_WINDOW_ID"):
        return "9"
    if term.startswith(("foot", "rxvt")) or environment.get("VTE_VERSION"):
        return "777"
    return "bell"


def sequence_of(protocol: str, text: str) -> str:
    """Return the control sequence of a notice; its text cannot end it."""
    text = one_line(text).replace(";", ",")
    if protocol == "9":
        # A number after `9;` would be another command.
        return f"{ESCAPE}]9;quarterdeck: {text}{BELL}"
    if protocol == "777":
        return f"{ESCAPE}]777;notify;quarterdeck;{text}{BELL}"
    return BELL


class Messenger:
    """Sends notices by `write`, as the setting and the terminal allow."""

    def __init__(
        self, write: Callable[[str], None], environment: Mapping[str, str] = os.environ
    ) -> None:
        self._write = write
        self._environment = environment
        self._passes: bool | None = None

    async def send(self, notice: AttentionNotice, setting: str) -> None:
        """Send it; `setting` is one of the settings for notices."""
        if setting == "off":
            return
        protocol = "bell" if setting == "bell" else protocol_of(self._environment)
        sequence = sequence_of(protocol, notice.text)
        if protocol != "bell" and in_tmux(self._environment):
            # tmux passes a bell on automatically, and shows it at the window's name.
            sequence = through_tmux(sequence) if await self._may_pass() else BELL
        self._write(sequence)

    async def _may_pass(self) -> bool:
        if self._passes is None:
            self._passes = await tmux_passes()
        return self._passes
