"""A chat whose every event is loaded, in the view alone: prints what it costs as JSON.

python -m tests.bench.long_chat EVENTS
"""

import asyncio
import gc
import json
import os
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta

from textual.app import ComposeResult

from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.wire.history import AgentEvent, AgentEventType
from tests.bench.table import resident_mb
from tests.support.themed import ThemedApp

START = datetime(2026, 11, 20, tzinfo=UTC)
SAMPLES = 60


def event(number: int) -> AgentEvent:
    """One of a talk of paragraphs, thoughts, and calls with what they printed."""
    text = {"type": "text", "text": f"Paragraph **{number}** says `this`.\n\n"}
    call = {"toolCallId": f"t{number // 4}"}
    payload = [
        {"sessionUpdate": "agent_thought_chunk", "content": text},
        {"sessionUpdate": "tool_call", **call, "title": f"cat file{number}.py"},
        {
            "sessionUpdate": "tool_call_update",
            **call,
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "one line\n" * 5}}],
        },
        {"sessionUpdate": "agent_message_chunk", "content": text},
    ][number % 4]
    at = START + timedelta(milliseconds=number)
    return AgentEvent(timestamp=at, type=AgentEventType.SESSION_UPDATE, payload=payload)


class LongChat(ThemedApp):
    """The view, its transcript set when it is there."""

    def compose(self) -> ComposeResult:
        yield TranscriptView(Transcript())


async def measure(count: int) -> dict[str, float]:
    app = LongChat()
    async with app.run_test(size=(120, 40)) as pilot:
        view = app.query_one(TranscriptView)
        view.focus()
        transcript = Transcript()
        for number in range(count):
            transcript.append(event(number))
        gc.collect()
        gc.freeze()
        begun = time.process_time()
        view.set_transcript(transcript)
        view.render_lines(view.size.region)
        opened = time.process_time() - begun
        await pilot.pause()
        appends: list[float] = []
        for number in range(count, count + SAMPLES):
            coming = event(number)
            begun = time.process_time()
            view.refresh_change(transcript.append(coming))
            view.render_lines(view.size.region)
            appends.append(time.process_time() - begun)
        pages: list[float] = []
        for _ in range(SAMPLES):
            begun = time.process_time()
            view.action_page(-1)
            view.render_lines(view.size.region)
            pages.append(time.process_time() - begun)
        begun = time.process_time()
        view.find("stands nowhere in it")
        found = time.process_time() - begun
        return {
            "open": opened * 1000,
            "append": statistics.quantiles(appends, n=20)[-1] * 1000,
            "page": statistics.quantiles(pages, n=20)[-1] * 1000,
            "find": found * 1000,
            "memory": resident_mb(os.getpid()),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(int(sys.argv[1])))))
