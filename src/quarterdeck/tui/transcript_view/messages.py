"""Messages of the transcript view; handlers are named `on_transcript_view_...`."""

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


class Answered(ViewMessage, namespace="transcript_view"):
    """The user chose an option of a question."""

    def __init__(self, view: "TranscriptView", request_id: str, option_id: str) -> None:
        super().__init__(view)
        self.request_id = request_id
        self.option_id = option_id


class OlderWanted(ViewMessage, namespace="transcript_view"):
    """The reader is at the top, and `has_older`. Answer with a change of a prepended page."""


class NewBelow(ViewMessage, namespace="transcript_view"):
    """`count` blocks below the window are new or changed; 0: the reader is at the end."""

    def __init__(self, view: "TranscriptView", count: int) -> None:
        super().__init__(view)
        self.count = count


class CopyWanted(ViewMessage, namespace="transcript_view"):
    """The user wants this text on the clipboard."""

    def __init__(self, view: "TranscriptView", text: str) -> None:
        super().__init__(view)
        self.text = text
