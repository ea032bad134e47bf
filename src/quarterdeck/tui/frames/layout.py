"""Layout of a frame and the rows that were scrolled in it.

A screen whose layouts are compared with the previous layout, and that can draw without waiting.

Textual's compositor makes a new map of the widgets whenever a widget's position is requested, also
before the requested layout. The layout then finds nothing changed: what moved is
not drawn at its new place, and its old place is not cleared.

Frames are at least 16 ms apart, so that changes are combined. What a key changed need not wait for that:
it is complete when the key is handled, and the user is waiting for it.

Rows that only moved up or down: found, compared with drawing them again, and moved.

A scroll region of a terminal is as wide as the screen (left and right margins are not supported
everywhere), so what is next to the moved text moves too and is drawn again. Whether that is shorter
is counted, cell by cell, for each frame.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_not
from typing import Any, NamedTuple, TypeVar

from textual import _callback, events, on
from textual._compositor import ReflowResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from quarterdeck.tui.frames.cells import UNKNOWN, Cell, FrontCompositor
from quarterdeck.tui.frames.pace import pacing_of
from quarterdeck.tui.textual_ext.driver import is_known

R = TypeVar("R")
Callback = Callable[..., Any]


class SettledCompositor(FrontCompositor):
    """Keeps the map of the last layout, whatever was queried since."""

    def __init__(self) -> None:
        super().__init__()
        self._laid_out = self._full_map

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Part of `Compositor`."""
        self._full_map = self._laid_out
        result = super().reflow(parent, size)
        self._laid_out = self._full_map
        return result


class SettledLayout(Screen[R]):
    """Base class of screens, in place of `Screen`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if is_known():
            self._compositor = SettledCompositor()
        self._draws_next = False
        self._for_after_refresh: list[Callback] = []

    def draw_next(self) -> None:
        """Draw the next change as soon as the screen has nothing else to do."""
        self._draws_next = True

    def call_after_refresh(self, callback: Callback, *args: Any, **kwargs: Any) -> bool:
        """Call a function after the next frame, which may be that of the previous screen.

        It is not called when this screen has been closed by then, since its parts may be removed.

        Textual keeps the callback in the screen that is current then, and drops it when that one is
        closed first. So it is kept here too, until it is called.
        """
        waiting = partial(callback, *args, **kwargs)
        self._for_after_refresh.append(waiting)
        return super().call_after_refresh(self._if_open, waiting)

    @on(events.ScreenResume)
    def _resumed(self, event: events.ScreenResume) -> None:
        """Schedule the callbacks that the previous screen had not called."""
        # Shown for the first time, its parts were styled when they were mounted, with everything but
        # a screen's own CSS: where tasks are eager (Python 3.12), Textual loads that afterwards.
        if not (self.stack_updates or self.CSS or self.css_path):
            event.refresh_styles = False
        for waiting in self._for_after_refresh:
            super().call_after_refresh(self._if_open, waiting)

    async def _if_open(self, waiting: Callback) -> None:
        if waiting not in self._for_after_refresh:
            return
        self._for_after_refresh.remove(waiting)
        if self.display:  # Textual's criterion for what is neither hidden nor being removed
            await _callback.invoke(waiting)

    async def _on_idle(self, event: events.Idle) -> None:
        await super()._on_idle(event)
        if self._draws_next and self._has_changed() and is_known():
            self._draws_next = False
            self._on_timer_update()

    def _compositor_refresh(self) -> None:
        """Part of `Screen`: draw, or defer to the end of a batch: Textual would draw and discard the frame."""
        if self.app._batch_count:  # pyright: ignore[reportPrivateUsage]
            self.refresh()
        else:
            super()._compositor_refresh()

    def _on_timer_update(self) -> None:
        """Part of `Screen`: draw, unless the terminal is still busy with earlier frames."""
        pacing = pacing_of(self)
        if pacing is None or pacing.may_draw:
            super()._on_timer_update()
            if pacing is not None and self.is_active:
                pacing.end_frame()
        else:
            self._update_timer.pause()
            pacing.draw_later(self._draw_late)

    def _draw_late(self) -> None:
        if self.is_running:
            self._on_timer_update()

    def _has_changed(self) -> bool:
        """Return whether there is something to draw that may be drawn now."""
        if not self.is_current or self.app._batch_count:  # pyright: ignore[reportPrivateUsage]
            return False
        laid_out = self._layout_required or self._scroll_required or self._repaint_required
        return laid_out or bool(self._dirty_widgets)


_FEWEST = 4
"""Strips that must have moved alike."""
_COST = 24
"""Approximate bytes of the control sequences."""
_ROW_COST = 6
"""Approximate bytes that move the cursor to a row."""

Row = list[Cell]


class Shift(NamedTuple):
    """Rows from `top` up to `bottom` move up by `lines`; down when it is negative."""

    top: int
    bottom: int
    lines: int

    def sequence(self) -> str:
        """Return the control sequences. Index and reverse index are as old as scroll regions."""
        inside = f"\x1b[{self.top + 1};{self.bottom}r"
        if self.lines > 0:
            steps = f"\x1b[{self.bottom};1H" + "\x1bD" * self.lines
        else:
            steps = f"\x1b[{self.top + 1};1H" + "\x1bM" * -self.lines
        return f"{inside}{steps}\x1b[r"

    def moved(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of the region afterwards; new rows are unknown."""
        inside = list(rows[self.top : self.bottom])
        fresh = [[UNKNOWN] * len(rows[0])] * abs(self.lines)
        if self.lines > 0:
            return [*inside[self.lines :], *fresh]
        return [*fresh, *inside[: self.lines]]


def find_shift(moves: Sequence[tuple[int, int]]) -> Shift | None:
    """Return the commonest of the moves, given as (row before, row now)."""
    votes = Counter(before - now for before, now in moves)
    votes.pop(0, None)
    if not votes:
        return None
    lines, count = votes.most_common(1)[0]
    if count < _FEWEST:
        return None
    rows = [row for before, now in moves if before - now == lines for row in (before, now)]
    top, bottom = min(rows), max(rows) + 1
    return Shift(top, bottom, lines) if bottom - top > abs(lines) else None


def pays(shift: Shift, shown: Sequence[Row], wanted: Mapping[int, Row]) -> bool:
    """Return whether moving the rows first sends less."""
    region = range(shift.top, shift.bottom)
    drawn = sum(_cost(shown[y], wanted[y]) for y in region if y in wanted)
    rows = zip(shift.moved(shown), region, strict=True)
    return _COST + sum(_cost(row, wanted.get(y, shown[y])) for row, y in rows) < drawn


def _cost(shown: Row, wanted: Row) -> int:
    changed = sum(map(is_not, shown, wanted))
    return changed + _ROW_COST if changed else 0
