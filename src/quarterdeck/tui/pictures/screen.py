"""The images of a block, one at a time, each as large as the page."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.store.deck import Deck
from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.outer import cell_aspect
from quarterdeck.tui.pictures.half_blocks import half_blocks
from quarterdeck.tui.pictures.words import NotShownError
from quarterdeck.tui.screens.page import PageScreen

if TYPE_CHECKING:
    from quarterdeck.tui.pictures.decoding import Picture


class PictureView(Widget, can_focus=True):
    """Strips in the middle of a pane."""

    DEFAULT_CSS = "PictureView { height: 1fr; background: $background; }"

    class Resized(Message):
        """There is another size to draw in."""

    def __init__(self) -> None:
        super().__init__()
        self._strips: Sequence[Strip] = ()

    def show(self, strips: Sequence[Strip]) -> None:
        """Shows these, or nothing."""
        self._strips = strips
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        """What was drawn has the wrong size."""
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
    """Escape leads back; the picture is forgotten with the page."""

    DEFAULT_CSS = """
    PictureScreen {
        & #picture-title { height: 1; background: $boost; padding: 0 1; }
        & #picture-title.trouble { color: $text-error; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.PICTURE)]
    AUTO_FOCUS = "PictureView"
    home = Where.PICTURE

    def __init__(self, deck: Deck, images: Sequence[bytes]) -> None:
        """`images` are their files' contents, at least one."""
        super().__init__(deck)
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
        """To another image of the block."""
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
            self._say(str(error), trouble=True)
            view.show(())
        else:
            self._say(drawer.told, trouble=False)
            view.show(strips)

    def _say(self, words: str, *, trouble: bool) -> None:
        several = len(self._images) > 1
        which = f"Image {self._at + 1} of {len(self._images)}" if several else "Image"
        title = self.query_one("#picture-title", Static)
        title.set_class(trouble, "trouble")
        title.update(f"{which}: {words}")


class Drawer:
    """Draws one image, which is decoded the first time. To be called in a thread."""

    def __init__(self) -> None:
        self._picture: Picture | None = None
        self.told = ""

    def draw(self, content: bytes, room: Size, aspect: float) -> list[Strip]:
        """Its strips.

        Raises:
            NotShownError: it cannot be shown.
        """
        if self._picture is None:
            from quarterdeck.tui.pictures.decoding import decoded

            picture = decoded(content)
            self.told = f"{picture.format}, {picture.width} x {picture.height}"
            self._picture = picture
        return half_blocks(self._picture.pixels, room, aspect)
