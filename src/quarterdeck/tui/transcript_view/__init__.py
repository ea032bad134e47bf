"""The transcript view: a chat of any length in one widget."""

from quarterdeck.tui.transcript_view.view import TranscriptView

__all__ = ["TranscriptView"]
