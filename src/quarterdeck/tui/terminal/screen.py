"""What is on one terminal's screen, as last told by the emulator, and the part that is in view."""

from quarterdeck.tui.terminal.core import Cursor, Mode, Row, Scrollback, State
from quarterdeck.tui.terminal.frames import Frame


class TerminalScreen:
    """Rows and state. The widget may be smaller than the program's screen: it shows a part."""

    def __init__(self) -> None:
        self.state = State(80, 24, Cursor(visible=False), Mode.NONE, Scrollback(0, 0, 0), "", 0)
        self.left = 0
        """First column in view."""
        self.top = 0
        """First row in view."""
        self._rows: dict[int, Row] = {}

    def row(self, y: int) -> Row | None:
        """A row in view, counted from the widget's top; null beyond the program's screen."""
        place = y + self.top
        return self._rows.get(place, ()) if place < self.state.rows else None

    @property
    def cursor(self) -> Cursor:
        """The cursor in the widget's coordinates."""
        cursor = self.state.cursor
        return cursor._replace(x=cursor.x - self.left, y=cursor.y - self.top)

    def apply(self, frame: Frame, width: int, height: int) -> set[int] | None:
        """Takes a frame. Which rows of the widget changed; null means all of them."""
        before = self.cursor
        resized = (frame.state.cols, frame.state.rows) != (self.state.cols, self.state.rows)
        self.state = frame.state
        self._rows.update(frame.rows)
        if resized:
            self._rows = {y: row for y, row in self._rows.items() if y < frame.state.rows}
        if self.follow(width, height) or resized:
            return None
        changed = {y - self.top for y, _ in frame.rows}
        if before != self.cursor:
            changed |= {before.y, self.cursor.y}
        return {y for y in changed if 0 <= y < height}

    def follow(self, width: int, height: int) -> bool:
        """Moves the part in view so that the cursor is in it; whether it moved."""
        cursor, state = self.state.cursor, self.state
        left = _nearest(self.left, cursor.x, width, state.cols, cursor.visible)
        top = _nearest(self.top, cursor.y, height, state.rows, cursor.visible)
        moved = (left, top) != (self.left, self.top)
        self.left, self.top = left, top
        return moved


def _nearest(start: int, cursor: int, room: int, size: int, follow: bool) -> int:
    if follow:
        start = min(max(start, cursor - room + 1), cursor)
    return max(0, min(start, size - room))
