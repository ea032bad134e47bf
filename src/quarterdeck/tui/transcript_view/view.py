"""The transcript on the screen.

    caller --refresh_change(Change)--> TranscriptView -> Reader -> Drawings -> strips
    caller <--CopyWanted, LinkClicked, OlderWanted, NewBelow

One widget for a chat of any length: blocks are laid out when they become visible, and cached while they do
not change. Changes are applied at once and drawn once a frame. Nothing here runs on a timer.
"""

from collections.abc import Collection
from datetime import datetime
from typing import ClassVar, NamedTuple, Self, cast

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from quarterdeck.transcript.blocks import Block
from quarterdeck.transcript.export import plain_lines
from quarterdeck.transcript.fold import BlockChanges, Transcript
from quarterdeck.tui.frames import pacing_of
from quarterdeck.tui.kit.spans import SpanPainter, TextRole
from quarterdeck.tui.transcript_view import navigation
from quarterdeck.tui.transcript_view.blocks import BlockShape
from quarterdeck.tui.transcript_view.layout import TOGGLE
from quarterdeck.tui.transcript_view.navigation import (
    BINDINGS,
    COMPONENTS,
    CSS,
    MatchPosition,
    Search,
)
from quarterdeck.tui.transcript_view.view_model import TranscriptReader
from quarterdeck.tui.transcript_view.viewport import Window

_WHEEL = 3
_FAR = 4
"""Windows: a longer jump uses estimated heights, a shorter one is measured line by line."""
_BAR_STEPS = 8
"""Positions of the scroll bar's thumb within a row."""
# The descriptors: setting them without their watchers shows the position without changing it.
_SCROLL_Y = ScrollView.scroll_y
_SCROLL_TARGET_Y = cast("Reactive[float]", ScrollView.scroll_target_y)


class ReadingPosition(NamedTuple):
    """A position in a transcript: a block, its row at the top of the window, and the open blocks.

    Block `None`: at the end, which is followed.
    """

    block_id: int | None
    row: int
    opened: dict[int, BlockShape]


