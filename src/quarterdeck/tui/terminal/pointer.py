"""What the mouse does in a terminal: reported to the program, or selecting and scrolling.

The program gets it when it asked, except with Shift, which is always the reader's own.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from textual import events

from quarterdeck.tui.terminal.core import Mode, SelectionKind
from quarterdeck.tui.terminal.emulator import Emulator
from quarterdeck.tui.terminal.keys import encode_key
from quarterdeck.tui.terminal.mouse import Act, Mouse, encode_mouse, wants_mouse

WHEEL_LINES = 3
CLICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Spot:
    """A cell of the program's screen."""

    x: int
    y: int


class Pointer:
    """One terminal's mouse. `send` types into the program."""

    def __init__(self, emulator: Emulator, send: Callable[[str], None]) -> None:
        self._emulator = emulator
        self._send = send
        self._held: int | None = None
        self._selecting = False
        self._extended = False
        self._clicks = 0
        self._last: tuple[Spot, float] = (Spot(-1, -1), 0.0)
        self.beyond = 0
        """Where a selection is being pulled to: -1 above the part in view, 1 below it."""
        self.has_selection = False

    def asks_link(self, event: events.MouseDown, modes: Mode) -> bool:
        """Whether a press is meant for a link: with Ctrl, and not the program's."""
        return event.button == 1 and event.ctrl and not self._reports(event, modes)

    def press(self, event: events.MouseDown, spot: Spot, modes: Mode) -> None:
        """A button went down."""
        if self._reports(event, modes):
            self._held = event.button - 1
            self._report(event, spot, modes, Act.PRESS, self._held)
        elif event.button == 1:
            self._begin(spot)

    def _begin(self, spot: Spot) -> None:
        now = time.monotonic()
        again = self._last[0] == spot and now - self._last[1] < CLICK_SECONDS
        self._clicks = self._clicks % 3 + 1 if again else 1
        self._last = (spot, now)
        kind = SelectionKind(self._clicks - 1)
        self._selecting, self._extended = True, kind is not SelectionKind.CELL
        self.has_selection = True
        self._emulator.select_from(spot.x, spot.y, kind)

    def move(self, event: events.MouseMove, spot: Spot, modes: Mode, beyond: int) -> None:
        """The mouse moved; `beyond` is -1 above and 1 below the widget."""
        if self._selecting:
            self.beyond = beyond
            if spot != self._last[0]:
                self._extended = True
            if self._extended:
                self._emulator.select_to(spot.x, spot.y)
        elif self._reports(event, modes) or self._held is not None:
            self._report(event, spot, modes, Act.MOVE, self._held)

    def pull(self, spot: Spot) -> None:
        """Goes on selecting beyond the edge, for as long as the mouse is held there."""
        self._emulator.scroll(self.beyond)
        self._emulator.select_to(spot.x, spot.y)

    def release(self, event: events.MouseUp, spot: Spot, modes: Mode) -> bool:
        """A button went up. Whether something is selected now that is to be copied."""
        self.beyond = 0
        if self._held is not None:
            self._report(event, spot, modes, Act.RELEASE, self._held)
            self._held = None
            return False
        if not self._selecting:
            return False
        self._selecting = False
        if not self._extended:
            self.clear()
        return self._extended

    def wheel(self, event: events.MouseEvent, spot: Spot, modes: Mode, lines: int) -> None:
        """The wheel turned by -1 (back) or 1."""
        if self._reports(event, modes):
            self._report(event, spot, modes, Act.PRESS, 64 if lines < 0 else 65)
        elif not modes & Mode.ALTERNATE_SCREEN:
            self._emulator.scroll(lines * WHEEL_LINES)
        elif modes & Mode.ALTERNATE_SCROLL:
            key = encode_key("up" if lines < 0 else "down", None, modes)
            self._send((key or "") * WHEEL_LINES)

    def clear(self) -> None:
        """Selects nothing."""
        if self.has_selection:
            self.has_selection = False
            self._emulator.clear_selection()

    def _reports(self, event: events.MouseEvent, modes: Mode) -> bool:
        return wants_mouse(modes) and not event.shift

    def _report(
        self, event: events.MouseEvent, spot: Spot, modes: Mode, act: Act, button: int | None
    ) -> None:
        mouse = Mouse(act, button, spot.x, spot.y, event.shift, event.meta, event.ctrl)
        if text := encode_mouse(mouse, modes):
            self._send(text)
