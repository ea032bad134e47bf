"""The top line: the service, the connection to it, and who needs the user."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click, Key
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.store.status import NEEDS_YOU, Attention, ConnectionPhase, ConnectionState
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import BY_STATE, KeyContext, brief_keys, keyed
from quarterdeck.tui.actions.model import key_name
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.text import fit, soon_or_day
from quarterdeck.tui.themes import MARKS, part_style

if TYPE_CHECKING:
    from quarterdeck.store.replicas import ReplicaState


class KeyLine(Widget):
    """Keys and their labels, as many as fit. A click on one is equivalent to the key."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"keys--key", "keys--text"}
    DEFAULT_CSS = """
    KeyLine {
        height: 1;
        background: $panel;
        & > .keys--key { color: $text-accent; text-style: bold; }
        & > .keys--text { color: $text-muted; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[tuple[str, str], ...] = ()

    def on_click(self, event: Click) -> None:
        """Press the key under the mouse."""
        end = 0
        for key, text in self._fitting():
            end += _room(key, text)
            if event.x < end:
                name = key_name(key)
                self.app.post_message(Key(name, key if len(key) == 1 else None))
                return

    def show(self, keys: tuple[tuple[str, str], ...]) -> None:
        """Show pairs of a key and its label, the important ones first."""
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        key_style = base + part_style(self, "keys--key")
        text_style = base + self.get_component_rich_style("keys--text")
        segments: list[Segment] = []
        for key, text in self._fitting():
            segments += [Segment(f" {key}", key_style), Segment(f" {text} ", text_style)]
        return Strip(segments).extend_cell_length(self.size.width, base)

    def _fitting(self) -> Iterator[tuple[str, str]]:
        """Yield those that fit."""
        room = self.size.width
        for key, text in self._keys:
            room -= _room(key, text)
            if room < 0:
                return
            yield key, text


def _room(key: str, text: str) -> int:
    """Return the width of a key with its label."""
    return len(key) + len(text) + 3


BOLD = Style(bold=True)
NAME = "quarterdeck"
NEXT = Style.from_meta({"@click": "screen.next_waiting"})
"""What a click on how many need the user does."""
SHORTEST = 12
"""Width of the endpoint below which the program's name is hidden."""


def connection_words(state: ConnectionState) -> str:
    """Return the connection in a few words."""
    match state.phase:
        case ConnectionPhase.ONLINE:
            latency = f" {state.latency_ms:.0f} ms" if state.latency_ms is not None else ""
            return f"● online{latency}"
        case ConnectionPhase.CONNECTING:
            return "◌ connecting"
        case ConnectionPhase.RECONNECTING:
            wait = f", retry every {state.retry_in:.0f} s" if (state.retry_in or 0) >= 1 else ""
            return f"✗ offline{wait}"
        case ConnectionPhase.STOPPED:
            return "✗ stopped"
        case ConnectionPhase.REFUSED:
            return "✗ login needed" if state.needs_login else "✗ refused"


def problem_words(state: ConnectionState) -> str:
    """Return what is wrong with the connection, since when, and what the person can do."""
    since = ""
    if state.down_since is not None:
        since = f" Offline since {soon_or_day(state.down_since, datetime.now(UTC))}."
    todo = {
        ConnectionPhase.REFUSED: "{app.reconnect} to retry.",
        ConnectionPhase.STOPPED: "{app.reconnect} to start it again.",
    }.get(state.phase, "Your input is kept. {app.reconnect} to retry now.")
    return f"{state.problem}{since} {keyed(todo)}"


class ServiceWords(NamedTuple):
    """A service and its connection: in full, and shorter where several share the line."""

    name: str
    words: tuple[str, ...]
    is_down: bool


DOWN = {ConnectionPhase.RECONNECTING, ConnectionPhase.STOPPED, ConnectionPhase.REFUSED}
LONGEST_NAME = 8
"""Cells of a service's name where there is little room."""


def service_words(connections: Sequence[ConnectionState]) -> tuple[ServiceWords, ...]:
    """Return what the line says of each service: of a single one its address, of several their names."""
    if len(connections) == 1:
        (state,) = connections
        brief = replace(state, latency_ms=None, retry_in=None)
        full = connection_words(state)
        words = (full, connection_words(brief), full[:1])
        return (ServiceWords(one_line(state.endpoint), words, state.phase in DOWN),)
    return tuple(
        ServiceWords(one_line(state.name), _shorter_words(state), state.phase in DOWN)
        for state in connections
    )


def _shorter_words(state: ConnectionState) -> tuple[str, ...]:
    """Return the connection in words of ever fewer cells."""
    full = connection_words(state).replace("online ", "")
    return (full, full.partition(",")[0] if state.phase in DOWN else full[:1], full[:1])


