"""The transcript as a part of the cockpit: the view, with the keys of its screen."""

from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.transcript_view import TranscriptView


class ChatTranscript(TranscriptView):
    """Keys that leave it are carried out before the next key is looked at."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.CHAT)]
