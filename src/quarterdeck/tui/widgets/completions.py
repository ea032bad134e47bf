"""Completions of the word at the cursor: a few lines right above the composer."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.text import fit
from quarterdeck.tui.themes import part_style

DETAIL_WIDTH = 20
"""Cells that a long name of another line leaves for what is said about this one."""
MOST_SHOWN = 8
_FILE = re.compile(r"(?:^|\s)@([^\s@]*)$")
_COMMAND = re.compile(r"^/([^\s/]*)$")


class Token(NamedTuple):
    """`start` is the column of its sign, `/` or `@`; `query` is the text after the sign."""

    kind: Literal["command", "file"]
    start: int
    query: str


def token_at(before: str, row: int) -> Token | None:
    """Return the token that ends at the cursor. `before`: the text of the cursor's line before it."""
    if row == 0 and (found := _COMMAND.match(before)):
        return Token("command", 0, found[1])
    if found := _FILE.search(before):
        return Token("file", found.start(1) - 1, found[1])
    return None


class Completion(NamedTuple):
    """`insert` replaces the word; `detail` describes it.

    `is_message`: it is a command without an argument, so Enter sends it.
    """

    insert: str
    detail: str = ""
    is_message: bool = False


class Completions(Widget):
    """Hidden while there is nothing to choose. The composer keeps the focus, and passes keys on."""

    COMPONENT_CLASSES = {"completions--cursor", "completions--detail"}
    DEFAULT_CSS = """
    Completions {
        display: none;
        height: auto;
        padding: 0 1;
        background: $surface;
        & > .completions--detail { color: $text-muted; }
        & > .completions--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """

    class Clicked(Message):
        """The user clicked the line under the cursor."""

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
        return "\n".join(
            f"{completion.insert} {completion.detail}".rstrip() for completion in self._window()
        )

    def offer(self, found: Sequence[Completion]) -> None:
        """Show others; the best one is selected."""
        if tuple(found) == self._all:
            return
        self._all = tuple(found)
        self._at = self._top = 0
        self.display = bool(self._all)
        self.refresh(layout=True)

    def close(self) -> None:
        """Hide the completions."""
        self.offer(())

    def move(self, by: int) -> None:
        """Move to another line; from the last one to the first."""
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
        names = [one_line(one.insert) for one in shown]
        own, *others = (cell_len(name) + 3 for name in (names[y], *names))
        column = max(24, *(other for other in others if other <= width - DETAIL_WIDTH), own)
        left = fit(f" {names[y]}", min(width, column))
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