def fitting_words(
    services: Sequence[ServiceWords], room: int
) -> tuple[bool, list[tuple[str, str]]]:
    """Return whether the program's name has room, and name and words of each service of several."""
    for step, with_name, cut in ((0, True, False), (0, False, False), (1, False, False)):
        found = _words_of(services, step, cut=cut)
        if _width_of(found, with_name=with_name) <= room:
            return with_name, found
    least = _words_of(services, 2, cut=False)
    if _width_of(least, with_name=False) > room:
        least = _words_of(services, 2, cut=True)
    return False, least


def _words_of(services: Sequence[ServiceWords], step: int, *, cut: bool) -> list[tuple[str, str]]:
    names = (
        fit(one.name, min(LONGEST_NAME, cell_len(one.name))) if cut else one.name
        for one in services
    )
    return [(name, one.words[step]) for name, one in zip(names, services, strict=True)]


def _width_of(found: list[tuple[str, str]], *, with_name: bool) -> int:
    return cell_len(f" {NAME} " if with_name else "") + sum(
        cell_len(f" {name} {words} ") for name, words in found
    )


Counts = tuple[tuple[Attention, str], ...]


def count_words(states: "Iterable[ReplicaState]") -> Counts:
    """Return how many need the user, work, and are done unseen, each with a state of that color."""
    counts = Counter(state.attention for state in states)
    needy = sum(counts[state] for state in NEEDS_YOU)
    parts = (
        (Attention.ASKS, needy, f"need{'s' if needy == 1 else ''} you"),
        (Attention.WORKING, counts[Attention.WORKING], "working"),
        (Attention.DONE_UNSEEN, counts[Attention.DONE_UNSEEN], "done"),
    )
    return tuple((of, f"{MARKS[of].sign} {count} {words}") for of, count, words in parts if count)


class StatusLine(Widget):
    """One line, painted only when its text changes."""

    COMPONENT_CLASSES = {
        "status--trouble",
        *(f"status--{color}" for color in ("needs-you", "primary", "success")),
    }
    DEFAULT_CSS = """
    StatusLine {
        height: 1;
        background: $panel;
        color: $foreground;
        & > .status--trouble { color: $text-error; text-style: bold; }
        & > .status--needs-you { color: $needs-you; text-style: bold; }
        & > .status--primary { color: $text-primary; }
        & > .status--success { color: $text-success; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[tuple[ServiceWords, ...], Counts] = ((), ())

    def show(
        self, connections: Sequence[ConnectionState], states: "Iterable[ReplicaState]"
    ) -> None:
        """Show the states of the connections and of the replicas."""
        shown = (service_words(connections), count_words(states))
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        services, counts = self._shown
        base, width = self.rich_style, self.size.width
        left = width - cell_len("  ".join(text for _, text in counts))
        segments = [] if not services else self._services(services, left, base)
        for of, text in counts:
            style = base + part_style(self, f"status--{MARKS[of].color}")
            segments.append(Segment(f"{text}  ", style + NEXT if of in NEEDS_YOU else style))
        return Strip(segments).crop(0, width).extend_cell_length(width, base)

    def _services(self, services: Sequence[ServiceWords], width: int, base: Style) -> list[Segment]:
        if len(services) > 1:
            with_name, found = fitting_words(services, width)
        else:
            service = services[0]
            # The endpoint is shortened first: it is the longest, and never changes.
            words = next(
                (one for one in service.words if cell_len(one) + 3 <= width), service.words[-1]
            )
            fixed = cell_len(f" {NAME}   {words}  ")
            with_name = fixed + min(SHORTEST, cell_len(service.name)) <= width
            room = width - fixed + (0 if with_name else cell_len(NAME))
            name = fit(service.name, min(room, cell_len(service.name))) if room > 1 else ""
            found = [(name, f"{words} ")]
        segments = [Segment(f" {NAME} ", base + BOLD)] if with_name else []
        for service, (name, words) in zip(services, found, strict=True):
            style = base + part_style(self, "status--trouble") if service.is_down else base
            segments += [Segment(f" {name} " if name else " ", base), Segment(f"{words} ", style)]
        return segments


class OpeningScreen(SettledLayout[None]):
    """Replaces the main screen while its parts, half of the program, are being loaded."""

    DEFAULT_CSS = """
    OpeningScreen Vertical { height: 1fr; }
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self._endpoint = endpoint

    def compose(self) -> ComposeResult:
        yield StatusLine()
        yield Vertical()
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(StatusLine).show([ConnectionState(self._endpoint)], [])
        self.query_one(KeyLine).show(brief_keys(KeyContext.LIST, without=BY_STATE))
