"""What the transcript view tells its screen."""

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from quarterdeck.tui.transcript_view.view import TranscriptView


class ViewMessage(Message):
    """A message of a transcript view."""

    def __init__(self, view: "TranscriptView") -> None:
        super().__init__()
        # Some are sent while the screen draws; a message whose sender is the screen would end there.
        self.set_sender(view)
        self.view = view

    @property
    def control(self) -> "TranscriptView":
        """The view that sent it."""
        return self.view
