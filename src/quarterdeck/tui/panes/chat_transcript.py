"""The transcript as a part of the cockpit: the view, with the keys of its screen."""

from typing import ClassVar

from textual.binding import BindingType
from textual.geometry import Region
from textual.strip import Strip

from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.tui.widgets.placed import Placed


class ChatTranscript(TranscriptView, Placed):
    """Keys that leave it are carried out before the next key is looked at."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.CHAT)]

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.CHAT

    def render_lines(self, crop: Region) -> list[Strip]:
        """Part of `Widget`; a frame may still be due when the pane has left the screen."""
        if not self.is_attached:
            return [Strip.blank(crop.width)] * crop.height
        return super().render_lines(crop)
