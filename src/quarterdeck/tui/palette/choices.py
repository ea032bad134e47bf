"""The lines of the palette: few widgets, many lines."""

from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.palette.entries import Entry
from quarterdeck.tui.palette.fuzzy import Fit
from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import fit

NOTHING = "Nothing fits. Backspace, or escape to close."
FOUND = Style(bold=True, underline=True)


class Choices(Widget):
    """What fits, and a cursor; the part of it that has room."""

    COMPONENT_CLASSES = {"choices--cursor", "choices--dim"}
    DEFAULT_CSS = """
    Choices {
        height: 1fr;
        & > .choices--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
        & > .choices--dim { color: $text-muted; }
    }
    """

    class Chosen(Message):
        """A line was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self._found: list[tuple[Entry, Fit]] = []
        self._cursor = 0
        self._top = 0

    def show(self, found: list[tuple[Entry, Fit]]) -> None:
        """Shows other lines; the cursor is on the first."""
        self._found = found
        self._cursor = self._top = 0
        self.refresh()

    @property
    def chosen(self) -> Entry | None:
        """What is under the cursor."""
        return self._found[self._cursor][0] if self._found else None

    def move(self, by: int) -> None:
        """Moves the cursor, at the ends to the other one."""
        if not self._found:
            return
        if abs(by) == 1:
            self._cursor = (self._cursor + by) % len(self._found)
        else:
            self._cursor = max(0, min(self._cursor + by, len(self._found) - 1))
        height = max(1, self.size.height)
        self._top = max(min(self._top, self._cursor), self._cursor - height + 1)
        self.refresh()

    def on_click(self, event: Click) -> None:
        if self._top + event.y < len(self._found):
            self._cursor = self._top + event.y
            self.post_message(self.Chosen())

    def on_mouse_scroll_down(self) -> None:
        self.move(1)

    def on_mouse_scroll_up(self) -> None:
        self.move(-1)

    def render_line(self, y: int) -> Strip:
        base, width = self.rich_style, self.size.width
        dim = base + part_style(self, "choices--dim")
        at = self._top + y
        if not self._found and y == 0:
            return Strip([Segment(fit(NOTHING, width), dim)])
        if at >= len(self._found):
            return Strip.blank(width, base)
        if at == self._cursor:
            base = dim = self.get_component_rich_style("choices--cursor")
        return Strip(_line(*self._found[at], width, base, dim))


def _line(entry: Entry, found: Fit, width: int, base: Style, dim: Style) -> list[Segment]:
    """Kind, text with the letters that were found, note."""
    kind = f" {entry.kind} " if entry.kind else " "
    room = max(4, width - len(kind) - len(entry.note) - 2)
    text = fit(entry.text, room)
    places = {place for place in found.places if place < len(text)}
    segments = [Segment(kind, dim)]
    segments += [Segment(one, base + FOUND if n in places else base) for n, one in enumerate(text)]
    note = f" {entry.note} "
    return [*segments, Segment(fit(note, max(0, width - len(kind) - room)), dim)]
