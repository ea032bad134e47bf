"""The transcript view under a stream, for counting. Argument: events to open with."""

import asyncio
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import Input

from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.frames import DiffedFrames
from quarterdeck.tui.themes import own_themes
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.wire.history import AgentEvent

TOKENS = 2_000


def say(text: str, message_id: str) -> AgentEvent:
    content = {"type": "text", "text": text}
    payload = {
        "sessionUpdate": "agent_message_chunk",
        "content": content,
        "messageId": message_id,
    }
    return AgentEvent(timestamp=datetime.now(UTC), type="acp-session_update", payload=payload)


def resident() -> int:
    """Bytes of memory in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Streaming(DiffedFrames, App[None]):
    """Streams a thousand tokens a second on `s`, then tells what it cost."""

    def __init__(self, count: int) -> None:
        super().__init__()
        texts = (f"answer **{n}** with `code`\n\n- a\n- b\n" for n in range(count))
        self.transcript = Transcript(say(text, str(n)) for n, text in enumerate(texts))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return own_themes()[0].variables  # as `ThemedApp`, which a script cannot import

    def compose(self) -> ComposeResult:
        yield TranscriptView(self.transcript)
        yield Input("ready")

    def on_mount(self) -> None:
        view = self.query_one(TranscriptView)
        view.focus()

    async def on_key(self, event: object) -> None:
        if getattr(event, "key", "") == "s":
            self.run_worker(self.stream())

    async def stream(self) -> None:
        view = self.query_one(TranscriptView)
        before, started = time.process_time(), time.monotonic()
        for n in range(TOKENS):
            word = f"word{n % 97} " + ("**bold** " if n % 9 == 0 else "")
            word += "\n\n" if n % 60 == 59 else ""
            view.refresh_change(self.transcript.append(say(word, "stream")))
            await asyncio.sleep(max(0.0, started + n / 1_000 - time.monotonic()))
        took = time.monotonic() - started
        cpu = (time.process_time() - before) / took * 100
        report = f"cpu {cpu:.0f} % in {took:.1f} s, rss {resident() >> 20} MB, done"
        self.query_one(Input).value = report


if __name__ == "__main__":
    Streaming(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000).run()
