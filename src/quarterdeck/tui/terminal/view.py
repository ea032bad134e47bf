"""`TerminalView`: a real terminal as a Textual widget.

    source --items--> feeder --bytes--> Emulator (its own process)
    Emulator --frames--> TerminalScreen --rows--> Painter --strips--> Textual
    keys, mouse, paste, replies --> Typist --> source

What the app must do
- Make one `EmulatorHost`, give it to every view, `await host.close()` at exit.
- Nothing for keys: while a view has focus and its shell lives, it consumes every key, so that neither
  priority bindings of the app (ctrl+q, the palette's ctrl+p) nor the screen's (tab) see them. Keys of
  the app are reached through the prefix key: handle `TerminalView.PrefixPressed`. (Escape goes to
  Textual first when the view is maximized: do not maximize it, or set `ESCAPE_TO_MINIMIZE = False`.)
- Act on `CopyWanted`: the view never writes to the clipboard itself.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from rich.style import Style
from textual import events
from textual.app import App
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.terminal.core import Mode
from quarterdeck.tui.terminal.feeder import Feeder, Link
from quarterdeck.tui.terminal.frames import Frame
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.terminal.keys import encode_key
from quarterdeck.tui.terminal.painter import Look, Painter
from quarterdeck.tui.terminal.pointer import Pointer, Spot
from quarterdeck.tui.terminal.screen import TerminalScreen
from quarterdeck.tui.terminal.sizer import Sizer
from quarterdeck.tui.terminal.source import TerminalSource
from quarterdeck.tui.terminal.typist import Typist, paste_text


class TerminalView(Widget, can_focus=True):
    """A terminal fed by a source. Owns its tasks and its emulator; neither source nor host."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text("utf-8")
    COMPONENT_CLASSES = {
        "terminal--selection",
        "terminal--cursor",
        "terminal--cursor-idle",
        "terminal--outside",
        "terminal--note",
    }
    ALLOW_SELECT = False
    PREFIX = "ctrl+g"
    """The one key that is not sent to the program; pressed twice it is."""

    class ViewMessage(Message):
        """Base of the view's messages; `control` is the view."""

        def __init__(self, view: "TerminalView") -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> "TerminalView":
            """The view that sent it."""
            return self.view

    class PrefixPressed(ViewMessage):
        """The prefix key was pressed; the next key belongs to whoever takes the focus."""

    class CopyWanted(ViewMessage):
        """The reader selected `text` with the mouse."""

        def __init__(self, view: "TerminalView", text: str) -> None:
            super().__init__(view)
            self.text = text

    class TitleChanged(ViewMessage):
        """The program named its window; already free of control characters."""

        def __init__(self, view: "TerminalView", title: str) -> None:
            super().__init__(view)
            self.title = title

    class BellRang(ViewMessage):
        """The program rang the bell."""

    class Ended(ViewMessage):
        """The shell ended; keys are the app's again. `code` is null when it is not known."""

        def __init__(self, view: "TerminalView", code: int | None) -> None:
            super().__init__(view)
            self.code = code

    def __init__(
        self,
        source: TerminalSource,
        host: EmulatorHost,
        *,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
        disabled: bool = False,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes, disabled=disabled)
        self._content = TerminalScreen()
        self._emulator = host.open(self, 80, 24)
        self._typist = Typist(source)
        self._sizer = Sizer(source)
        self._feeder = Feeder(source, self._emulator, self._link_changed)
        self._pointer = Pointer(self._emulator, self._typist.type)
        self._tasks: list[asyncio.Task[None]] = []
        self._painter: Painter | None = None
        self._strips: dict[int, Strip] = {}
        self._prefixed = False
        self._laid_out = False
        self._seen = False
        self._failure = ""

    # --- for whoever holds the view ---

    @property
    def title(self) -> str:
        """The title that the program gave its window."""
        return self._content.state.title

    @property
    def screen_text(self) -> list[str]:
        """The text of the rows in view, trailing blanks cut."""
        rows = [self._content.row(y) or () for y in range(self.size.height)]
        return ["".join([run.text for run in row]).rstrip() for row in rows]

    def type(self, text: str) -> None:
        """Types text into the program, as if by the reader."""
        if self._feeder.ended:
            return
        self._to_bottom()
        self._typist.type(text)

    def send_prefix(self) -> None:
        """Types the prefix key itself into the program."""
        self._prefixed = False
        self.type(encode_key(self.PREFIX, None) or "")

    # --- life ---

    def on_mount(self) -> None:
        """Starts what the view does."""
        runs = (self._feeder.run(), self._typist.run(), self._sizer.run())
        self._tasks = [asyncio.create_task(run) for run in runs]
        app = cast("App[object]", self.app)
        app.theme_changed_signal.subscribe(self, self._theme_changed)
        app.screen_change_signal.subscribe(self, self._seen_changed)

    async def on_unmount(self) -> None:
        """Ends it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._emulator.close()

    def on_show(self) -> None:
        """Frames are wanted."""
        self._laid_out = True
        self._seen_changed()

    def on_hide(self) -> None:
        """Frames are not wanted: a hidden terminal costs nothing here."""
        self._laid_out = False
        self._seen_changed()

    def _seen_changed(self, _: object = None) -> None:
        """Asks for frames while the view can be seen: displayed, and under no opaque screen."""
        seen = self._laid_out and _is_uncovered(self)
        if seen == self._seen:
            return
        self._seen = seen
        if seen:
            self._emulator.show()
        else:
            self._emulator.hide()

    def on_resize(self, event: events.Resize) -> None:
        """The widget has another size."""
        if event.size.area:
            self._sizer.want(*event.size)
            self._content.follow(*event.size)
            self._repaint()

    # --- what the emulator says ---

    def on_frame(self, frame: Frame) -> None:
        """Part of `EmulatorSink`."""
        if not self.is_attached:
            return  # taken away a moment ago
        before = self._content.state
        changed = self._content.apply(frame, *self.size)
        state = frame.state
        if state.scrollback.back != before.scrollback.back and changed is not None:
            changed.add(0)
        if state.title != before.title:
            self.post_message(self.TitleChanged(self, state.title))
        if state.bells > before.bells:
            self.post_message(self.BellRang(self))
        self._repaint(changed)
        self.call_after_refresh(self._emulator.painted)
        # A new screen is told before its style says whether it covers this one.
        self._seen_changed()

    def on_reply(self, data: bytes) -> None:
        """Part of `EmulatorSink`."""
        self._typist.reply(data)

    def on_failed(self, sentence: str) -> None:
        """Part of `EmulatorSink`."""
        self._failure = sentence
        self._repaint()

    def _link_changed(self, link: Link) -> None:
        if link.restarted:
            self._failure = ""
        if link.ended:
            self.post_message(self.Ended(self, link.code))
        self._repaint()

    # --- painting ---

    def _theme_changed(self, _: object = None) -> None:
        self._painter = None
        self._repaint()

    def notify_style_update(self) -> None:
        """Part of `Widget`: the look is read anew."""
        super().notify_style_update()
        self._painter = None
        self._strips.clear()

    def _look(self) -> Painter:
        if self._painter is None:
            look = Look(
                self.rich_style,
                self._part("terminal--selection"),
                self._part("terminal--cursor"),
                self._part("terminal--cursor-idle"),
                self.get_component_rich_style("terminal--outside"),
                self.get_component_rich_style("terminal--note"),
            )
            self._painter = Painter(look)
            self._tell_colors()
        return self._painter

    def _part(self, name: str) -> Style:
        """A component's colors, mixed into the widget's where they are transparent."""
        styles = self.get_component_styles(name)
        background = self.colors[2] + styles.background
        color = styles.color.rich_color if styles.has_rule("color") else None
        return Style(color=color, bgcolor=background.rich_color)

    def _tell_colors(self) -> None:
        _, _, background, foreground = self.colors
        self._emulator.set_colors(foreground.rgb, background.rgb)

    def _repaint(self, rows: set[int] | None = None) -> None:
        if rows is None:
            self._strips.clear()
            self.refresh()
            return
        rows = {y for y in rows if 0 <= y < self.size.height}
        for y in rows:
            self._strips.pop(y, None)
        if rows:
            self.refresh(*_regions(rows, self.size))

    def render_line(self, y: int) -> Strip:
        """Part of `Widget`: one line, from the cache unless it changed."""
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._strip(y)
        return strip

    def _strip(self, y: int) -> Strip:
        painter, width = self._look(), self.size.width
        if note := self._note(y):
            return painter.note(note, width)
        row = None if self._failure else self._content.row(y)
        if row is None:
            return painter.outside(width)
        state = self._content.state
        strip = painter.strip(row, state.cols)
        cursor = self._content.state.cursor
        if cursor.visible and y + self._content.top == cursor.y and not self._feeder.ended:
            strip = painter.with_cursor(strip, cursor, self.has_focus)
        left = self._content.left
        strip = strip.crop(left, left + width)
        missing = width - strip.cell_length
        return Strip.join([strip, painter.outside(missing)]) if missing > 0 else strip

    def _note(self, y: int) -> str:
        """What the view itself has to say in a line."""
        if y == 0:
            return self._failure or self._feeder.note or self._scrolled_note()
        return self._feeder.farewell if y == self.size.height - 1 else ""

    def _scrolled_note(self) -> str:
        back = self._content.state.scrollback.back
        return f" {back} lines back. Type or press shift+page down to return." if back else ""

    # --- keys ---

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Part of `Widget`: no binding sees a key while the shell lives."""
        return not self._feeder.ended

    def on_key(self, event: events.Key) -> None:
        """Types the key into the program."""
        if self._feeder.ended:
            return
        event.stop()
        event.prevent_default()
        if event.key == self.PREFIX:
            self._press_prefix()
            return
        self._prefixed = False
        if not self._scroll_by_key(event.key):
            self._press(event)

    def _press_prefix(self) -> None:
        if self._prefixed:
            self.send_prefix()
        else:
            self._prefixed = True
            self.post_message(self.PrefixPressed(self))

    def _press(self, event: events.Key) -> None:
        text = encode_key(event.key, event.character, self._content.state.modes)
        if text is not None:
            self.type(text)

    def _scroll_by_key(self, key: str) -> bool:
        if self._content.state.modes & Mode.ALTERNATE_SCREEN:
            return False
        page = max(1, self.size.height - 1)
        match key:
            case "shift+pageup":
                self._emulator.scroll(-page)
            case "shift+pagedown":
                self._emulator.scroll(page)
            case _:
                return False
        return True

    def _to_bottom(self) -> None:
        self._pointer.clear()
        if self._content.state.scrollback.back:
            self._emulator.scroll_to_bottom()

    def on_paste(self, event: events.Paste) -> None:
        """Types pasted text into the program."""
        event.stop()
        self.type(paste_text(event.text, self._content.state.modes))

    def on_focus(self) -> None:
        """The cursor becomes a block, and the size ours."""
        state = self._content.state
        self._sizer.claim((state.cols, state.rows))
        self._focus_changed("\x1b[I")

    def on_blur(self) -> None:
        """The cursor becomes dim."""
        self._prefixed = False
        self._focus_changed("\x1b[O")

    def _focus_changed(self, report: str) -> None:
        if self._content.state.modes & Mode.FOCUS_EVENTS and not self._feeder.ended:
            self._typist.type(report)
        self._repaint({self._content.cursor.y})

    # --- mouse ---

    def _spot(self, event: events.MouseEvent) -> Spot:
        state, content = self._content.state, self._content
        x = min(max(event.x, 0), self.size.width - 1) + content.left
        y = min(max(event.y, 0), self.size.height - 1) + content.top
        return Spot(min(x, state.cols - 1), min(y, state.rows - 1))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Reported, or the begin of a selection."""
        event.stop()
        self.capture_mouse()
        self._pointer.press(event, self._spot(event), self._content.state.modes)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Reported, or selecting."""
        event.stop()
        beyond = -1 if event.y < 0 else int(event.y >= self.size.height)
        self._pointer.move(event, self._spot(event), self._content.state.modes, beyond)

    async def on_mouse_up(self, event: events.MouseUp) -> None:
        """Reported, or the end of a selection."""
        event.stop()
        self.release_mouse()
        if self._pointer.release(event, self._spot(event), self._content.state.modes):
            text = await self._emulator.selected_text()
            if text:
                self.post_message(self.CopyWanted(self, text))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Reported, or back in the scrollback."""
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Reported, or forward in the scrollback."""
        self._wheel(event, 1)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        if not self._feeder.ended or not self._content.state.modes & Mode.ALTERNATE_SCREEN:
            self._pointer.wheel(event, self._spot(event), self._content.state.modes, lines)


def _is_uncovered(widget: Widget) -> bool:
    stack = widget.app.screen_stack
    if not widget.is_attached or widget.screen not in stack:
        return False
    above = stack[stack.index(widget.screen) + 1 :]
    return all(screen.styles.background.a < 1 for screen in above)


def _regions(rows: Iterable[int], size: Size) -> list[Region]:
    """Whole lines, neighbors joined."""
    regions: list[Region] = []
    for y in sorted(rows):
        if regions and regions[-1].bottom == y:
            regions[-1] = Region(0, regions[-1].y, size.width, regions[-1].height + 1)
        else:
            regions.append(Region(0, y, size.width, 1))
    return regions
