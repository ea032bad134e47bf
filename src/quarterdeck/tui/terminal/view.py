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
from pathlib import Path
from typing import cast

from textual import events
from textual.app import App
from textual.timer import Timer
from textual.widget import Widget

from quarterdeck.tui.actions import keys_of
from quarterdeck.tui.actions.terminal import PREFIX as PREFIX_ACTION
from quarterdeck.tui.terminal import messages
from quarterdeck.tui.terminal.core import Mode, Reading, Step
from quarterdeck.tui.terminal.feeder import Feeder, Link
from quarterdeck.tui.terminal.frames import Frame
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.terminal.keys import encode_key
from quarterdeck.tui.terminal.painted import PaintedTerminal
from quarterdeck.tui.terminal.pointer import Pointer, Spot
from quarterdeck.tui.terminal.sizer import Sizer
from quarterdeck.tui.terminal.source import TerminalSource
from quarterdeck.tui.terminal.typist import Typist, paste_text

PULL_SECONDS = 0.05
"""Between two lines while the mouse is held beyond the edge, selecting."""


class TerminalView(PaintedTerminal, can_focus=True):
    """A terminal fed by a source. Owns its tasks and its emulator; neither source nor host."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text("utf-8")
    ALLOW_SELECT = False
    PREFIX = "ctrl+g"
    """The one key that is not sent to the program; pressed twice it is."""

    PrefixPressed = messages.PrefixPressed
    CopyWanted = messages.CopyWanted
    LinkWanted = messages.LinkWanted
    ClipboardOffered = messages.ClipboardOffered
    ReadingChanged = messages.ReadingChanged
    TitleChanged = messages.TitleChanged
    BellRang = messages.BellRang
    Ended = messages.Ended

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
        self._emulator = host.open(self, 80, 24)
        self._typist = Typist(source)
        self._sizer = Sizer(source)
        self._feeder = Feeder(source, self._emulator, self._link_changed)
        self._pointer = Pointer(self._emulator, self._typist.type)
        self._tasks: list[asyncio.Task[None]] = []
        self._prefixed = False
        self._reads = False
        self._pulling: Timer | None = None
        self._laid_out = False
        self._seen = False
        self._failure = ""

    # --- for whoever holds the view ---

    @property
    def title(self) -> str:
        """The title that the program gave its window."""
        return self.content.state.title

    @property
    def screen_text(self) -> list[str]:
        """The text of the rows in view, trailing blanks cut."""
        rows = [self.content.row(y) or () for y in range(self.size.height)]
        return ["".join([run.text for run in row]).rstrip() for row in rows]

    def type(self, text: str) -> None:
        """Types text into the program, as if by the reader."""
        if self._feeder.ended:
            return
        self._to_bottom()
        self._typist.type(text)

    def send_prefix(self, key: str = PREFIX) -> None:
        """Types the prefix key itself into the program."""
        self._prefixed = False
        self.type(encode_key(key, None, self.content.state.modes) or "")

    # --- reading: through the screen and what scrolled away, with a cursor of its own ---

    @property
    def reads(self) -> bool:
        """Whether the reader has the cursor; the program goes on meanwhile."""
        return self._reads

    @property
    def reading(self) -> Reading:
        """What the reader does, as far as the emulator has told."""
        return self.content.state.reading or Reading()

    @property
    def lines_back(self) -> int:
        """How many lines the part in view is scrolled back."""
        return self.content.state.scrollback.back

    def start_reading(self) -> None:
        """Gives the cursor to the reader; whoever holds the view says where it goes."""
        if not self._reads:
            self._pointer.clear()
            self._reads = True
            self._emulator.start_reading()
            self.post_message(self.ReadingChanged(self))

    def stop_reading(self) -> None:
        """Gives the cursor back to the program and shows the newest rows."""
        if self._reads:
            self._reads = False
            self._emulator.stop_reading()
            self.post_message(self.ReadingChanged(self))

    def read(self, step: Step) -> None:
        """Moves the reader, or marks."""
        if self._reads:
            self._emulator.read(step)

    def find(self, text: str) -> None:
        """Marks a text, and goes to where it is found."""
        if self._reads:
            self._emulator.find(text)

    async def marked_text(self) -> str:
        """The text that the reader marked."""
        return await self._emulator.selected_text()

    async def link_here(self) -> str:
        """Where the text under the reader's cursor leads; empty when nowhere."""
        return await self._emulator.link_here()

    # --- life ---

    def on_mount(self) -> None:
        """Starts what the view does."""
        runs = (self._feeder.run(), self._typist.run(), self._sizer.run())
        self._tasks = [asyncio.create_task(run) for run in runs]
        app = cast("App[object]", self.app)
        app.theme_changed_signal.subscribe(self, self.theme_changed)
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
            self.content.follow(*event.size)
            self.repaint()

    # --- what the emulator says ---

    def on_frame(self, frame: Frame) -> None:
        """Part of `EmulatorSink`."""
        if not self.is_attached:
            return  # taken away a moment ago
        before = self.content.state
        changed = self.content.apply(frame, *self.size)
        state = frame.state
        if state.scrollback.back != before.scrollback.back and changed is not None:
            changed.add(0)
        if self._reads and (state.reading, state.scrollback) != (before.reading, before.scrollback):
            self.post_message(self.ReadingChanged(self))
        if state.title != before.title:
            self.post_message(self.TitleChanged(self, state.title))
        if state.bells > before.bells:
            self.post_message(self.BellRang(self))
        self.repaint(changed)
        self.call_after_refresh(self._emulator.painted)
        # A new screen is told before its style says whether it covers this one.
        self._seen_changed()

    def on_reply(self, data: bytes) -> None:
        """Part of `EmulatorSink`."""
        self._typist.reply(data)

    def on_clipboard(self, text: str) -> None:
        """Part of `EmulatorSink`."""
        self.post_message(self.ClipboardOffered(self, text))

    def on_anew(self) -> None:
        """Part of `EmulatorSink`: where the reader was is gone."""
        if self._reads:
            self._reads = False
            self.post_message(self.ReadingChanged(self))

    def on_failed(self, sentence: str) -> None:
        """Part of `EmulatorSink`."""
        self._failure = sentence
        self.repaint()

    def _link_changed(self, link: Link) -> None:
        if link.restarted:
            self._failure = ""
        if link.ended:
            self.post_message(self.Ended(self, link.code))
        self.repaint()

    # --- painting ---

    @property
    def has_rows(self) -> bool:
        """Part of `PaintedTerminal`."""
        return not self._failure

    @property
    def cursor_lives(self) -> bool:
        """Part of `PaintedTerminal`."""
        return self._reads or not self._feeder.ended

    @property
    def cursor_is_ours(self) -> bool:
        """Part of `PaintedTerminal`."""
        return self.has_focus or self._reads

    def look_changed(self) -> None:
        """Part of `PaintedTerminal`."""
        _, _, background, foreground = self.colors
        self._emulator.set_colors(foreground.rgb, background.rgb)

    def note_of(self, y: int) -> str:
        """Part of `PaintedTerminal`."""
        if y == 0:
            return self._failure or self._feeder.note or self._scrolled_note()
        if y == self.size.height - 1 and not self._reads:
            return self._feeder.farewell
        return ""

    def _scrolled_note(self) -> str:
        back = self.lines_back
        if not back or self._reads:  # a reader wants every line; whoever holds the view says it
            return ""
        return f" {back} lines back. Type or press shift+page down to return."

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
        if event.key in keys_of(PREFIX_ACTION):
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
        text = encode_key(event.key, event.character, self.content.state.modes)
        if text is not None:
            self.type(text)

    def _scroll_by_key(self, key: str) -> bool:
        if self.content.state.modes & Mode.ALTERNATE_SCREEN:
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
        self.stop_reading()
        self._pointer.clear()
        if self.content.state.scrollback.back:
            self._emulator.scroll_to_bottom()

    def on_paste(self, event: events.Paste) -> None:
        """Types pasted text into the program."""
        event.stop()
        self.type(paste_text(event.text, self.content.state.modes))

    def on_focus(self) -> None:
        """The cursor becomes a block, and the size ours."""
        state = self.content.state
        self._sizer.claim((state.cols, state.rows))
        self._focus_changed("\x1b[I")

    def on_blur(self) -> None:
        """The cursor becomes dim."""
        self._prefixed = False
        self._focus_changed("\x1b[O")

    def _focus_changed(self, report: str) -> None:
        if self.content.state.modes & Mode.FOCUS_EVENTS and not self._feeder.ended:
            self._typist.type(report)
        self.repaint({self.content.cursor.y})

    # --- mouse ---

    def _spot(self, event: events.MouseEvent) -> Spot:
        state, content = self.content.state, self.content
        x = min(max(event.x, 0), self.size.width - 1) + content.left
        y = min(max(event.y, 0), self.size.height - 1) + content.top
        return Spot(min(x, state.cols - 1), min(y, state.rows - 1))

    @property
    def _mouse_modes(self) -> Mode:
        """What the program wants of the mouse; nothing while somebody reads."""
        return Mode.NONE if self._reads else self.content.state.modes

    async def on_mouse_down(self, event: events.MouseDown) -> None:
        """Reported, the begin of a selection, or with Ctrl where a link leads."""
        event.stop()
        spot = self._spot(event)
        if self._pointer.asks_link(event, self._mouse_modes):
            if uri := await self._emulator.link_at(spot.x, spot.y):
                self.post_message(self.LinkWanted(self, uri))
            return
        self.capture_mouse()
        self._pointer.press(event, spot, self._mouse_modes)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Reported, or selecting."""
        event.stop()
        beyond = -1 if event.y < 0 else int(event.y >= self.size.height)
        spot = self._spot(event)
        self._pointer.move(event, spot, self._mouse_modes, beyond)
        self._stop_pulling()
        if self._pointer.beyond:
            self._pulling = self.set_interval(PULL_SECONDS, lambda: self._pointer.pull(spot))

    def _stop_pulling(self) -> None:
        if self._pulling is not None:
            self._pulling.stop()
            self._pulling = None

    async def on_mouse_up(self, event: events.MouseUp) -> None:
        """Reported, or the end of a selection."""
        event.stop()
        self.release_mouse()
        self._stop_pulling()
        if self._pointer.release(event, self._spot(event), self._mouse_modes):
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
        if self._reads:
            self.read(Step.LINES_UP if lines < 0 else Step.LINES_DOWN)
        elif not self._feeder.ended or not self.content.state.modes & Mode.ALTERNATE_SCREEN:
            self._pointer.wheel(event, self._spot(event), self.content.state.modes, lines)


def _is_uncovered(widget: Widget) -> bool:
    stack = widget.app.screen_stack
    if not widget.is_attached or widget.screen not in stack:
        return False
    above = stack[stack.index(widget.screen) + 1 :]
    return all(screen.styles.background.a < 1 for screen in above)
