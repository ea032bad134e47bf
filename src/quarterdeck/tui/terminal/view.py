"""`TerminalView`: a real terminal as a Textual widget.

    source --items--> OutputPump --bytes--> Emulator (its own process)
    Emulator --frames--> TerminalScreen --rows--> ScreenRenderer --strips--> Textual
    keys, mouse, paste, replies --> InputQueue --> source

What the app must do
- Make one `EmulatorHost`, give it to every view, `await host.close()` at exit.
- Nothing for keys: while a view has focus and its shell runs, it consumes every key, so that neither
  priority bindings of the app (ctrl+q, the palette's ctrl+p) nor the screen's (tab) see them. Keys of
  the app are available after the prefix key: handle `TerminalView.PrefixPressed`. (Escape goes to
  Textual first when the view is maximized: do not maximize it, or set `ESCAPE_TO_MINIMIZE = False`.)
- Act on `CopyWanted`: the view never writes to the clipboard itself.
"""

import asyncio
from pathlib import Path
from typing import cast

from textual import events
from textual.app import App
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from quarterdeck.tui.actions import keys_of
from quarterdeck.tui.actions.tabs import PREFIX as PREFIX_ACTION
from quarterdeck.tui.terminal.channel import FrameDelta
from quarterdeck.tui.terminal.core import Reading, Step, TerminalMode
from quarterdeck.tui.terminal.host import EmulatorHost, LinkChange, OutputPump, TerminalSource
from quarterdeck.tui.terminal.input import (
    InputQueue,
    MouseInput,
    ResizeDebounce,
    Spot,
    encode_key,
    paste_text,
)
from quarterdeck.tui.terminal.render import Overlay, ScreenRenderer, TerminalScreen

PULL_SECONDS = 0.05
"""Seconds between two lines while the mouse is held beyond the edge during a selection."""


