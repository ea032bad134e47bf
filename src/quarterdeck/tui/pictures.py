"""Images as half blocks, two pixels per cell.

bytes -> decoded (in a thread) -> Picture -> half_blocks, for a pane's size -> strips -> PictureScreen

Pillow is loaded when the first image is shown. Nothing is kept of an image that is not shown.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.store.app_state import AppState
from quarterdeck.tui.actions import KeyContext, bindings
from quarterdeck.tui.host_terminal import cell_aspect
from quarterdeck.tui.outside import OPENERS
from quarterdeck.tui.screens.page import PageScreen

if TYPE_CHECKING:
    from PIL.Image import Image

    from quarterdeck.tui.picture_decoder import Picture


UPPER = "\u2580"

Pixel = tuple[int, int, int]


def fitted(pixels: Size, room: Size, aspect: float) -> Size:
    """Return the largest size, in cells across and half cells down, with the same shape in the room.

    `aspect` is the ratio of a cell's height to its width.
    """
    half = aspect / 2
    scale = min(room.width / pixels.width, room.height * aspect / pixels.height)
    across = min(round(pixels.width * scale), room.width)
    down = min(round(pixels.height * scale / half), room.height * 2)
    return Size(max(across, 1), max(down, 1))


def half_blocks(image: "Image", room: Size, aspect: float) -> list[Strip]:
    """Return an image in RGB, as large as the room allows."""
    from PIL.Image import Resampling

    size = fitted(Size(*image.size), room, aspect)
    grows = size.width >= image.width and size.height >= image.height
    scaled = image.resize(size, Resampling.NEAREST if grows else Resampling.LANCZOS)
    data, step = scaled.tobytes(), size.width * 3
    rows = [_pixels(data[at : at + step]) for at in range(0, len(data), step)]
    return [
        _strip(upper, rows[y * 2 + 1] if y * 2 + 1 < len(rows) else None)
        for y, upper in enumerate(rows[::2])
    ]


def _pixels(row: bytes) -> list[Pixel]:
    return list(zip(row[::3], row[1::3], row[2::3], strict=True))


def _strip(upper: list[Pixel], lower: list[Pixel] | None) -> Strip:
    below: list[Pixel] | list[None] = [None] * len(upper) if lower is None else lower
    runs: list[tuple[Pixel, Pixel | None, int]] = []
    for above, under in zip(upper, below, strict=True):
        if runs and runs[-1][:2] == (above, under):
            runs[-1] = (above, under, runs[-1][2] + 1)
        else:
            runs.append((above, under, 1))
    return Strip([_segment(above, under, cells) for above, under, cells in runs], len(upper))


def _segment(upper: Pixel, lower: Pixel | None, cells: int) -> Segment:
    if lower is None:
        return Segment(UPPER * cells, Style(color=Color.from_rgb(*upper)))
    background = Color.from_rgb(*lower)
    if upper == lower:
        return Segment(" " * cells, Style(bgcolor=background))
    return Segment(UPPER * cells, Style(color=Color.from_rgb(*upper), bgcolor=background))


FEW_COLORS = frozenset({"standard", "windows"})
"""Names of color systems with sixteen colors, which cannot show a picture."""


class NotShownError(Exception):
    """An image cannot be shown; the text says why."""


def why_none(app: App[Any]) -> str:
    """Return why this terminal cannot show pictures at all; empty when it can."""
    if app.no_color:
        return "NO_COLOR is set, so no picture can be shown."
    if app.console.color_system in FEW_COLORS:
        return "This terminal has 16 colors, too few for a picture."
    return ""


def saved_words(paths: list[Path], environment: Mapping[str, str] = os.environ) -> str:
    """Return where images were saved, and how to open them on this machine's own screen."""
    where = f"Saved: {', '.join(str(path.absolute()) for path in paths)}"
    program = _opener(environment)
    return f"{where}. To open: {program} {paths[0].absolute()}" if program else f"{where}."


def _opener(environment: Mapping[str, str]) -> str:
    if "SSH_CONNECTION" in environment:
        return ""  # what opens here is not seen there
    if sys.platform == "darwin":
        return "open"
    return next((name for name in OPENERS if shutil.which(name)), "")


class PictureView(Widget, can_focus=True):
    """Strips in the middle of a pane."""

    DEFAULT_CSS = "PictureView { height: 1fr; background: $background; }"

    class Resized(Message):
        """The size has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._strips: Sequence[Strip] = ()

    def show(self, strips: Sequence[Strip]) -> None:
        """Show strips, or nothing."""
        self._strips = strips
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        """Drop the drawing, which has the wrong size."""
        self.show(())
        self.post_message(self.Resized())

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        base = self.rich_style
        row = y - max(0, (height - len(self._strips)) // 2)
        if not 0 <= row < len(self._strips):
            return Strip.blank(width, base)
        strip = self._strips[row]
        left = max(0, (width - strip.cell_length) // 2)
        margin = Strip([Segment(" " * left, base)], left)
        return Strip.join([margin, strip.apply_style(base)]).adjust_cell_length(width, base)


class PictureScreen(PageScreen):
    """Escape goes back; the picture is freed with the page."""

    DEFAULT_CSS = """
    PictureScreen {
        & #picture-title { height: 1; background: $boost; padding: 0 1; }
        & #picture-title.trouble { color: $text-error; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.PICTURE)]
    AUTO_FOCUS = "PictureView"
    home = KeyContext.PICTURE

    def __init__(self, app_state: AppState, images: Sequence[bytes]) -> None:
        """`images` are their files' contents, at least one."""
        super().__init__(app_state)
        self._images = images
        self._at = 0
        self._drawer = Drawer()

    def body(self) -> ComposeResult:
        yield Static(id="picture-title", markup=False)
        yield PictureView()

    def action_back(self) -> None:
        """Part of `PageScreen`; the focus below is where it was, so no key has to wait for it."""
        self.dismiss(None)

    def action_turn(self, by: int) -> None:
        """Go to another image of the block."""
        at = min(max(self._at + by, 0), len(self._images) - 1)
        if at != self._at:
            self._at = at
            self._drawer = Drawer()
            self._draw()

    @on(PictureView.Resized)
    @work(exclusive=True, group="draw")
    async def _draw(self) -> None:
        view = self.query_one(PictureView)
        content, room = self._images[self._at], view.size
        if not room.width or not room.height:
            return
        drawer = self._drawer
        try:
            strips = await asyncio.to_thread(drawer.draw, content, room, cell_aspect())
        except NotShownError as error:
            self._show_title(str(error), failed=True)
            view.show(())
        else:
            self._show_title(drawer.summary, failed=False)
            view.show(strips)

    def _show_title(self, text: str, *, failed: bool) -> None:
        several = len(self._images) > 1
        position = f"Image {self._at + 1} of {len(self._images)}" if several else "Image"
        title = self.query_one("#picture-title", Static)
        title.set_class(failed, "trouble")
        title.update(f"{position}: {text}")


class Drawer:
    """Draws one image, which is decoded the first time. Called in a thread."""

    def __init__(self) -> None:
        self._picture: Picture | None = None
        self.summary = ""

    def draw(self, content: bytes, room: Size, aspect: float) -> list[Strip]:
        """Return the image's strips.

        Raises:
            NotShownError: it cannot be shown.
        """
        if self._picture is None:
            from quarterdeck.tui.picture_decoder import decoded

            picture = decoded(content)
            self.summary = f"{picture.format}, {picture.width} x {picture.height}"
            self._picture = picture
        return half_blocks(self._picture.pixels, room, aspect)
