"""Shows a page: numbers, a cursor line, finding, copying."""

from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.selection import Selection
from textual.strip import Strip

from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.reading.finding import next_row, spans_in
from quarterdeck.tui.reading.pages import OutputPage, Page
from quarterdeck.tui.reading.painted import Painted, on_top
from quarterdeck.tui.transcript_view.lines import Line, Role, Span, plain

ASIDE = 8
"""Cells that a key moves a wide text by."""


class TextView(Painted):
    """One text of any length. The cursor is the line that copying means."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("pagedown,space,ctrl+f", "page(1)", "Page down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
        Binding("home,g", "edge(0)", "Beginning", show=False),
        Binding("end,G", "edge(-1)", "End", show=False),
        Binding("right,l", "aside(1)", "To the right", show=False),
        Binding("left,h", "aside(-1)", "To the left", show=False),
    ]

    cursor: reactive[int] = reactive(0, repaint=False)
    wanted: reactive[str] = reactive("")
    """The text that is looked for; its places are marked."""

    class Moved(Message):
        """The cursor is on another line."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._page: Page = OutputPage()

    @property
    def page(self) -> Page:
        """What is shown."""
        return self._page

    @property
    def at_end(self) -> bool:
        """The last row is seen."""
        return self.scroll_offset.y + self.size.height >= len(self._page)

    def show_page(self, page: Page, *, end: bool = False, keep: bool = False) -> None:
        """Shows another text: from its beginning, at its `end`, or where the reader was."""
        self._page = page
        self._fit()
        if not keep:
            self.set_reactive(TextView.cursor, 0)
            self.scroll_to(0, 0, animate=False, force=True)
        if end:
            self.action_edge(-1)
        self.refresh()
        self.post_message(self.Moved())

    def page_grew(self) -> None:
        """The page has more rows at its end; who reads the end goes on reading it."""
        following = self.at_end
        self._fit()
        if following:
            self.action_edge(-1)
        self.refresh()

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        self._page.lay_out(self._room)
        width = self._gutter + self._page.width
        self.virtual_size = Size(width, max(1, len(self._page)))
        self.set_reactive(TextView.cursor, min(self.cursor, max(0, len(self._page) - 1)))

    @property
    def _gutter(self) -> int:
        return len(str(len(self._page))) + 2 if self._page.numbered else 1

    @property
    def _room(self) -> int:
        """Cells for text: beside the scroll bar's, whether it is there or not."""
        return max(2, self.container_size.width - 1 - (0 if self._page.numbered else 2))

    # finding and copying

    def find(self, wanted: str, step: int = 1, *, onward: bool = False) -> bool:
        """Marks a text everywhere, and goes to its next place; False when there is none."""
        self.wanted = wanted
        start = self.cursor + step if onward else self.cursor
        row = next_row(self._shown_text, len(self._page), wanted, start, step)
        if row is None:
            return False
        self.cursor = row
        places = spans_in(self._shown_text(row), wanted)
        self._see_column(cell_len(self._shown_text(row)[: places[0][0]]))
        return True

    def _shown_text(self, index: int) -> str:
        return plain([self._page.row(index)])[0]

    def _see_column(self, column: int) -> None:
        room = self._room - self._gutter
        x = self.scroll_offset.x
        if not x <= column < x + room:
            self.scroll_to(x=max(0, column - room // 2), animate=False, force=True)

    def chosen_text(self) -> str:
        """What is selected with the mouse, else the cursor's line."""
        if self.text_selection is not None:
            return self.get_selection(self.text_selection)[0]
        return self._page.text(self.cursor) if len(self._page) else ""

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Part of Textual's selecting: the text, and what comes between it and the next."""
        rows = [self._shown_text(index) for index in range(len(self._page))]
        return selection.extract("\n".join(rows)), "\n"

    # moving

    def watch_cursor(self, old: int, new: int) -> None:
        self.show_lines(old, new)
        self.reveal(new)
        self.post_message(self.Moved())

    def action_move(self, step: int) -> None:
        self.cursor = max(0, min(len(self._page) - 1, self.cursor + step))

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height - 1))

    def action_edge(self, index: int) -> None:
        self.cursor = max(0, index % max(1, len(self._page)))

    def action_aside(self, direction: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + direction * ASIDE, animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        line = offset.y + self.scroll_offset.y if offset else len(self._page)
        if line < len(self._page) and self.text_selection is None:
            self.cursor = line

    # painting

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width = self.size.width
        if index >= len(self._page):
            return Strip.blank(width, self.rich_style)
        text = self._text_strip(index)
        left = self.scroll_offset.x
        gutter = self.paint_line(self._margin(index), self._gutter)
        text = text.crop(left, left + width - self._gutter)
        return Strip.join([gutter, text]).extend_cell_length(width, self.rich_style)

    def _margin(self, index: int) -> Line:
        if not self._page.numbered:
            return (Span("▌" if index == self.cursor and self.has_focus else " ", Role.WORKING),)
        number = f"{index + 1:>{self._gutter - 1}} "
        here = index == self.cursor
        return (Span(number, Role.WORKING if here else Role.DIM),)

    def _text_strip(self, index: int) -> Strip:
        row = self._page.row(index)
        strip = self.painter.strip(row, sum(cell_len(span.text) for span in row), 0)
        text = plain([row])[0]
        for start, end in spans_in(text, self.wanted):
            found = part_style(self, "painted--found")
            strip = on_top(strip, cell_len(text[:start]), cell_len(text[:end]), found)
        if (selection := self.text_selection) is not None:
            span = selection.get_span(index)
            if span is not None:
                end = len(text) if span[1] == -1 else span[1]
                style = self.screen.get_component_rich_style("screen--selection")
                strip = on_top(strip, cell_len(text[: span[0]]), cell_len(text[:end]), style)
        return strip.apply_offsets(0, index)
