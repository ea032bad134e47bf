"""The page that shows the images of a message or a file in the whole window."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.store.app_state import AppState
from quarterdeck.tui.actions import KeyContext, bindings
from quarterdeck.tui.pictures import PictureView, why_none
from quarterdeck.tui.screens.page import PageScreen

if TYPE_CHECKING:
    from quarterdeck.tui.app import Cockpit


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

    def body(self) -> ComposeResult:
        yield Static(id="picture-title", markup=False)
        yield PictureView(self._images[0])

    def action_back(self) -> None:
        """Part of `PageScreen`; the focus below is where it was, so no key has to wait for it."""
        self.dismiss(None)

    def action_turn(self, by: int) -> None:
        """Go to another image of the block."""
        at = min(max(self._at + by, 0), len(self._images) - 1)
        if at != self._at:
            self._at = at
            self.query_one(PictureView).show_image(self._images[at])

    @on(PictureView.Drawn)
    def _picture_drawn(self, event: PictureView.Drawn) -> None:
        event.stop()
        self._show_title(event.text, failed=event.failed)

    def _show_title(self, text: str, *, failed: bool) -> None:
        several = len(self._images) > 1
        position = f"Image {self._at + 1} of {len(self._images)}" if several else "Image"
        title = self.query_one("#picture-title", Static)
        title.set_class(failed, "trouble")
        title.update(f"{position}: {text}")


async def view_image(pane: Widget, app_state: AppState, content: bytes, is_image: bool) -> str:
    """Show an image in the whole window; return why not, or nothing."""
    if not is_image:
        return "Not an image that can be shown."
    why = await why_none(cast("Cockpit", pane.app))
    if not why:
        await pane.app.push_screen(PictureScreen(app_state, [content]))
    return why
