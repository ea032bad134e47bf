"""The transcript on the screen.

    caller --refresh_change(Change)--> TranscriptView -> Reader -> Drawings -> strips
    caller <--Answered, OlderWanted, NewBelow

One widget for a chat of any length: blocks are laid out when they are seen, and kept while they do
not change. Changes are taken at once and drawn once a frame. Nothing here runs on a timer.
"""

from collections.abc import Collection
from datetime import datetime
from typing import ClassVar, Self, cast

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.transcript import Block, Change, QuestionBlock, Transcript, plain_lines
from quarterdeck.tui.transcript_view import steering
from quarterdeck.tui.transcript_view.layout import OPTION, TOGGLE
from quarterdeck.tui.transcript_view.lines import Role
from quarterdeck.tui.transcript_view.messages import ViewMessage
from quarterdeck.tui.transcript_view.painter import Painter
from quarterdeck.tui.transcript_view.reader import Reader
from quarterdeck.tui.transcript_view.style import BINDINGS, COMPONENTS, CSS
from quarterdeck.tui.transcript_view.window import Window

_WHEEL = 3
_FAR = 4
"""Windows: a longer way is jumped by estimated heights, a shorter one measured line by line."""
_BAR_STEPS = 8
"""Places that the scroll bar's thumb can take within a row."""
# The descriptors: setting them without their watchers is how the position is shown, not changed.
_SCROLL_Y = ScrollView.scroll_y
_SCROLL_TARGET_Y = cast("Reactive[float]", ScrollView.scroll_target_y)


