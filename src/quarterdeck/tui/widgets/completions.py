"""What the word at the cursor may become: a few lines right above the composer."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import fit, one_line

MOST_SHOWN = 8


@dataclass(frozen=True)
class Completion:
    """`insert` takes the place of the word; `detail` says more of it."""

    insert: str
    detail: str = ""


class Completions(Widget):
    """Absent while there is nothing to choose. The composer keeps the keys, and tells of them."""

    COMPONENT_CLASSES = {"completions--cursor", "completions--detail"}
    DEFAULT_CSS = """
    Completions {
        display: none;
        height: auto;
        margin: 0 1;
        background: $surface;
        & > .completions--detail { color: $text-muted; }
        & > .completions--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """

    class Clicked(Message):
        """The person clicked the line under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self._all: tuple[Completion, ...] = ()
        self._top = 0
        self._at = 0

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose."""
        return bool(self._all)

    @property
    def chosen(self) -> Completion | None:
        """The one under the cursor."""
        return self._all[self._at] if self._all else None

    @property
    def text(self) -> str:
        """The lines that are shown."""
        return "\n".join(f"{one.insert} {one.detail}".rstrip() for one in self._window())

    def offer(self, found: Sequence[Completion]) -> None:
        """Shows others; the best one is chosen."""
        if tuple(found) == self._all:
            return
        self._all = tuple(found)
        self._at = self._top = 0
        self.display = bool(self._all)
        self.refresh(layout=True)

    def close(self) -> None:
        """Nothing is offered any more."""
        self.offer(())

    def move(self, by: int) -> None:
        """Another line; from the last one to the first."""
        if self._all:
            self._at = (self._at + by) % len(self._all)
            self._top = max(self._at - MOST_SHOWN + 1, min(self._top, self._at))
            self.refresh()

    def _window(self) -> Sequence[Completion]:
        return self._all[self._top : self._top + MOST_SHOWN]

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Part of `Widget`."""
        return min(MOST_SHOWN, len(self._all))

    def render_line(self, y: int) -> Strip:
        base, width = self.rich_style, self.size.width
        shown = self._window()
        if y >= len(shown):
            return Strip.blank(width, base)
        style, detail = base, base + self._style("detail")
        if self._top + y == self._at:
            style = detail = base + self._style("cursor")
        name = one_line(shown[y].insert)
        left = fit(f" {name}", min(width, max(24, cell_len(name) + 3)))
        return Strip(
            [Segment(left, style), Segment(fit(shown[y].detail, width - cell_len(left)), detail)]
        )

    def _style(self, name: str) -> Style:
        return part_style(self, f"completions--{name}")

    def on_click(self, event: Click) -> None:
        if self._top + event.y < len(self._all):
            self._at = self._top + event.y
            self.refresh()
            self.post_message(self.Clicked())
