"""The transcript of the Chat tab."""

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType
from textual.geometry import Region
from textual.strip import Strip

from quarterdeck.tui.actions import KeyContext, prompt_bindings
from quarterdeck.tui.kit.key_context import HasKeyContext
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
