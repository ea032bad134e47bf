"""A cockpit over a store that stands still: the same picture at every run."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from textual.app import App
from textual.dom import NoScreen

from quarterdeck.store.app_state import AppState
from quarterdeck.store.chats import ChatState
from quarterdeck.store.disk import ClientDisk
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.service_choice import ServiceChoice
from quarterdeck.store.status import ConnectionPhase
from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.app import Cockpit
from quarterdeck.tui.options import Options
from quarterdeck.wire.chats import Chat, QueuedMessage
from quarterdeck.wire.history import AgentEvent
from quarterdeck.wire.replicas import ReplicaDetail
from tests.support.shown import shown_strips

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def no_client() -> Any:
    raise AssertionError("a frozen cockpit asks nobody")


class FrozenCockpit(Cockpit):
    """Follows no service; what it shows is put into its deck by the test."""

    def __init__(
        self,
        drafts: Path,
        directory: Path | None = Path("/home/me/shop"),
        options: Options | None = None,
    ) -> None:
        super().__init__(
            ServiceChoice(no_client, "local", None, "local"),
            drafts=drafts,
            directory=directory,
            options=options,
        )
        self.app_state.connection.phase = ConnectionPhase.ONLINE
        self.app_state.connection.latency_ms = 2.0
        self.app_state.listed = True

    def _start_up(self) -> None:
        return

    def add_service(self, name: str) -> AppState:
        """A service beside the one in use."""
        disk = ClientDisk(self._drafts / name)
        store = AppState(no_client, endpoint=name, disk=disk, name=name, beside=True)
        store.listed = True
        self.services.add(store)
        return store

    def add(
        self, name: str, status: str = "active", *, store: AppState | None = None, **fields: Any
    ) -> ReplicaState:
        """A replica with one chat; the number of those before gives it its age and its id."""
        number = sum(1 for _ in self.services.all())
        processing = fields.pop("processing", False)
        awaiting = fields.pop("awaiting_input", False)
        record = ReplicaDetail.model_validate(
            {
                "id": UUID(int=1000 + number),
                "name": name,
                "status": status,
                "created_at": START,
                "last_activity_at": START - timedelta(minutes=number),
                "coding_agent": "builtin",
                **fields,
            }
        )
        chat = Chat(
            id=UUID(int=2000 + number),
            provider="builtin",
            created_at=START,
            updated_at=START,
            processing=processing,
            awaiting_input=awaiting,
        )
        state = ReplicaState(record, seen_at=START, detailed=True)
        known = state.chats[chat.id] = ChatState(chat, transcript=Transcript([]))
        known.turn_started_at = START if processing else None
        store = store or self.app_state
        state.service, state.beside = store.connection.name, store is not self.app_state
        store.replicas[state.id] = state
        return state


def screen_text(app: App[Any]) -> str:
    """What a person sees; nothing while a part of the screen is being replaced."""
    try:
        strips = shown_strips(app)
    except NoScreen:
        return ""
    return "\n".join(strip.text.rstrip() for strip in strips)


def shows(app: App[Any], texts: Iterable[str]) -> bool:
    """Whether all of them are on the screen, which is drawn once for the question."""
    text = screen_text(app)
    return all(one in text for one in texts)


def said(state: ReplicaState, events: list[AgentEvent]) -> None:
    """Gives a replica's chat a transcript."""
    chat = state.first_chat
    assert chat is not None
    chat.transcript = Transcript(events)


def queued(state: ReplicaState, *texts: str) -> None:
    """Messages behind the running turn."""
    chat = state.first_chat
    assert chat is not None
    chat.queue = [
        QueuedMessage(id=UUID(int=3000 + n), message=text, queued_at=START)
        for n, text in enumerate(texts)
    ]


class Story:
    """Events of a chat, one second apart."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    def add(self, type_: str, /, **payload: Any) -> "Story":
        at = START + timedelta(seconds=len(self.events))
        self.events.append(AgentEvent(timestamp=at, type=type_, payload=payload))
        return self

    def update(self, kind: str, /, **payload: Any) -> "Story":
        return self.add("acp-session_update", sessionUpdate=kind, **payload)

    def user(self, text: str) -> "Story":
        return self.add("user-message", messageId=f"m{len(self.events)}", text=text)

    def say(self, text: str) -> "Story":
        return self.update("agent_message_chunk", content={"type": "text", "text": text})

    def think(self, text: str) -> "Story":
        return self.update("agent_thought_chunk", content={"type": "text", "text": text})


def every_block() -> list[AgentEvent]:
    """A chat with every kind of block."""
    story = Story().user("Fix the **login** time-out").think("Where is the session made?")
    story.update(
        "plan",
        entries=[
            {"content": "Find the cause", "status": "completed", "priority": "high"},
            {"content": "Mend it", "status": "in_progress", "priority": "high"},
        ],
    )
    story.update("tool_call", toolCallId="t1", title="pytest -q", kind="execute", status="failed")
    diff = {"type": "diff", "path": "login.py", "oldText": "limit = 3\n", "newText": "limit = 30\n"}
    story.update(
        "tool_call",
        toolCallId="t2",
        title="Edit login.py",
        kind="edit",
        status="completed",
        content=[diff],
    )
    story.say("The cookie lived *three* seconds.\n\n```python\nlimit = 30\n```\n\n- one\n- two\n")
    options = [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    call = {"toolCallId": "t3", "title": "git push"}
    story.add("acp-permission_request", requestId="r1", toolCall=call, options=options)
    story.add("turn-result", messageId="m0", stopReason="end_turn")
    return story.events
