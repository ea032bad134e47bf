"""Runs follow their workspaces, in the transaction that stores what happened there."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.runs import finish, mark_running
from quarterdeck.service.records.chats import find_chat
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.executions import open_in
from quarterdeck.service.records.messages import MessageState, state_of
from quarterdeck.service.records.workspaces import find_workspace
from quarterdeck.wire.events import EventType
from quarterdeck.wire.goals import GoalStatus
from quarterdeck.wire.history import AgentEventType
from quarterdeck.wire.replicas import WorkspaceStatus

HEARD = frozenset(
    (
        EventType.CHAT_TURN_COMPLETED,
        EventType.ENGINE_STATUS_CHANGED,
        EventType.CHAT_UPDATED,
        EventType.CHAT_DELETED,
    )
)
"""The events of the log that may move a run."""

CANCELED_IDS = "canceledMessageIds"
GONE = "Its replica was deleted before the run had ended."
CHAT_GONE = "Its chat was deleted before the run had ended."
CANCELED = "Its message was taken out of the queue."
INTERRUPTED = "Its turn was interrupted."
PUT_TO_REST = "Its replica was put to rest before the run had ended."
RESTING = (WorkspaceStatus.SLEEPING, WorkspaceStatus.ARCHIVED)
LONGEST_ERROR = 2_000
UNSAID = "Its turn failed; the replica's chat says how."


def follow_events(
    connection: Connection, workspace_id: str, events: Sequence[NewEvent], now: str
) -> None:
    """Moves the runs of a workspace for events that are being appended. Cheap without any."""
    heard = [event for event in events if event.type in HEARD and _moves(event)]
    runs = open_in(connection, workspace_id) if heard else []
    if not runs:
        return
    for event in heard:
        match event.type:
            case EventType.ENGINE_STATUS_CHANGED:
                _follow_state(connection, workspace_id, runs, event.payload, now)
            case EventType.CHAT_TURN_COMPLETED:
                _follow_turn(connection, runs, event.payload, _errors(events), now)
            case _:
                _follow_chat(connection, runs, event, now)


def _moves(event: NewEvent) -> bool:
    """Chats are told of often, and seldom because a message was taken out."""
    return event.type != EventType.CHAT_UPDATED or bool(event.payload.get(CANCELED_IDS))


def workspace_gone(connection: Connection, workspace_id: str, now: str) -> None:
    """Ends the runs of a workspace that is just being deleted."""
    for run in open_in(connection, workspace_id):
        finish(connection, run["id"], GONE, now)


def _follow_state(
    connection: Connection,
    workspace_id: str,
    runs: Sequence[RowMapping],
    told: Mapping[str, Any],
    now: str,
) -> None:
    row = find_workspace(connection, workspace_id)
    # What an engine says of the state counts only when it is true.
    if row is None or told.get("workspaceStatus") != row.status:
        return
    for run in runs:
        if row.status == WorkspaceStatus.ACTIVE:
            mark_running(connection, run["id"], now)
        elif row.status == WorkspaceStatus.ERROR:
            finish(connection, run["id"], f"Its replica failed: {row.error}", now)
        elif row.status in RESTING and _begun(connection, run):
            finish(connection, run["id"], PUT_TO_REST, now)


def _begun(connection: Connection, run: RowMapping) -> bool:
    """Whether the engine had the message: one that it has not waits for the next."""
    state = state_of(connection, run["chat_id"], run["message_id"])
    return state != MessageState.ACCEPTED


def _follow_turn(
    connection: Connection,
    runs: Sequence[RowMapping],
    told: Mapping[str, Any],
    errors: Mapping[Any, str],
    now: str,
) -> None:
    for run in runs:
        if run["chat_id"] != told.get("chatId") or not _said_all(connection, run):
            continue
        why = errors.get(told.get("messageId"), UNSAID)
        finish(connection, run["id"], None if told.get("isComplete") else why, now)


def _said_all(connection: Connection, run: RowMapping) -> bool:
    """Whether the run's message was worked on, and no goal has the chat go on by itself."""
    if state_of(connection, run["chat_id"], run["message_id"]) != MessageState.DONE:
        return False
    chat = find_chat(connection, run["workspace_id"], run["chat_id"])
    return chat is None or chat.goal is None or chat.goal.status != GoalStatus.ACTIVE


def _follow_chat(
    connection: Connection, runs: Sequence[RowMapping], event: NewEvent, now: str
) -> None:
    canceled = event.payload.get(CANCELED_IDS) or ()
    for run in runs:
        if event.type == EventType.CHAT_DELETED:
            if run["chat_id"] == event.payload.get("chatId"):
                finish(connection, run["id"], CHAT_GONE, now)
        elif run["message_id"] in canceled:
            finish(connection, run["id"], CANCELED, now)


def _errors(events: Sequence[NewEvent]) -> dict[Any, str]:
    """What the results of turns among the events say went wrong, by message."""
    found: dict[Any, str] = {}
    for event in events:
        if event.type != EventType.CHAT_TURN_DELTA:
            continue
        said = cast("dict[str, Any]", event.payload.get("event") or {})
        if said.get("type") != AgentEventType.TURN_RESULT:
            continue
        result = cast("dict[str, Any]", said.get("payload") or {})
        if error := result.get("error"):
            found[event.payload.get("messageId")] = f"Its turn failed: {error}"[:LONGEST_ERROR]
        elif result.get("stopReason") == "cancelled":
            found[event.payload.get("messageId")] = INTERRUPTED
    return found
