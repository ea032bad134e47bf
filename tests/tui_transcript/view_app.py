"""The view in an app, and the events of a chat, for tests that drive it with keys."""

from datetime import UTC, datetime, timedelta
from typing import Any

from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.wire.history import AgentEvent
from tests.support.shown import shown_strips
from tests.support.themed import ThemedApp

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def event(kind: str, at: int = 0, /, **payload: Any) -> AgentEvent:
    when = START + timedelta(seconds=at)
    if kind in ("user-message", "turn-started", "turn-result") or kind.startswith("acp-"):
        return AgentEvent(timestamp=when, type=kind, payload=payload)
    update = {"sessionUpdate": kind, **payload}
    return AgentEvent(timestamp=when, type="acp-session_update", payload=update)


def user(n: int, text: str = "") -> AgentEvent:
    return event("user-message", n, messageId=f"m{n}", text=text or f"prompt {n}")


def say(text: str, message_id: str | None = None) -> AgentEvent:
    extra = {"messageId": message_id} if message_id else {}
    return event("agent_message_chunk", content={"type": "text", "text": text}, **extra)


def tool(tool_id: str, **fields: Any) -> AgentEvent:
    return event("tool_call", toolCallId=tool_id, **fields)


def ask(request_id: str = "q", **more: Any) -> AgentEvent:
    options = [{"optionId": "y", "name": "Allow"}, {"optionId": "n", "name": "Reject"}]
    call = {"toolCallId": f"t-{request_id}", "title": "Write"}
    asked = {"requestId": request_id, "toolCall": call, "options": options, **more}
    return event("acp-permission_request", **asked)


def talk(turns: int, first: int = 0) -> list[AgentEvent]:
    made: list[AgentEvent] = []
    for n in range(first, first + turns):
        made += [user(n), say(f"answer {n} " + "with some words " * (n % 7 * 5))]
        made += [tool(f"t{n}", title=f"Run {n}", status="completed", rawOutput={"exitCode": n % 2})]
    return made


class Host(ThemedApp):
    """Keeps what the view tells."""

    def __init__(self, *events: AgentEvent) -> None:
        super().__init__()
        self.view = TranscriptView(Transcript(events))
        self.told: list[Any] = []

    def compose(self) -> ComposeResult:
        yield self.view
        yield Input()

    def on_mount(self) -> None:
        self.view.focus()

    def on_transcript_view_older_wanted(self) -> None:
        self.told.append("older")

    def on_transcript_view_new_below(self, message: TranscriptView.NewBelow) -> None:
        self.told.append(message.count)

    def add(self, *events: AgentEvent) -> None:
        for one in events:
            self.view.refresh_change(self.view.transcript.append(one))

    def seen(self) -> list[str]:
        height = self.view.size.height
        strips = shown_strips(self)
        texts = [strip.text[:-1] for strip in strips[:height]]  # without the scroll bar
        return [text.removeprefix("\u258c").strip().removeprefix("\u258e ") for text in texts]


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    await pilot.pause()


def text_rows(rows: list[str]) -> list[str]:
    return [row for row in rows if row and "new below" not in row]
