"""Commands and their output, one below the other, painted by line."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.store.exec_runs import Run
from quarterdeck.tui.actions import Where
from quarterdeck.tui.panes.exec_output import folded, output_rows
from quarterdeck.tui.panes.exec_words import outcome
from quarterdeck.tui.panes.pane_keys import PaneKeys, pane_bindings
from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import fit, one_line
from quarterdeck.tui.widgets.placed import Placed

INSET = 2


@dataclass
class Drawn:
    """A run in rows; `marks` tell whether it is still the same."""

    marks: object
    rows: list[Strip]


class ExecView(ScrollView, PaneKeys, Placed, can_focus=True):
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

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings(Where.EXEC_OUTPUT)]

    empty: reactive[str] = reactive("")
    """Shown when there are no runs."""
    cursor: reactive[int] = reactive(0, repaint=False)

    def __init__(self) -> None:
        super().__init__()
        self._runs: list[Run] = []
        self._drawn: dict[str, Drawn] = {}
        self._tops: list[int] = [0]
        self._folded: set[str] = set()

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.EXEC_OUTPUT

    @property
    def chosen(self) -> Run | None:
        """The run under the cursor."""
        return self._runs[self.cursor] if self.cursor < len(self._runs) else None

    def show(self, runs: Sequence[Run]) -> None:
        """Shows runs as they are now; a reader at the end stays there."""
        fresh = [run for run in runs if run not in self._runs]
        chosen = self.chosen
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._runs = list(runs)
        known = {run.key for run in runs}
        self._drawn = {key: one for key, one in self._drawn.items() if key in known}
        self._folded &= known
        if chosen is None or fresh or chosen not in self._runs:
            self.cursor = max(0, len(self._runs) - 1)
        else:
            self.cursor = self._runs.index(chosen)
        self._lay_out(to_end=bool(fresh) or at_end)

    def on_resize(self) -> None:
        self._lay_out(to_end=self.scroll_offset.y >= self.max_scroll_y)

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        if self.is_mounted:
            # The styles of the parts are those of before until the theme is there as a whole.
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

    def _draw(self, run: Run, width: int) -> list[Strip]:
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

    def _head(self, run: Run, width: int) -> Strip:
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
        if not self._runs and y == 1:
            style = base + part_style(self, "exec--empty")
            return Strip([Segment(fit(f"  {self.empty}", width), style)])
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

    # what the pane asks for

    def go(self, step: int) -> None:
        """To the next command."""
        if self._runs:
            self.cursor = max(0, min(len(self._runs) - 1, self.cursor + step))
            top = self._tops[self.cursor]
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def scroll_by(self, rows: int) -> None:
        """The cursor goes to the command that is on top then."""
        top = max(0, min(self.max_scroll_y, self.scroll_offset.y + rows))
        self.scroll_to(y=top, animate=False, force=True, immediate=True)
        if self._runs:
            seen = top if top < self.max_scroll_y else self._tops[-1] - 1
            self.cursor = min(len(self._runs) - 1, bisect_right(self._tops, seen) - 1)

    def fold(self) -> None:
        """Folds or opens the output under the cursor."""
        if (run := self.chosen) is not None:
            self._folded ^= {run.key}
            self._lay_out(to_end=False)
            self.go(0)
