"""The transcript of the Chat tab."""

from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.binding import BindingType
from textual.geometry import Region
from textual.strip import Strip

from quarterdeck.tui.actions import KeyContext, prompt_bindings
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.outside import open_address, opener, shown_address
from quarterdeck.tui.transcript_view import TranscriptView

if TYPE_CHECKING:
    from quarterdeck.tui.app import Cockpit


class ChatTranscript(TranscriptView, HasKeyContext):
    """The transcript with the keys of the cockpit. They are carried out before the next key is handled."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.CHAT)]

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.CHAT

    def on_mount(self) -> None:
        self.show_calls(cast("Cockpit", self.app).options.calls)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Part of `Widget`; a frame may still be due when the pane has left the screen."""
        if not self.is_attached:
            return [Strip.blank(crop.width)] * crop.height
        return super().render_lines(crop)

    @on(TranscriptView.LinkClicked)
    @work(group="link", exclusive=True)
    async def _follow_link(self, event: TranscriptView.LinkClicked) -> None:
        """Open a link in the browser, after asking; copy it where the user's browser is elsewhere."""
        from quarterdeck.tui.kit.dialogs import ConfirmScreen

        command = opener(event.address)
        if command is None:
            copy_text(self, event.address)
            return
        asked = ConfirmScreen("Open this link?", shown_address(event.address), "Open")
        if await self.app.push_screen_wait(asked) and not await open_address(command):
            self.app.notify("Could not open a browser.", severity="warning", markup=False)
