"""The Exec tab: commands, and their output with its colors but no other control sequences."""

import re
import signal
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar
from uuid import UUID

from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from quarterdeck.store.app_state import AppState
from quarterdeck.store.exec_runs import SECONDS, ExecRun
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.text import clean_output, one_line
from quarterdeck.tui.actions import KeyContext, action_id_of, keyed
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.panes.tabs import PaneKeys, TabPane, pane_bindings
from quarterdeck.tui.text import fit, wrapped
from quarterdeck.tui.themes import part_style
from quarterdeck.wire.replicas import WorkspaceStatus

TAB = 8
_COLOR = re.compile("\x1b\\[[0-9;]*m")


def output_rows(output: str, width: int, base: Style) -> list[Strip]:
    """Return rows of at most a width."""
    text = output.removesuffix("\n")
    if not text:
        return []
    lines = _colored(text, base) if "\x1b[" in text else _plain(text, base)
    return [row for line in lines for row in folded(line, width)]


def folded(line: Strip, width: int) -> list[Strip]:
    """Return a line in rows."""
    width = max(2, width)
    cells = line.cell_length
    if cells <= width:
        return [line]
    return list(line.divide([*range(width, cells, width), cells]))


def _plain(text: str, base: Style) -> Iterator[Strip]:
    for line in clean_output(text).split("\n"):
        yield Strip([Segment(line.expandtabs(TAB), base)])


def _colored(text: str, base: Style) -> Iterator[Strip]:
    decoder = AnsiDecoder()
    for line in text.split("\n"):
        decoded: Text = decoder.decode_line(_only_colors(line))
        decoded.expand_tabs(TAB)
        spans = [(span.start, span.end, span.style) for span in decoded.spans]
        yield Strip(list(_segments(decoded.plain, spans, base)))


def _segments(
    text: str, spans: list[tuple[int, int, str | Style]], base: Style
) -> Iterator[Segment]:
    """Yield a text's segments; the decoder's spans are in order and do not overlap."""
    at = 0
    for begin, end, style in spans:
        if begin > at:
            yield Segment(text[at:begin], base)
        yield Segment(text[begin:end], base + _harmless(style))
        at = end
    if at < len(text):
        yield Segment(text[at:], base)


def _harmless(style: str | Style) -> Style:
    """Return a style that is neither hidden nor blinking, and has no link."""
    if isinstance(style, str):
        return Style()
    return Style(
        color=style.color,
        bgcolor=style.bgcolor,
        bold=style.bold,
        dim=style.dim,
        italic=style.italic,
        underline=style.underline,
        reverse=style.reverse,
        strike=style.strike,
    )


def _only_colors(line: str) -> str:
    """Return a line without anything but text and colors; overwritten text leaves only its colors."""
    overwritten, _, kept = line.rstrip("\r").rpartition("\r")
    found = _COLOR.findall(overwritten)
    pieces, colors = _COLOR.split(kept), _COLOR.findall(kept)
    for number, piece in enumerate(pieces):
        found.append(clean_output(piece).replace("\n", " "))
        if number < len(colors):
            found.append(colors[number])
    return "".join(found)


def nothing_yet_words() -> str:
    """Return the text shown before the first command."""
    where = keyed("Use the terminal ({tab.terminal}) for anything longer.")
    return f"Runs one command ({SECONDS} s limit). {where}"


def outcome(run: ExecRun) -> tuple[str, bool]:
    """Return how a command ended, and whether it succeeded."""
    if run.running:
        return _running(run), True
    took = f" \u00b7 {run.seconds:.1f} s" if run.seconds is not None else ""
    response = run.response
    if response is None:
        return "not run", False
    if response.timed_out:
        return f"stopped after {SECONDS} s", False
    code = response.exit_code
    if code is not None and code < 0:
        return f"{_signal(-code)}{took}", False
    stopped = "interrupted \u00b7 " if run.interrupts else ""
    return f"{stopped}exit {code}{took}", code == 0


