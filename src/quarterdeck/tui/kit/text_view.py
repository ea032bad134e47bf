"""Text that can be read, searched, copied and opened elsewhere.

`Reader` shows a text under its title, with a search field; its place, and so its keys, depend on the
part of the cockpit that it is in.
"""

import asyncio
from typing import ClassVar, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.fields import FindField
from quarterdeck.tui.kit.highlight import can_color, file_lines
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.pages import OutputPage, Page, SourcePage, TitleLine
from quarterdeck.tui.kit.spans import (
    ROLE_COMPONENTS,
    Line,
    Span,
    SpanPainter,
    TextRole,
    next_row,
    plain,
    role_css,
    spans_in,
)
from quarterdeck.tui.themes import part_style


class SpanView(ScrollView, can_focus=True):
    """Scrolled rows of spans in the theme's styles."""

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_COMPONENTS
    DEFAULT_CSS = """
SpanView {
    color: $foreground;
    overflow-x: hidden;
    scrollbar-size: 1 1;
}
""" + role_css("SpanView")

    virtual_size = Reactive(Size(0, 0), layout=False)
    """Without layout: a growing text must not lay out the screen again."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.painter = SpanPainter(self._role_style)

    def _role_style(self, role: TextRole) -> Style:
        return self.get_component_rich_style(f"transcript--{role}")

    def notify_style_update(self) -> None:
        """Draw again with another theme."""
        super().notify_style_update()
        self.painter.reset()

    def paint_line(self, row: Line, width: int) -> Strip:
        """Return a row in exactly `width` cells."""
        return self.painter.strip(row, width, 0)

    def show_lines(self, *lines: int) -> None:
        """Paint some lines again, as far as they are visible."""
        top = self.scroll_offset.y
        self.refresh(*(Region(0, line - top, self.size.width, 1) for line in lines))

    def reveal(self, line: int) -> None:
        """Scroll as little as possible to show a line."""
        x = self.scroll_offset.x
        self.scroll_to_region(Region(x, line, 1, 1), animate=False, force=True)


def on_top(strip: Strip, left: int, right: int, style: Style) -> Strip:
    """Return a strip with some of its cells, as start and end, in a style over their own."""
    before, inside, after = strip.crop(0, left), strip.crop(left, right), strip.crop(right)
    chosen = [Segment(words, (own or Style.null()) + style) for words, own, _ in inside]
    return Strip.join([before, Strip(chosen), after])


ASIDE = 8
"""Cells that a key scrolls a wide text by."""


class TextView(SpanView):
    """A text of any length. The cursor is the line that is copied."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"text--found"}
    DEFAULT_CSS = "TextView > .text--found { background: $warning; color: $background; }"

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

    has_cursor: ClassVar[bool] = True
    """Whether keys move a cursor, which is marked in a separate column; else they scroll."""
    cursor: reactive[int] = reactive(0, repaint=False)
    wanted: reactive[str] = reactive("")
    """The search text; its matches are marked."""

    class Moved(Message):
        """The cursor is on another line."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._page: Page = OutputPage()

    @property
    def page(self) -> Page:
        """The page that is shown."""
        return self._page

    @property
    def at_end(self) -> bool:
        """Whether the last row is visible."""
        return self.scroll_offset.y + self.size.height >= len(self._page)

    def show_page(self, page: Page, *, end: bool = False, keep: bool = False) -> None:
        """Show another text: from its start, at its `end`, or at the same position."""
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
        """Note that the page has more rows at its end; a reader at the end follows it."""
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
        if self._page.numbered:
            return len(str(len(self._page))) + 2
        return 1 if self.has_cursor else 0

    @property
    def _room(self) -> int:
        """Cells for text: without the scroll bar's, whether it is there or not."""
        if not self.has_cursor:
            return max(2, self.size.width)
        return max(2, self.container_size.width - 1 - (0 if self._page.numbered else 2))

    # searching and copying

    def find(self, wanted: str, step: int = 1, *, onward: bool = False) -> bool:
        """Mark all matches of a text, and go to the next; False when there is none."""
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
        """Return the text selected with the mouse, else the cursor's line."""
        if self.text_selection is not None:
            return self.get_selection(self.text_selection)[0]
        return self._page.text(self.cursor) if len(self._page) else ""

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Part of Textual's selecting: the text, and what comes between it and the next."""
        rows = [self._shown_text(index) for index in range(len(self._page))]
        return selection.extract("\n".join(rows)), "\n"

    # navigation

    def watch_cursor(self, old: int, new: int) -> None:
        self.show_lines(old, new)
        self.reveal(new)
        self.post_message(self.Moved())

    def action_move(self, step: int) -> None:
        if self.has_cursor:
            self.cursor = max(0, min(len(self._page) - 1, self.cursor + step))
        else:
            self.scroll_relative(y=step, animate=False)

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height - 1))

    def action_edge(self, index: int) -> None:
        line = max(0, index % max(1, len(self._page)))
        if self.has_cursor:
            self.cursor = line
        else:
            self.reveal(line)

    def action_aside(self, direction: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + direction * ASIDE, animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        line = offset.y + self.scroll_offset.y if offset else len(self._page)
        if self.has_cursor and line < len(self._page) and self.text_selection is None:
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
            return (
                Span("▌" if index == self.cursor and self.has_focus else " ", TextRole.WORKING),
            )
        number = f"{index + 1:>{self._gutter - 1}} "
        here = index == self.cursor
        return (Span(number, TextRole.WORKING if here else TextRole.DIM),)

    def _text_strip(self, index: int) -> Strip:
        row = self._page.row(index)
        strip = self.painter.strip(row, sum(cell_len(span.text) for span in row), 0)
        text = plain([row])[0]
        for start, end in spans_in(text, self.wanted):
            found = part_style(self, "text--found")
            strip = on_top(strip, cell_len(text[:start]), cell_len(text[:end]), found)
        if (selection := self.text_selection) is not None:
            span = selection.get_span(index)
            if span is not None:
                end = len(text) if span[1] == -1 else span[1]
                style = self.screen.get_component_rich_style("screen--selection")
                strip = on_top(strip, cell_len(text[: span[0]]), cell_len(text[:end]), style)
        return strip.apply_offsets(0, index)


class PaneAction(Message):
    """An action that the surrounding pane carries out. Keys typed meanwhile are held until the pane releases them."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class ForwardsToPane:
    """Mixin for a widget with keys that its pane handles."""

    def action_forward(self, name: str) -> None:
        """Part of the table of actions: `forward('name')`."""
        cast("Widget", self).post_message(PaneAction(name))


class Reader(Vertical, ForwardsToPane, HasKeyContext):
    """Title, text, a line for remarks, and the search field while it is used."""

    DEFAULT_CSS = """
    Reader {
        & TextView { height: 1fr; }
        & FindField { display: none; }
        &.finding FindField { display: block; }
        & .message { height: auto; max-height: 3; padding: 0 1; color: $text-warning; display: none; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._title = ""
        self._facts = ""

    def compose(self) -> ComposeResult:
        yield TitleLine()
        yield TextView()
        yield Static(classes="message", markup=False)
        yield FindField(placeholder="find in the text")

    @property
    def text(self) -> TextView:
        """The text itself; it takes the focus."""
        return self.query_one(TextView)

    @property
    def finding(self) -> bool:
        """Whether a search is active."""
        return self.has_class("finding")

    def show_page(
        self, title: str, page: Page, *, facts: str = "", end: bool = False, keep: bool = False
    ) -> None:
        """Show another text; with `keep` the scroll position is kept."""
        self._title, self._facts = title, facts
        self.text.show_page(page, end=end, keep=keep)
        self._show_title()

    def say(self, words: str) -> None:
        """Show a remark; an empty one removes the line."""
        message = self.query_one(".message", Static)
        message.display = bool(words)
        message.update(one_line(words))

    @on(TextView.Moved)
    def _show_title(self) -> None:
        view = self.text
        numbered = view.page.numbered and len(view.page)
        at = f"{view.cursor + 1}/{len(view.page)}" if numbered else ""
        facts = "  ".join(part for part in (self._facts, at) if part)
        self.query_one(TitleLine).show(self._title, facts)

    # actions of every place that is a reader

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action may run: letters typed into the field are not keys."""
        return not isinstance(self.screen.focused, FindField)

    def action_find(self) -> None:
        self.add_class("finding")
        field = self.query_one(FindField)
        self.screen.set_focus(field)
        field.select_all()

    def action_find_next(self, step: int) -> None:
        wanted = self.text.wanted
        if not wanted:
            self.action_find()
        elif not self.text.find(wanted, step, onward=True):
            self._not_found(wanted)

    def action_copy(self) -> None:
        if chosen := self.text.chosen_text():
            copy_text(self, chosen)

    def _not_found(self, wanted: str) -> None:
        self.say(f"Nowhere in it: {wanted}" if wanted else "")

    @on(FindField.Changed)
    def _wanted_changed(self, event: FindField.Changed) -> None:
        event.stop()
        found = self.text.find(event.value) if event.value else True
        if not event.value:
            self.text.wanted = ""
        self._not_found("" if found else event.value)

    @on(FindField.Next)
    def _next_wanted(self, event: FindField.Next) -> None:
        event.stop()
        if self.text.wanted:
            self.text.find(self.text.wanted, event.step, onward=True)

    @on(FindField.Left)
    def _field_left(self, event: FindField.Left) -> None:
        event.stop()
        self.remove_class("finding")
        self.say("")
        if not event.kept:
            self.text.wanted = ""
        self.screen.set_focus(self.text)


class ColoredReader(Reader):
    """A reader whose text is highlighted shortly after it is shown."""

    def color(self, name: str, page: SourcePage) -> bool:
        """Highlight a page by its file's name, unless it is too large for that."""
        if not can_color(page.lines):
            return False
        self._color(name, page)
        return True

    @work(group="color", exclusive=True)
    async def _color(self, name: str, page: SourcePage) -> None:
        # In a thread: the first file loads the highlighter, and a long one takes a while.
        page.colors = await asyncio.to_thread(file_lines, name.rpartition("/")[2], page.lines)
        if page.colors is not None and self.text.page is page:
            self.text.refresh()
