"""Notifies a user who is elsewhere that a replica asks, failed or has finished.

AppState.changed -> NoticeWatch (store) -> AttentionNotice -> Messenger -> terminal
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from quarterdeck.store.notices import AttentionNotice
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.host_terminal import (
    ESCAPE,
    TerminalIdentity,
    in_tmux,
    through_tmux,
    tmux_client,
    tmux_passes,
)
from quarterdeck.tui.options import Options, is_quiet

BELL = "\a"
STRING_END = f"{ESCAPE}\\"
_BY_NAME = {
    "kitty": "99",
    "iterm2": "9",
    "wezterm": "777",
    "ghostty": "777",
    "foot": "777",
    "vte": "777",
    "warp": "777",
    "rxvt": "777",
}
"""Protocols by the beginning of the name that a terminal reports, in lower case."""
_BY_PROGRAM = {"iTerm.app": "9", "WezTerm": "777", "ghostty": "777", "WarpTerminal": "777"}
_BY_TERM = {"xterm-kitty": "99", "xterm-ghostty": "777", "wezterm": "777", "foot": "777"}


def protocol_of(name: str, environment: Mapping[str, str]) -> str:
    """Return the terminal's protocol for notices: `9`, `99`, `777`, or `bell` for none that is known.

    `name` is what the terminal says it is; the variables count when it says nothing.
    """
    reported = name.lower()
    if found := next((one for begin, one in _BY_NAME.items() if reported.startswith(begin)), None):
        return found
    if known := _BY_TERM.get(name):
        return known
    if name and not name.startswith(("xterm", "screen", "tmux")):
        return "bell"
    return _protocol_by(environment)


def _protocol_by(environment: Mapping[str, str]) -> str:
    program, term = environment.get("TERM_PROGRAM", ""), environment.get("TERM", "")
    if known := _BY_PROGRAM.get(program) or _BY_TERM.get(term):
        return known
    if environment.get("LC_TERMINAL") == "iTerm2":
        return "9"
    if environment.get("KITTY_WINDOW_ID"):
        return "99"
    if term.startswith(("foot", "rxvt")) or environment.get("VTE_VERSION"):
        return "777"
    return "bell"


def sequence_of(protocol: str, text: str, about: str = "") -> str:
    """Return the control sequence of a notice; its text cannot end it.

    `about` identifies its subject: where the protocol can, a later notice replaces the one before.
    """
    text = one_line(text).replace(";", ",")
    match protocol:
        case "9":
            # A number after `9;` would be another command.
            return f"{ESCAPE}]9;quarterdeck: {text}{BELL}"
        case "99":
            title = f"{ESCAPE}]99;i=qd{about}:d=0;quarterdeck{STRING_END}"
            return f"{title}{ESCAPE}]99;i=qd{about}:p=body;{text}{STRING_END}"
        case "777":
            return f"{ESCAPE}]777;notify;quarterdeck;{text}{BELL}"
        case _:
            return BELL


@dataclass(frozen=True)
class Route:
    """How the terminal is notified: its name as far as known, the protocol, and whether tmux is between."""

    name: str
    protocol: str
    in_tmux: bool = False
    passes: bool = True
    """Whether tmux passes sequences on."""

    @property
    def words(self) -> str:
        """What notices of the kind `desktop` come to."""
        if self.protocol == "bell":
            return "bell only: no protocol for desktop notifications is known"
        if not self.passes:
            return "bell only: ~/.tmux.conf needs set -g allow-passthrough on"
        return f"desktop notifications (OSC {self.protocol})"


class Messenger:
    """Sends notices by `write`, as the settings and the terminal allow."""

    def __init__(
        self,
        write: Callable[[str], None],
        identity: TerminalIdentity,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._write = write
        self._identity = identity
        self._environment = environment
        self._found: Route | None = None

    async def send(self, notice: AttentionNotice, options: Options) -> None:
        """Send it, unless its rule or the quiet hours forbid that."""
        kind = options.kind_of_notice(notice.attention)
        if kind == "off" or is_quiet(options.quiet, datetime.now()):
            return
        if kind == "bell":
            self._write(BELL)
            return
        route = self._found = self._found or await self.route()
        sequence = sequence_of(route.protocol, notice.text, notice.replica_id.hex[:12])
        if route.in_tmux and route.protocol != "bell":
            # tmux passes a bell on automatically, and shows it at the window's name.
            sequence = through_tmux(sequence) if route.passes else BELL
        self._write(sequence)

    async def route(self) -> Route:
        """Return how the terminal is notified now."""
        if not in_tmux(self._environment):
            name = await self._identity.name()
            # A tmux or screen that cannot be asked: on another machine, or around a container.
            outer = name.startswith(("tmux", "screen"))
            return Route(name, "bell" if outer else protocol_of(name, self._environment))
        name = await tmux_client()
        protocol = protocol_of(name, self._environment)
        return Route(name, protocol, in_tmux=True, passes=await tmux_passes())