def _running(run: ExecRun) -> str:
    if run.interrupts:
        return "being killed" if run.interrupts > 1 else "being interrupted"
    return f"runs since {run.began.astimezone():%H:%M:%S}"


def _signal(number: int) -> str:
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended by signal {number}"


def resting(state: ReplicaState) -> str:
    """Return why no command can be run now; empty when one can."""
    match state.status:
        case WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return "Preparing; commands run once it is active."
        case WorkspaceStatus.SLEEPING:
            return keyed("Asleep; {replica.wake} in the list wakes it.")
        case WorkspaceStatus.ARCHIVED:
            return keyed("Archived; {replica.wake} in the list restores it.")
        case _:
            return keyed("Failed; {replica.wake} in the list retries.")


INSET = 2


@dataclass
class Drawn:
    """A run as rows; `marks` change when the run does."""

    marks: object
    rows: list[Strip]


class ExecView(ScrollView, PaneKeys, HasKeyContext, can_focus=True):
    """The runs of one replica; the cursor is on one of them."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "exec--command",
        "exec--good",
        "exec--bad",
        "exec--note",
        "exec--cursor",
        "exec--empty",
    }
    DEFAULT_CSS = """
    ExecView {
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        & > .exec--command { text-style: bold; background: $panel; }
        & > .exec--good { color: $text-success; background: $panel; }
        & > .exec--bad { color: $text-error; background: $panel; }
        & > .exec--note { color: $text-muted; }
        & > .exec--cursor { color: $text-primary; background: $panel; }
        & > .exec--empty { color: $text-muted; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings(KeyContext.EXEC_OUTPUT)]

    empty: reactive[str] = reactive("")
    """Shown when there are no runs."""
    cursor: reactive[int] = reactive(0, repaint=False)

    def __init__(self) -> None:
        super().__init__()
        self._runs: list[ExecRun] = []
        self._drawn: dict[str, Drawn] = {}
        self._tops: list[int] = [0]
        self._folded: set[str] = set()

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.EXEC_OUTPUT

    @property
    def chosen(self) -> ExecRun | None:
        """The run under the cursor."""
        return self._runs[self.cursor] if self.cursor < len(self._runs) else None

    def show(self, runs: Sequence[ExecRun]) -> None:
        """Show the current runs; a reader at the end stays there."""
        fresh = [run for run in runs if run not in self._runs]
        chosen = self.chosen
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._runs = list(runs)
        known = {run.key for run in runs}
        self._drawn = {key: drawn for key, drawn in self._drawn.items() if key in known}
        self._folded &= known
        if chosen is None or fresh or chosen not in self._runs:
            self.cursor = max(0, len(self._runs) - 1)
        else:
            self.cursor = self._runs.index(chosen)
        self._lay_out(to_end=bool(fresh) or at_end)

    def on_resize(self) -> None:
        self._lay_out(to_end=self.scroll_offset.y >= self.max_scroll_y)

    def notify_style_update(self) -> None:
        """Draw again with another theme."""
        super().notify_style_update()
        if self.is_mounted:
            # The component styles are the previous ones until the whole theme is applied.
            self.call_later(self._draw_anew)

    def _draw_anew(self) -> None:
        self._drawn.clear()
        self._lay_out(to_end=False)

    def _lay_out(self, *, to_end: bool) -> None:
        width = self.scrollable_content_region.width
        if not width:
            return
        for run in self._runs:
            marks = (width, run.ended, run.problem, run.interrupts, run.key in self._folded)
            drawn = self._drawn.get(run.key)
            if drawn is None or drawn.marks != marks:
                self._drawn[run.key] = Drawn(marks, self._draw(run, width))
        heights = (len(self._drawn[run.key].rows) for run in self._runs)
        self._tops = list(accumulate(heights, initial=0))
        self.virtual_size = Size(width, self._tops[-1])
        if to_end:
            self.scroll_to(y=self._tops[-1], animate=False, force=True, immediate=True)
        self.refresh()

    def _draw(self, run: ExecRun, width: int) -> list[Strip]:
        base = self.rich_style
        rows = [self._head(run, width)]
        response = run.response
        if run.key in self._folded:
            return rows
        inset = Strip([Segment(" " * INSET, base)])
        note = base + part_style(self, "exec--note")
        body: list[Strip] = []
        if response is not None:
            if response.truncated:
                body.append(Strip([Segment("only the end of the output was kept", note)]))
            body += output_rows(response.output, width - INSET, base)
        if run.problem:
            words = Strip([Segment(one_line(run.problem), note)])
            body += folded(words, width - INSET)
        for row in body:
            rows.append(Strip.join([inset, row]).adjust_cell_length(width, base))
        return [*rows, Strip.blank(width, base)]

    def _head(self, run: ExecRun, width: int) -> Strip:
        words, good = outcome(run)
        if run.key in self._folded:
            words = f"folded \u00b7 {words}"
        room = max(8, width - 1 - cell_len(words) - 2)
        base = self.rich_style
        command = base + part_style(self, "exec--command")
        name = "exec--good" if good else "exec--bad"
        style = base + part_style(self, name)
        return Strip(
            [
                Segment(" ", command),
                Segment(fit(f"$ {run.command}", room), command),
                Segment(f" {words} ", style),
            ]
        ).adjust_cell_length(width, command)

    def render_line(self, y: int) -> Strip:
        """Part of `ScrollView`."""
        width, base = self.scrollable_content_region.width, self.rich_style
        row = y + self.scroll_offset.y
        texts = [] if self._runs else wrapped(self.empty, width - 4)
        if 1 <= y <= len(texts):
            style = base + part_style(self, "exec--empty")
            return Strip([Segment(fit(f"  {texts[y - 1]}", width), style)])
        if row >= self._tops[-1]:
            return Strip.blank(width, base)
        number = bisect_right(self._tops, row) - 1
        inside = row - self._tops[number]
        strip = self._drawn[self._runs[number].key].rows[inside]
        if inside == 0 and number == self.cursor and self.has_focus:
            bar = base + part_style(self, "exec--cursor")
            strip = Strip.join([Strip([Segment("\u258c", bar)], 1), strip.crop(1)])
        return strip

    def watch_cursor(self) -> None:
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: Click) -> None:
        row = event.y + self.scroll_offset.y
        if self._runs and row < self._tops[-1]:
            self.cursor = bisect_right(self._tops, row) - 1

    # requests to the pane

    def go(self, step: int) -> None:
        """Go to the next command."""
        if self._runs:
            self.cursor = max(0, min(len(self._runs) - 1, self.cursor + step))
            top = self._tops[self.cursor]
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def scroll_by(self, rows: int) -> None:
        """Note that the cursor moves to the command at the top afterwards."""
        top = max(0, min(self.max_scroll_y, self.scroll_offset.y + rows))
        self.scroll_to(y=top, animate=False, force=True, immediate=True)
        if self._runs:
            seen = top if top < self.max_scroll_y else self._tops[-1] - 1
            self.cursor = min(len(self._runs) - 1, bisect_right(self._tops, seen) - 1)

    def fold(self) -> None:
        """Fold or open the output under the cursor."""
        if (run := self.chosen) is not None:
            self._folded ^= {run.key}
            self._lay_out(to_end=False)
            self.go(0)