class TerminalView(Widget, can_focus=True):
    """A terminal fed by a source. Owns its tasks and its emulator; neither source nor host."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text("utf-8")
    ALLOW_SELECT = False
    COMPONENT_CLASSES = {
        "terminal--selection",
        "terminal--match",
        "terminal--match-here",
        "terminal--cursor",
        "terminal--cursor-idle",
        "terminal--outside",
        "terminal--note",
    }
    PREFIX = "ctrl+g"
    """The one key that is not sent to the program, unless pressed twice."""

    class ViewMessage(Message):
        """A message of the view to its owner; `control` is the view."""

        def __init__(self, view: "TerminalView") -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> "TerminalView":
            """The view that sent it."""
            return self.view

    class PrefixPressed(ViewMessage):
        """The prefix key was pressed; the next key goes to the widget that takes the focus."""

    class CopyWanted(ViewMessage):
        """The reader selected `text` with the mouse."""

        def __init__(self, view: "TerminalView", text: str) -> None:
            super().__init__(view)
            self.text = text

    class LinkWanted(ViewMessage):
        """The reader pointed at a link; `uri` comes from the program and may be anything."""

        def __init__(self, view: "TerminalView", uri: str) -> None:
            super().__init__(view)
            self.uri = uri

    class ClipboardOffered(ViewMessage):
        """The program wants `text` on the clipboard."""

        def __init__(self, view: "TerminalView", text: str) -> None:
            super().__init__(view)
            self.text = text

    class ReadingChanged(ViewMessage):
        """The reader started, ended, or moved; or other rows are in view."""

    class TitleChanged(ViewMessage):
        """The program set its window title; already free of control characters."""

        def __init__(self, view: "TerminalView", title: str) -> None:
            super().__init__(view)
            self.title = title

    class BellRang(ViewMessage):
        """The program rang the bell."""

    class Ended(ViewMessage):
        """The shell ended; keys are the app's again. `code` is None when it is unknown."""

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
        self.content = TerminalScreen()
        self._renderer = ScreenRenderer(self, self.content, self._look_changed)
        self._emulator = host.open(self, 80, 24)
        self._input = InputQueue(source)
        self._resizes = ResizeDebounce(source)
        self._output = OutputPump(source, self._emulator, self._link_changed)
        self._mouse = MouseInput(self._emulator, self._input.type)
        self._tasks: list[asyncio.Task[None]] = []
        self._prefixed = False
        self._reads = False
        self._pulling: Timer | None = None
        self._laid_out = False
        self._seen = False
        self._failure = ""

    # --- for the owner of the view ---

    @property
    def title(self) -> str:
        """The window title that the program set."""
        return self.content.state.title

    @property
    def screen_text(self) -> list[str]:
        """The text of the rows in view, trailing blanks cut."""
        rows = [self.content.row(y) or () for y in range(self.size.height)]
        return ["".join([run.text for run in row]).rstrip() for row in rows]

    def type(self, text: str) -> None:
        """Type text into the program, as if by the user."""
        if self._output.ended:
            return
        self._to_bottom()
        self._input.type(text)

    def send_prefix(self, key: str = PREFIX) -> None:
        """Type the prefix key itself into the program."""
        self._prefixed = False
        self.type(encode_key(key, None, self.content.state.modes) or "")

    # --- reading: through the screen and the scrollback, with a separate cursor ---

    @property
    def reads(self) -> bool:
        """Whether the reader has the cursor; the program continues meanwhile."""
        return self._reads

    @property
    def reading(self) -> Reading:
        """The state of the reader, as last reported by the emulator."""
        return self.content.state.reading or Reading()

    @property
    def lines_back(self) -> int:
        """How many lines the part in view is scrolled back."""
        return self.content.state.scrollback.back

    def start_reading(self) -> None:
        """Give the cursor to the reader; the owner of the view shows its position."""
        if not self._reads:
            self._mouse.clear()
            self._reads = True
            self._emulator.start_reading()
            self.post_message(self.ReadingChanged(self))

    def stop_reading(self) -> None:
        """Give the cursor back to the program and show the newest rows."""
        if self._reads:
            self._reads = False
            self._emulator.stop_reading()
            self.post_message(self.ReadingChanged(self))

    def read(self, step: Step) -> None:
        """Move the reader, or mark."""
        if self._reads:
            self._emulator.read(step)

    def find(self, text: str) -> None:
        """Mark a text, and go to its match."""
        if self._reads:
            self._emulator.find(text)

    async def marked_text(self) -> str:
        """Return the text that the reader marked."""
        return await self._emulator.selected_text()

    async def link_here(self) -> str:
        """Return the link under the reader's cursor; empty when there is none."""
        return await self._emulator.link_here()

    # --- lifecycle ---

    def on_mount(self) -> None:
        """Start the tasks of the view."""
        runs = (self._output.run(), self._input.run(), self._resizes.run())
        self._tasks = [asyncio.create_task(run) for run in runs]
        app = cast("App[object]", self.app)
        app.theme_changed_signal.subscribe(self, self.theme_changed)
        app.screen_change_signal.subscribe(self, self._seen_changed)

    async def on_unmount(self) -> None:
        """End them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._emulator.close()

    def on_show(self) -> None:
        """Request frames."""
        self._laid_out = True
        self._seen_changed()

    def on_hide(self) -> None:
        """Stop frames: a hidden terminal costs nothing here."""
        self._laid_out = False
        self._seen_changed()

    def _seen_changed(self, _: object = None) -> None:
        """Request frames while the view is visible: displayed, and under no opaque screen."""
        seen = self._laid_out and _is_uncovered(self)
        if seen == self._seen:
            return
        self._seen = seen
        if seen:
            self._emulator.show()
        else:
            self._emulator.hide()

    def on_resize(self, event: events.Resize) -> None:
        """Note that the widget has another size."""
        if event.size.area:
            self._resizes.want(*event.size)
            self.content.follow(*event.size)
            self._renderer.repaint()

    # --- reports of the emulator ---

    def on_frame(self, frame: FrameDelta) -> None:
        """Part of `EmulatorSink`."""
        if not self.is_attached:
            return  # removed a moment ago
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
        self._renderer.repaint(changed)
        self.screen.call_after_refresh(self._emulator.painted)
        # A new screen is known before its style says whether it covers this one.
        self._seen_changed()

    def on_reply(self, data: bytes) -> None:
        """Part of `EmulatorSink`."""
        self._input.reply(data)

    def on_clipboard(self, text: str) -> None:
        """Part of `EmulatorSink`."""
        self.post_message(self.ClipboardOffered(self, text))

    def on_restart(self) -> None:
        """Part of `EmulatorSink`: the reader's place no longer exists."""
        if self._reads:
            self._reads = False
            self.post_message(self.ReadingChanged(self))

    def on_failed(self, sentence: str) -> None:
        """Part of `EmulatorSink`."""
        self._failure = sentence
        self._renderer.repaint()

    def _link_changed(self, link: LinkChange) -> None:
        if link.restarted:
            self._failure = ""
        if link.ended:
            self.post_message(self.Ended(self, link.code))
        self._renderer.repaint()

    # --- painting ---

    def theme_changed(self, _: object = None) -> None:
        """Note that the app has another theme."""
        self._renderer.forget_look()
        self.refresh()

    def notify_style_update(self) -> None:
        """Part of `Widget`."""
        super().notify_style_update()
        self._renderer.forget_look()

    def _look_changed(self) -> None:
        _, _, background, foreground = self.colors
        self._emulator.set_colors(foreground.rgb, background.rgb)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the cached strips, bypassing Textual's own cache of styled lines.

        Most of a frame's cost would be in there. So the view has no border or padding.
        """
        if not self.is_attached:  # a frame may still be due when the pane has left the screen
            return [Strip.blank(crop.width)] * crop.height
        return self._renderer.lines(crop, self._overlay())

    def render_line(self, y: int) -> Strip:
        """Part of `Widget`."""
        return self._renderer.line(y, self._overlay())

    def _overlay(self) -> Overlay:
        has_cursor = self._reads or not self._output.ended
        return Overlay(
            not self._failure,
            self.has_focus or self._reads if has_cursor else None,
            self._failure or self._output.note or self._scrolled_note(),
            "" if self._reads else self._output.farewell,
        )

    def _scrolled_note(self) -> str:
        back = self.lines_back
        if (
            not back or self._reads
        ):  # a reader needs every line; the owner of the view shows the message
            return ""
        return f" {back} lines back. Type or press shift+page down to return."

    # --- keys ---

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Part of `Widget`: no binding sees a key while the shell lives."""
        return not self._output.ended

    def on_key(self, event: events.Key) -> None:
        """Type the key into the program."""
        if self._output.ended:
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
        if self.content.state.modes & TerminalMode.ALTERNATE_SCREEN:
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
        self._mouse.clear()
        if self.content.state.scrollback.back:
            self._emulator.scroll_to_bottom()

    def on_paste(self, event: events.Paste) -> None:
        """Type pasted text into the program."""
        event.stop()
        self.type(paste_text(event.text, self.content.state.modes))

    def on_focus(self) -> None:
        """Make the cursor a block, and claim the terminal's size."""
        state = self.content.state
        self._resizes.claim((state.cols, state.rows))
        self._focus_changed("\x1b[I")

    def on_blur(self) -> None:
        """Make the cursor dim."""
        self._prefixed = False
        self._focus_changed("\x1b[O")

    def _focus_changed(self, report: str) -> None:
        if self.content.state.modes & TerminalMode.FOCUS_EVENTS and not self._output.ended:
            self._input.type(report)
        self._renderer.repaint({self.content.cursor.y})

    # --- mouse ---

    def _spot(self, event: events.MouseEvent) -> Spot:
        state, content = self.content.state, self.content
        x = min(max(event.x, 0), self.size.width - 1) + content.left
        y = min(max(event.y, 0), self.size.height - 1) + content.top
        return Spot(min(x, state.cols - 1), min(y, state.rows - 1))

    @property
    def _mouse_modes(self) -> TerminalMode:
        """The mouse reports that the program requested; nothing while somebody reads."""
        return TerminalMode.NONE if self._reads else self.content.state.modes

    async def on_mouse_down(self, event: events.MouseDown) -> None:
        """Report the press, start a selection, or with Ctrl open a link."""
        event.stop()
        spot = self._spot(event)
        if self._mouse.asks_link(event, self._mouse_modes):
            if uri := await self._emulator.link_at(spot.x, spot.y):
                self.post_message(self.LinkWanted(self, uri))
            return
        self.capture_mouse()
        self._mouse.press(event, spot, self._mouse_modes)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Report the move, or select."""
        event.stop()
        beyond = -1 if event.y < 0 else int(event.y >= self.size.height)
        spot = self._spot(event)
        self._mouse.move(event, spot, self._mouse_modes, beyond)
        self._stop_pulling()
        if self._mouse.beyond:
            self._pulling = self.set_interval(PULL_SECONDS, lambda: self._mouse.pull(spot))

    def _stop_pulling(self) -> None:
        if self._pulling is not None:
            self._pulling.stop()
            self._pulling = None

    async def on_mouse_up(self, event: events.MouseUp) -> None:
        """Report the release, or end a selection and copy it."""
        event.stop()
        self.release_mouse()
        self._stop_pulling()
        if self._mouse.release(event, self._spot(event), self._mouse_modes):
            text = await self._emulator.selected_text()
            if text:
                self.post_message(self.CopyWanted(self, text))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Report the wheel, or scroll back."""
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Report the wheel, or scroll forward."""
        self._wheel(event, 1)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        if self._reads:
            self.read(Step.LINES_UP if lines < 0 else Step.LINES_DOWN)
        elif not self._output.ended or not self.content.state.modes & TerminalMode.ALTERNATE_SCREEN:
            self._mouse.wheel(event, self._spot(event), self.content.state.modes, lines)


def _is_uncovered(widget: Widget) -> bool:
    stack = widget.app.screen_stack
    if not widget.is_attached or widget.screen not in stack:
        return False
    above = stack[stack.index(widget.screen) + 1 :]
    return all(screen.styles.background.a < 1 for screen in above)
