"""The transcript on the screen.

    caller --refresh_change(Change)--> TranscriptView -> Reader -> Drawings -> strips
    caller <--Answered, CopyWanted, OlderWanted, NewBelow

One widget for a chat of any length: blocks are laid out when they are seen, and kept while they do
not change. Changes are taken at once and drawn once a frame. Nothing here runs on a timer.
"""

from collections.abc import Collection
from datetime import datetime
from typing import ClassVar, Self

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.selection import Selection
from textual.strip import Strip

from quarterdeck.transcript import Block, Change, QuestionBlock, Transcript, plain_lines
from quarterdeck.tui.transcript_view import messages, selecting, steering
from quarterdeck.tui.transcript_view.layout import OPTION, TOGGLE
from quarterdeck.tui.transcript_view.lines import Role
from quarterdeck.tui.transcript_view.moving import Moving
from quarterdeck.tui.transcript_view.painter import Painter
from quarterdeck.tui.transcript_view.reader import Reader
from quarterdeck.tui.transcript_view.search import Place, Search
from quarterdeck.tui.transcript_view.style import BINDINGS, COMPONENTS, CSS
from quarterdeck.tui.transcript_view.window import Window


class TranscriptView(Moving, can_focus=True):
    """Shows a `Transcript`. The caller tells changes by `refresh_change`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS
    DEFAULT_CSS = CSS
    BINDINGS: ClassVar[list[BindingType]] = [
        *BINDINGS,
        *(Binding(str(n), f"answer({n - 1})", f"Answer {n}", show=False) for n in range(1, 10)),
    ]

    has_older: reactive[bool] = reactive(False, repaint=False)
    """Older pages exist; scrolling to the top asks for them."""
    new_below: reactive[int] = reactive(0, repaint=False)
    """Blocks below the window that are new or changed since the reader left the end."""
    working_since: reactive[datetime | None] = reactive[datetime | None](None)
    """A turn runs since then; told after the last block."""

    Answered = messages.Answered
    CopyWanted = messages.CopyWanted
    NewBelow = messages.NewBelow
    OlderWanted = messages.OlderWanted

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
        self._settled: tuple[Size, bool] | None = None
        self._search = Search(self._reader)

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
        self._search.restart()
        self._unselect()
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
            self._unselect()
        if not self._is_stale:  # a frame of a stream has fifty changes
            self.refresh()

    def find(self, words: str) -> bool:
        """Marks words, and goes to where they stand next; False when they stand nowhere here.

        Empty: nothing is marked any more.
        """
        found = self._search.start(words)
        self._window.forget()
        self.refresh()
        return found

    def find_again(self, by: int, *, around: bool = False) -> bool:
        """To where the words stand after (1) or before (-1) that; False when nowhere.

        With `around` from the other end on.
        """
        found = self._search.go_round(by) if around else self._search.go(by)
        self.refresh()
        return found

    @property
    def found(self) -> Place | None:
        """Which of the places of the words is shown, and how many there are; None while none is."""
        return self._search.place

    @property
    def finding(self) -> bool:
        """Whether words are marked."""
        return self._search.pattern is not None

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
        """A row of the window, as Textual asks for it to find the character under the mouse."""
        strips = self._window.strips
        if not 0 <= y < len(strips):
            return self._blank()
        number = selecting.row_number(self._reader, y)
        return strips[y] if number is None else strips[y].apply_offsets(0, number)

    def _blank(self) -> Strip:
        return Strip.blank(self.size.width, self.rich_style)

    def _draw(self) -> None:
        """The rows of the window as they are to be seen now."""
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
            number = selecting.row_number(self._reader, y)
            span = None if number is None else selection.get_span(number)
            if span is not None:
                strips[y] = selecting.highlighted(strip, span, style)

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
        """Brings the reader, the scroll position and the scroll bar to one state.

        A view that was just removed is in the compositor's hands for one more frame: it stays as it
        was.
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
        """The text that is selected, and what comes between it and another widget's."""
        return selecting.selected_text(self._reader, selection), "\n"

    def text_select_all(self) -> None:
        """A double click: the block."""
        if selection := selecting.whole_block(self._reader):
            self.screen.selections = {self: selection}

    def action_copy(self) -> None:
        """The selected text, else the cursor's block, is wanted on the clipboard."""
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

    def on_click(self, event: events.Click) -> None:
        """A click opens, folds or answers; elsewhere it moves the cursor."""
        offset = event.get_content_offset(self)
        if offset is None or (event.chain == 1 and self.text_selection is not None):
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

    def action_activate(self) -> None:
        """Opens or folds the block, or gives the chosen answer."""
        block = self.cursor_block
        if isinstance(block, QuestionBlock) and block.is_open:
            self._answer(block, self._reader.choice(block))
        elif block is not None:
            self._reader.toggle(block)
        self.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a question, numbers are the tabs'."""
        return action != "answer" or steering.open_question(self._reader) is not None

    def action_answer(self, number: int) -> None:
        """Answers the open question by its option's number."""
        if question := steering.open_question(self._reader):
            self._answer(question, number)
            self.refresh()

    def _answer(self, question: QuestionBlock, number: int) -> None:
        if question.is_open and self._reader.choose(question, number):
            option = (question.options or ())[number]
            self.post_message(self.Answered(self, question.request_id, option.id))