class ExecPrompt(Input, PaneKeys, HasKeyContext):
    """One line; up and down bring back previous commands."""

    DEFAULT_CSS = """
    ExecPrompt {
        border: round $panel-lighten-2;
        height: 3;
        background: $background;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        &:focus { border: round $border; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings(KeyContext.EXEC)]

    def __init__(self, history: "list[str]") -> None:
        super().__init__()
        self.cursor_blink = False
        self.border_title = "Command"
        self._history = history
        self._back = 0
        self._typed = ""

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.EXEC

    def set_history(self, history: "list[str]") -> None:
        """Set the previous commands, the last at the end."""
        self._history = history
        self._back = 0

    def put(self, text: str) -> None:
        """Show a text, with the cursor after it."""
        self.value = text
        self.cursor_position = len(text)

    async def _on_key(self, event: events.Key) -> None:
        match action_id_of(KeyContext.EXEC, event.key):
            case "exec.run":
                self._stop(event)
                await self.action_submit()
            case "exec.earlier" | "exec.later" as meant:
                self._stop(event)
                self._recall(1 if meant == "exec.earlier" else -1)
            case "" if event.key == "enter":
                self._stop(event)
            case _:
                await super()._on_key(event)

    def _stop(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()

    def _recall(self, step: int) -> None:
        if not self._back:
            self._typed = self.value
        self._back = max(0, min(len(self._history), self._back + step))
        self.put(self._history[-self._back] if self._back else self._typed)


class ExecPane(TabPane):
    """Runs typed commands; the runs continue when another tab or replica is shown."""

    DEFAULT_CSS = """
    ExecPane {
        & ExecView { height: 1fr; }
        & #exec-message { height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none; }
    }
    """

    def __init__(self, app_state: AppState, replica_id: UUID) -> None:
        super().__init__(app_state, replica_id)
        self._runs = app_state.exec_runs
        self._notice = ""

    def compose(self) -> ComposeResult:
        yield ExecView()
        yield Static(id="exec-message", markup=False)
        yield ExecPrompt(self._runs.history)

    @property
    def view(self) -> ExecView:
        return self.query_one(ExecView)

    @property
    def prompt(self) -> ExecPrompt:
        return self.query_one(ExecPrompt)

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.EXEC_OUTPUT

    @property
    def keys_target(self) -> Widget:
        """Part of `TabPane`."""
        return self.prompt

    def on_mount(self) -> None:
        self.view.empty = nothing_yet_words()
        self.show_state()

    def shown(self) -> None:
        """Part of `TabPane`."""
        self.show_state()

    def show_state(self) -> None:
        """Part of `TabPane`."""
        state = self._app_state.replicas.get(self.replica_id)
        if state is None or not self.is_mounted:
            return
        self.view.show(self._runs.of(self.replica_id))
        if state.active:
            self._notice = ""
        words = self._notice
        line = self.query_one("#exec-message", Static)
        line.display = bool(words)
        line.update(words)
        self.prompt.border_subtitle = "not active" if resting(state) else ""

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        command = event.value.strip()
        state = self._app_state.replicas.get(self.replica_id)
        if not command or state is None:
            return
        self._notice = resting(state)
        if not self._notice:
            self._runs.start(self.replica_id, command)
            self.prompt.put("")
            self.prompt.set_history(self._runs.history)
        self.show_state()

    def action_interrupt(self) -> None:
        chosen = self.view.chosen if self.view.has_focus else None
        running = self._runs.running(self.replica_id)
        run = chosen if chosen is not None and chosen.running else next(reversed(running), None)
        if run is not None:
            self._runs.interrupt(run)

    def action_to_output(self) -> None:
        self.screen.set_focus(self.view)

    def action_to_prompt(self) -> None:
        self.screen.set_focus(self.prompt)

    def action_again(self) -> None:
        if (run := self.view.chosen) is not None:
            self.prompt.put(run.command)
            self.action_to_prompt()

    def action_copy(self) -> None:
        run = self.view.chosen
        if run is not None and run.response is not None and run.response.output:
            copy_text(self, clean_output(run.response.output))

    def action_clear(self) -> None:
        self._runs.forget(self.replica_id)
        self.show_state()

    def action_fold(self) -> None:
        self.view.fold()

    def action_run(self, step: int) -> None:
        self.view.go(step)

    def action_move(self, rows: int) -> None:
        self.view.scroll_by(rows)

    def action_page(self, direction: int) -> None:
        self.view.scroll_by(direction * max(1, self.view.size.height - 2))

    def action_edge(self, end: bool) -> None:
        self.view.scroll_by(10**9 if end else -(10**9))
