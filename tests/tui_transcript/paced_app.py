"""A chat beside a list, over a field: `ctrl+s` streams as fast as models write.

Argument: seconds to stream.
"""

import asyncio
import sys
import time
from datetime import UTC, datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.driver import Driver
from textual.widgets import Input, Static

from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.frames import DiffedFrames, SettledLayout
from quarterdeck.tui.textual_ext.driver import install_alt_keys, outlet_driver
from quarterdeck.tui.textual_ext.type_ahead import TypeAhead
from quarterdeck.tui.themes import own_themes
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.wire.history import AgentEvent

PROSE = (
    "The session cookie is read before the middleware has run, so the first request after a restart "
    "is answered as if nobody were logged in. Moving the check behind it is enough.\n\n"
)
PIECES, PIECE = 30, 20
"""Pieces a second, and characters in each."""


def say(text: str, message_id: str) -> AgentEvent:
    content = {"type": "text", "text": text}
    payload = {
        "sessionUpdate": "agent_message_chunk",
        "content": content,
        "messageId": message_id,
    }
    return AgentEvent(timestamp=datetime.now(UTC), type="acp-session_update", payload=payload)


class Beside(SettledLayout[None]):
    """The screen."""

    def compose(self) -> ComposeResult:
        with Horizontal():
            side = Static("\n".join(f"a replica of the list {n}" for n in range(30)))
            side.styles.width = 28
            yield side
            yield TranscriptView(self.app.transcript)  # type: ignore[attr-defined]
        field = Input("", placeholder="ready")
        field.cursor_blink = False  # it would cost bytes
        yield field


class Paced(TypeAhead, DiffedFrames):
    """Streams on `ctrl+s`; `page up` and `page down` scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("ctrl+s", "stream"),
        ("pageup", "page(-1)"),
        ("pagedown", "page(1)"),
        ("ctrl+q", "quit"),
    ]

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self.seconds = seconds
        texts = (f"{PROSE}answer **{n}** with `code`\n\n- a\n- b\n" for n in range(100))
        self.transcript = Transcript(say(text, str(n)) for n, text in enumerate(texts))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return own_themes()[0].variables  # as `ThemedApp`, which a script cannot import

    def get_driver_class(self) -> type[Driver]:
        return outlet_driver(super().get_driver_class())

    def get_default_screen(self) -> Beside:
        return Beside()

    def on_mount(self) -> None:
        self.call_after_refresh(lambda: self.screen.query_one(Input).focus())

    def action_stream(self) -> None:
        self.run_worker(self.stream())

    def action_page(self, by: int) -> None:
        self.screen.query_one(TranscriptView).action_page(by)

    async def stream(self) -> None:
        view = self.screen.query_one(TranscriptView)
        begun = time.monotonic()
        written = PROSE * (self.seconds * PIECES * PIECE // len(PROSE) + 1)
        for n in range(self.seconds * PIECES):
            piece = written[n * PIECE : (n + 1) * PIECE]
            view.refresh_change(self.transcript.append(say(piece, "stream")))
            await asyncio.sleep(max(0.0, begun + n / PIECES - time.monotonic()))
        view.refresh_change(self.transcript.append(say("\n\nthat is all", "stream")))


if __name__ == "__main__":
    install_alt_keys()
    Paced(int(sys.argv[1])).run()