class TranscriptView(ScrollView, can_focus=True):
    """Shows a `Transcript`. The caller tells changes by `refresh_change`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS
    DEFAULT_CSS = CSS
    ALLOW_SELECT = False
    """Blocks are copied whole (`text_of`); selecting by mouse would cost every strip its cache."""
    BINDINGS: ClassVar[list[BindingType]] = [
        *BINDINGS,
        *(Binding(str(n), f"answer({n - 1})", f"Answer {n}", show=False) for n in range(1, 10)),
    ]

    virtual_size = Reactive(Size(0, 0), layout=False)
    """Without layout: a growing text must not lay the screen out again."""
    has_older: reactive[bool] = reactive(False, repaint=False)
    """Older pages exist; scrolling to the top asks for them."""
    new_below: reactive[int] = reactive(0, repaint=False)
    """Blocks below the window that are new or changed since the reader left the end."""
    working_since: reactive[datetime | None] = reactive[datetime | None](None)
    """A turn runs since then; told after the last block."""

    class Answered(ViewMessage):
        """The person chose an option of a question."""

        def __init__(self, view: "TranscriptView", request_id: str, option_id: str) -> None:
            super().__init__(view)
            self.request_id = request_id
            self.option_id = option_id

    class OlderWanted(ViewMessage):
        """The reader is at the top, and `has_older`. Answer with a change of a prepended page."""

    class NewBelow(ViewMessage):
        """`count` blocks below the window are new or changed; 0: the reader is at the end."""

        def __init__(self, view: "TranscriptView", count: int) -> None:
            super().__init__(view)
            self.count = count

    def __init__(
        self,
        transcript: Transcript,
        *,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._reader = Reader(transcript, Painter(self._role_style))
        self._older_asked = False
        self._window = Window()
        self._is_stale = True
        self._bar: tuple[int, int, int, bool] | None = None
        self._settled: tuple[Size, bool] | None = None

    # What the caller uses.

    @property
    def transcript(self) -> Transcript:
        """What is shown."""
        return self._reader.transcript

    @property
    def cursor_block(self) -> Block | None:
        """The block that the cursor is on."""
        return steering.cursor_block(self._reader)

    @property
    def following(self) -> bool:
        """The end is seen, and stays seen."""
        return self._reader.viewport.following

    def set_transcript(self, transcript: Transcript, *, has_older: bool = False) -> None:
        """Shows another transcript, from its end."""
        self._reader.restart(transcript)
        self._older_asked = False
        self.has_older = has_older
        self.refresh()

    def refresh_change(self, change: Change) -> None:
        """The transcript changed. Cheap: drawing waits for the next frame."""
        if not change:
            return
        self._reader.take(change)
        if change.older:
            self._older_asked = False
        self.refresh()

    def text_of(self, block: Block) -> str:
        """A block as text to copy."""
        return "\n".join(plain_lines(block))

    # Drawing.

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Something changed: the window is laid out again for the next frame."""
        self._is_stale = True
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _exchange_repaint_regions(self) -> Collection[Region]:
        """Called when a frame is made: of what was refreshed, only rows that differ are painted."""
        if not super()._exchange_repaint_regions():
            return ()
        self._settle()
        width = self.size.width
        changes = self._window.take_changes()
        return {Region(0, start, width, end - start) for start, end in changes}

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lays out what came since the last frame, then draws.

        Strips go to the compositor as they are kept, past Textual's own cache of styled lines:
        most of a frame's cost would be in there. So the view has no border or padding of its own.
        """
        self._settle()
        strips = self._window.hand_over()
        strips = strips[crop.y : crop.bottom]
        strips += [self._blank()] * (crop.height - len(strips))
        if crop.column_span != (0, self.size.width):
            return [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """A row of the window."""
        strips = self._window.strips
        return strips[y] if 0 <= y < len(strips) else self._blank()

    def _blank(self) -> Strip:
        return Strip.blank(self.size.width, self.rich_style)

    def _draw(self) -> None:
        """The rows of the window as they are to be seen now."""
        height = self.size.height
        strips = self._reader.strips()
        if len(strips) < height:
            strips += [self._blank()] * (height - len(strips))
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

    def _with_cursor(self, strip: Strip) -> Strip:
        bar = Segment("\u258c", self.get_component_rich_style("transcript--cursor"))
        return Strip.join([Strip([bar], 1), strip.crop(1)])

    def _with_count(self, strip: Strip) -> Strip:
        text = f" \u2193 {self.new_below} new below "
        label = Segment(text, self.get_component_rich_style("transcript--below"))
        cut = max(0, self.size.width - len(text))
        return Strip.join([strip.crop(0, cut), Strip([label], len(text)).crop(0, self.size.width)])

    def _role_style(self, role: Role) -> Style:
        return self.get_component_rich_style(f"transcript--{role}")

    def _settle(self) -> None:
        """Brings the reader, the scroll position and the scroll bar to one state."""
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
        """Moves the scroll bar's thumb when it would be seen: drawing it costs more than a row."""
        bar = self.vertical_scrollbar
        height = self.size.height
        step = max(1, lines) / max(1, height * _BAR_STEPS)
        looks = (height, round(height / step), round(y / step), y + height >= lines)
        if looks != self._bar:
            self._bar = looks
            bar.window_virtual_size, bar.window_size, bar.position = lines, height, y

    def _want_older(self) -> None:
        at_top = self._reader.viewport.y == 0
        if self.has_older and at_top and not self._older_asked and self.size.height:
            self._older_asked = True
            self.post_message(self.OlderWanted(self))

    # Moving.

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

    def watch_has_older(self) -> None:
        """A server that has more than was thought."""
        self._older_asked = False
        if self.is_mounted:
            self.refresh()

    def watch_working_since(self, since: datetime | None) -> None:
        """The last line changed."""
        self._reader.working_since = since

    def notify_style_update(self) -> None:
        """Another theme: every strip is of the old one."""
        super().notify_style_update()
        self._reader.drawings.clear()
        self._window.forget()
        self._is_stale = True

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, _WHEEL)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -_WHEEL)

    def _wheel(self, event: events.MouseEvent, by: int) -> None:
        event.stop()
        event.prevent_default()
        self._reader.viewport.move(by)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """A click opens, folds or answers; elsewhere it moves the cursor."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        block = self._reader.block_at(offset.y)
        span = self._reader.span_at(offset.x, offset.y)
        if block is None:
            return
        self._reader.cursor = block.id
        target = span.target if span else ""
        if target == TOGGLE:
            self._reader.toggle(block)
        elif target.startswith(OPTION) and isinstance(block, QuestionBlock):
            self._answer(block, int(target.removeprefix(OPTION)))
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

    def action_activate(self) -> None:
        """Opens or folds the block, or gives the chosen answer."""
        block = self.cursor_block
        if isinstance(block, QuestionBlock) and block.is_open:
            self._answer(block, self._reader.choice(block))
        elif block is not None:
            self._reader.toggle(block)
        self.refresh()

    def action_answer(self, number: int) -> None:
        """Answers the open question by its option's number."""
        if question := steering.open_question(self._reader):
            self._answer(question, number)
            self.refresh()

    def _answer(self, question: QuestionBlock, number: int) -> None:
        if question.is_open and self._reader.choose(question, number):
            option = (question.options or ())[number]
            self.post_message(self.Answered(self, question.request_id, option.id))