class TranscriptView(ScrollView, can_focus=True):
    """Shows a `Transcript`. The caller reports changes by `refresh_change`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS
    DEFAULT_CSS = CSS
    BINDINGS: ClassVar[list[BindingType]] = [*BINDINGS]

    virtual_size = Reactive(Size(0, 0), layout=False)
    """Lines, as far as known. Without layout: a growing text must not lay out the screen again."""
    has_older: reactive[bool] = reactive(False, repaint=False)
    """Older pages exist; scrolling to the top requests them."""
    new_below: reactive[int] = reactive(0, repaint=False)
    """Blocks below the window that are new or changed since the reader left the end."""
    working_since: reactive[datetime | None] = reactive[datetime | None](None)
    """Start of the running turn; shown after the last block."""

    class ViewMessage(Message):
        """A message of the view to its owner; `control` is the view."""

        def __init__(self, view: "TranscriptView") -> None:
            super().__init__()
            # Some are sent while the screen draws; a message whose sender is the screen would end there.
            self.set_sender(view)
            self.view = view

        @property
        def control(self) -> "TranscriptView":
            """The view that sent it."""
            return self.view

    class OlderWanted(ViewMessage):
        """The reader is at the top, and `has_older`. Answer with a change of a prepended page."""

    class NewBelow(ViewMessage):
        """`count` blocks below the window are new or changed; 0: the reader is at the end."""

        def __init__(self, view: "TranscriptView", count: int) -> None:
            super().__init__(view)
            self.count = count

    class LinkClicked(ViewMessage):
        """The user clicked a link. Its address may differ from the text that was clicked."""

        def __init__(self, view: "TranscriptView", address: str) -> None:
            super().__init__(view)
            self.address = address

    class CopyWanted(ViewMessage):
        """The user wants this text on the clipboard."""

        def __init__(self, view: "TranscriptView", text: str) -> None:
            super().__init__(view)
            self.text = text

    def __init__(
        self,
        transcript: Transcript,
        *,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._reader = TranscriptReader(transcript, SpanPainter(self._role_style))
        self._older_asked = False
        self._window = Window()
        self._is_stale = True
        self._settled: tuple[Size, bool] | None = None
        self._search = Search(self._reader)
        self._bar: tuple[int, int, int, bool] | None = None

    # Interface for the caller.

    @property
    def transcript(self) -> Transcript:
        """The transcript that is shown."""
        return self._reader.transcript

    def show_speaker(self, name: str) -> None:
        """Set the agent's name, which stands above what it says."""
        if self._reader.show_speaker(name):
            self.refresh()

    def show_calls(self, calls: str) -> None:
        """Set what ended tool calls show: `folded`, `edits` or `output`."""
        self._reader.show_calls(calls)
        self._is_stale = True
        self.refresh()

    @property
    def cursor_block(self) -> Block | None:
        """The block that the cursor is on."""
        return navigation.cursor_block(self._reader)

    @property
    def following(self) -> bool:
        """Whether the end is shown, and followed."""
        return self._reader.viewport.following

    def set_transcript(self, transcript: Transcript, *, has_older: bool = False) -> None:
        """Show another transcript, from its end."""
        self._reader.restart(transcript)
        self._search.restart()
        self._unselect()
        self._older_asked = False
        self.has_older = has_older
        self.refresh()

    def refresh_change(self, change: BlockChanges) -> None:
        """Apply a change of the transcript. Cheap: drawing waits for a frame that the line has room for."""
        if not change:
            return
        self._reader.take(change)
        if change.older:
            self._older_asked = False
            self._unselect()
        if self._is_stale:  # a frame of a stream has fifty changes
            return
        if self.is_attached and (pacing := pacing_of(self)):
            pacing.stream(self.refresh)
        else:
            self.refresh()

    def find(self, words: str) -> bool:
        """Mark a text, and go to its next match; False when there is none here.

        Empty: marks are removed.
        """
        found = self._search.start(words)
        self._window.forget()
        self.refresh()
        return found

    def find_again(self, by: int, *, around: bool = False) -> bool:
        """Go to the next (1) or previous (-1) match; False when there is none.

        With `around` continue from the other end.
        """
        found = self._search.go_round(by) if around else self._search.go(by)
        self.refresh()
        return found

    @property
    def found(self) -> MatchPosition | None:
        """The number of the current match, and how many there are; None while there is none."""
        return self._search.place

    @property
    def finding(self) -> bool:
        """Whether matches are marked."""
        return self._search.pattern is not None

    def go_to_time(self, at: datetime) -> bool:
        """Move the cursor to the first block of a time or later; False when it is on an older page."""
        found = navigation.to_time(self._reader, at, has_older=self.has_older)
        self.refresh()
        return found

    def follow(self) -> None:
        """Show the end, and follow it."""
        self._reader.viewport.end()
        self.refresh()

    def text_of(self, block: Block) -> str:
        """Return a block as text to copy."""
        return "\n".join(plain_lines(block))

    # Drawing.

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Lay the window out again for the next frame, because something changed."""
        self._is_stale = True
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _exchange_repaint_regions(self) -> Collection[Region]:
        """Return the regions to paint in this frame: of the refreshed ones, only rows that differ."""
        if not super()._exchange_repaint_regions():
            return ()
        self._settle()
        width = self.size.width
        changes = self._window.take_changes()
        return {Region(0, start, width, end - start) for start, end in changes}

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lay out what changed since the last frame, then draw.

        Strips are passed to the compositor directly, bypassing Textual's own cache of styled lines:
        most of a frame's cost would be in there. So the view has no border or padding.
        """
        self._settle()
        strips = self._window.hand_over()
        strips = strips[crop.y : crop.bottom]
        strips += [self._blank()] * (crop.height - len(strips))
        if crop.column_span != (0, self.size.width):
            return [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """Return a row of the window; Textual uses it to find the character under the mouse."""
        strips = self._window.strips
        if not 0 <= y < len(strips):
            return self._blank()
        number = navigation.row_number(self._reader, y)
        return strips[y] if number is None else strips[y].apply_offsets(0, number)

    def _blank(self) -> Strip:
        return Strip.blank(self.size.width, self.rich_style)

    def _draw(self) -> None:
        """Draw the visible rows of the window."""
        height = self.size.height
        strips = self._reader.strips()
        if len(strips) < height:
            strips += [self._blank()] * (height - len(strips))
        if self.text_selection is not None:
            self._highlight(strips, self.text_selection)
        if self._search.pattern is not None:
            looks = ("transcript--found", "transcript--found-here")
            strips = self._search.mark(strips, *map(self.get_component_rich_style, looks))
        if self.has_focus:
            for y in self._reader.cursor_rows():
                strips[y] = self._with_cursor(strips[y])
        if self.new_below and strips:
            strips[-1] = self._with_count(strips[-1])
        filters = self.get_line_filters()
        background = self.background_colors[1]

        def finish(strip: Strip) -> Strip:
            for line_filter in filters:
                strip = strip.apply_filter(line_filter, background)
            return strip

        self._window.show(strips, finish)

    def _highlight(self, strips: list[Strip], selection: Selection) -> None:
        style = self.screen.get_component_rich_style("screen--selection")
        for y, strip in enumerate(strips):
            number = navigation.row_number(self._reader, y)
            span = None if number is None else selection.get_span(number)
            if span is not None:
                strips[y] = navigation.highlighted(strip, span, style)

    def _with_cursor(self, strip: Strip) -> Strip:
        bar = Segment("\u258c", self.get_component_rich_style("transcript--cursor"))
        return Strip.join([Strip([bar], 1), strip.crop(1)])

    def _with_count(self, strip: Strip) -> Strip:
        text = f" \u2193 {self.new_below} new below "
        label = Segment(text, self.get_component_rich_style("transcript--below"))
        cut = max(0, self.size.width - len(text))
        return Strip.join([strip.crop(0, cut), Strip([label], len(text)).crop(0, self.size.width)])

    def _role_style(self, role: TextRole) -> Style:
        return self.get_component_rich_style(f"transcript--{role}")

    def _settle(self) -> None:
        """Synchronize the reader, the scroll position and the scroll bar.

        A view that was just removed stays in the compositor for one more frame, unchanged.
        """
        if not self.is_attached:
            return
        state = (self.scrollable_content_region.size, self.has_focus)
        if not self._is_stale and state == self._settled:
            return
        self._is_stale = False
        self._settled = state
        reader = self._reader
        reader.resize(*state[0])
        reader.settle()
        self._show_position()
        if self.new_below != reader.new_below:
            self.new_below = reader.new_below
            self.post_message(self.NewBelow(self, self.new_below))
        self._draw()
        self._want_older()

    def _want_older(self) -> None:
        at_top = self._reader.viewport.y == 0
        if self.has_older and at_top and not self._older_asked and self.size.height:
            self._older_asked = True
            self.post_message(self.OlderWanted(self))

    # Copying.

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the selected text, and what comes between it and another widget's."""
        return navigation.selected_text(self._reader, selection), "\n"

    def text_select_all(self) -> None:
        """Select the block, on a double click."""
        if selection := navigation.whole_block(self._reader):
            self.screen.selections = {self: selection}

    def action_copy(self) -> None:
        """Copy the selected text, else the cursor's block; without a cursor the last block gets it."""
        if self.text_selection is None and self.cursor_block is None:
            self.action_line(-1)
        block = self.cursor_block
        if self.text_selection is not None:
            text = self.get_selection(self.text_selection)[0]
        else:
            text = "" if block is None else self.text_of(block)
        if text:
            self.post_message(self.CopyWanted(self, text))

    def _unselect(self) -> None:
        if self.is_attached and self.text_selection is not None:
            self.screen.clear_selection()

    # Moving.

    @property
    def reading_position(self) -> ReadingPosition:
        """Where the reader is, for `restore_position`."""
        reader = self._reader
        viewport, transcript = reader.viewport, reader.transcript
        followed = viewport.following or viewport.index >= len(transcript.blocks)
        block_id = None if followed else transcript.blocks[viewport.index].id
        return ReadingPosition(block_id, viewport.offset, reader.opened)

    def restore_position(self, place: ReadingPosition) -> None:
        """Go back to a position in the same transcript."""
        reader = self._reader
        reader.open_again(place.opened)
        index = None if place.block_id is None else reader.transcript.position(place.block_id)
        if index is not None:
            reader.viewport.show(index, place.row)
        self.refresh()

    def action_line(self, by: int) -> None:
        """Move the cursor to the next or previous block."""
        navigation.step(self._reader, by)
        self.refresh()

    def action_page(self, by: int) -> None:
        """Move by a window."""
        navigation.page(self._reader, by)
        self.refresh()

    def action_top(self) -> None:
        """Go to the first line that is loaded."""
        navigation.top(self._reader)
        self.refresh()

    def action_bottom(self) -> None:
        """Go to the end and follow new text again."""
        navigation.bottom(self._reader)
        self.refresh()

    def action_prompt(self, by: int) -> None:
        """Move from user message to user message."""
        if not navigation.prompt(self._reader, by) and by < 0:
            navigation.top(self._reader)
        self.refresh()

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, _WHEEL)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -_WHEEL)

    def _wheel(self, event: events.MouseEvent, by: int) -> None:
        event.stop()
        event.prevent_default()
        self._reader.viewport.move(by)
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow a scroll from elsewhere: the scroll bar, the wheel, a command."""
        viewport = self._reader.viewport
        by = round(new_value) - viewport.y
        if not by:
            return
        if viewport.following and new_value >= self.max_scroll_y:
            # A taller window: the position was cut to the end, nobody scrolled away from it.
            self.refresh()
            return
        if abs(by) <= _FAR * max(1, viewport.height):
            viewport.move(by)
        else:
            viewport.jump(round(new_value))
        self.refresh()

    def _show_position(self) -> None:
        viewport = self._reader.viewport
        y = viewport.y
        virtual = Size(self.size.width, viewport.heights.total)
        if virtual != self.virtual_size:
            self.set_reactive(TranscriptView.virtual_size, virtual)
        if y != self.scroll_y:
            self.set_reactive(_SCROLL_Y, float(y))
        self.set_reactive(_SCROLL_TARGET_Y, float(y))
        self._show_bar(y, virtual.height)

    def _show_bar(self, y: int, lines: int) -> None:
        """Move the scroll bar's thumb when that is visible: drawing it costs more than a row."""
        bar = self.vertical_scrollbar
        height = self.size.height
        step = max(1, lines) / max(1, height * _BAR_STEPS)
        looks = (height, round(height / step), round(y / step), y + height >= lines)
        if looks != self._bar:
            self._bar = looks
            bar.window_virtual_size, bar.window_size, bar.position = lines, height, y

    # Content.

    def watch_has_older(self) -> None:
        """Show whether the service has older turns, which may now be requested again."""
        self._older_asked = False
        if self.is_mounted:
            self.refresh()

    def watch_working_since(self, since: datetime | None) -> None:
        """Show on the last line since when the agent has been working."""
        self._reader.working_since = since

    def notify_style_update(self) -> None:
        """Draw every strip again with another theme."""
        super().notify_style_update()
        self._reader.drawings.clear()
        self._window.forget()
        self._is_stale = True

    def on_click(self, event: events.Click) -> None:
        """Open or fold the clicked block, or report a link; elsewhere move the cursor."""
        offset = event.get_content_offset(self)
        if offset is None or (event.chain == 1 and self.text_selection is not None):
            return
        block = self._reader.block_at(offset.y)
        span = self._reader.span_at(offset.x, offset.y)
        if block is None:
            return
        self._reader.cursor = block.id
        if span and span.target == TOGGLE:
            self._reader.toggle(block)
        elif span and span.link and event.chain == 1:
            self.post_message(self.LinkClicked(self, span.link))
        self.refresh()

    def action_activate(self) -> None:
        """Open or fold the block."""
        block = self.cursor_block
        if block is not None:
            self._reader.toggle(block)
        self.refresh()
