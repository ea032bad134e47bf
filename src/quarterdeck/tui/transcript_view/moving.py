"""Where the window stands: keys, wheel and scroll bar move the reader, and show where it is."""

from typing import NamedTuple, cast

from textual import events
from textual.geometry import Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView

from quarterdeck.transcript import Transcript
from quarterdeck.tui.transcript_view import steering
from quarterdeck.tui.transcript_view.reader import Reader
from quarterdeck.tui.transcript_view.shapes import Shape

_WHEEL = 3
_FAR = 4
"""Windows: a longer way is jumped by estimated heights, a shorter one measured line by line."""
_BAR_STEPS = 8
"""Places that the scroll bar's thumb can take within a row."""
# The descriptors: setting them without their watchers is how the position is shown, not changed.
_SCROLL_Y = ScrollView.scroll_y
_SCROLL_TARGET_Y = cast("Reactive[float]", ScrollView.scroll_target_y)


class Standing(NamedTuple):
    """Where a reader stands: a block, the row of it at the top of the window, and what is open.

    Block `None`: at the end, which is followed.
    """

    transcript: Transcript
    block_id: int | None
    row: int
    opened: dict[int, Shape]


class Moving(ScrollView):
    """The half of the view that moves. A line is a row of the transcript, as far as known."""

    _reader: Reader
    _bar: tuple[int, int, int, bool] | None = None

    virtual_size = Reactive(Size(0, 0), layout=False)
    """Without layout: a growing text must not lay the screen out again."""

    @property
    def standing(self) -> Standing:
        """Where the reader stands, to be gone back to."""
        reader = self._reader
        viewport, transcript = reader.viewport, reader.transcript
        followed = viewport.following or viewport.index >= len(transcript.blocks)
        block_id = None if followed else transcript.blocks[viewport.index].id
        return Standing(transcript, block_id, viewport.offset, reader.opened)

    def read_on(self, place: Standing) -> None:
        """Goes back to where a reader stood, if the transcript is still the same."""
        reader = self._reader
        if place.transcript is not reader.transcript:
            return
        reader.open_again(place.opened)
        index = None if place.block_id is None else reader.transcript.position(place.block_id)
        if index is not None:
            reader.viewport.show(index, place.row)
        self.refresh()

    def action_line(self, by: int) -> None:
        """The cursor to the next or previous block, or option of a question."""
        steering.step(self._reader, by)
        self.refresh()

    def action_page(self, by: int) -> None:
        """A window further."""
        steering.page(self._reader, by)
        self.refresh()

    def action_top(self) -> None:
        """The first line that is loaded."""
        steering.top(self._reader)
        self.refresh()

    def action_bottom(self) -> None:
        """The end; new text is followed again."""
        steering.bottom(self._reader)
        self.refresh()

    def action_prompt(self, by: int) -> None:
        """From user message to user message."""
        if not steering.prompt(self._reader, by) and by < 0:
            steering.top(self._reader)
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
        """Somebody else scrolled: the scroll bar, the wheel, a command."""
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
            self.set_reactive(Moving.virtual_size, virtual)
        if y != self.scroll_y:
            self.set_reactive(_SCROLL_Y, float(y))
        self.set_reactive(_SCROLL_TARGET_Y, float(y))
        self._show_bar(y, virtual.height)

    def _show_bar(self, y: int, lines: int) -> None:
        """Moves the scroll bar's thumb when it would be seen: drawing it costs more than a row."""
        bar = self.vertical_scrollbar
        height = self.size.height
        step = max(1, lines) / max(1, height * _BAR_STEPS)
        looks = (height, round(height / step), round(y / step), y + height >= lines)
        if looks != self._bar:
            self._bar = looks
            bar.window_virtual_size, bar.window_size, bar.position = lines, height, y
