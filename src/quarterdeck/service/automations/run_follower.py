"""Update runs for events of their workspaces, in the transaction that stores the events."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError
from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.run_rows import open_in
from quarterdeck.service.automations.runs import finish, mark_running
from quarterdeck.service.chats.rows import MessageState, find_chat, state_of
from quarterdeck.service.event_rows import NewEvent, last_index, read_after
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.wire.automation_runs import ExecutionReason
from quarterdeck.wire.chats import GoalStatus
from quarterdeck.wire.events import EventType
from quarterdeck.wire.history import AgentEventType, TurnResult
from quarterdeck.wire.replicas import WorkspaceStatus

HEARD = frozenset(
    (
        EventType.CHAT_TURN_COMPLETED,
        EventType.ENGINE_STATUS_CHANGED,
        EventType.CHAT_UPDATED,
        EventType.CHAT_DELETED,
    )
)
"""The events of the log that may change the state of a run."""

CANCELED_IDS = "canceledMessageIds"
GONE = "Its replica was deleted before the run had ended."
CHAT_GONE = "Its chat was deleted before the run had ended."
CANCELED = "Its message was removed from the queue."
INTERRUPTED = "Its turn was interrupted."
PUT_TO_REST = "Its replica was put to rest before the run had ended."
RESTING = (WorkspaceStatus.SLEEPING, WorkspaceStatus.ARCHIVED)
LONGEST_ERROR = 2_000
LOOKED_BACK = 16
"""Events before a batch that are searched for a turn's result, which comes right before its end."""
UNSAID = "Its turn failed; see the replica's chat."


def follow_events(
    connection: Connection, workspace_id: str, events: Sequence[NewEvent], now: str
) -> None:
    """Update the runs of a workspace for events that are being appended. Cheap without any."""
    relevant = [event for event in events if event.type in HEARD and _moves(event)]
    runs = open_in(connection, workspace_id) if relevant else []
    if not runs:
        return
    for event in relevant:
        match event.type:
            case EventType.ENGINE_STATUS_CHANGED:
                _follow_state(connection, workspace_id, runs, event.payload, now)
            case EventType.CHAT_TURN_COMPLETED:
                results = _results(connection, workspace_id, events)
                _follow_turn(connection, runs, event.payload, results, now)
            case _:
                _follow_chat(connection, runs, event, now)


def _moves(event: NewEvent) -> bool:
    """Return whether runs may be affected; a changed chat affects them only by canceled messages."""
    return event.type != EventType.CHAT_UPDATED or bool(event.payload.get(CANCELED_IDS))


def end_runs_of_workspace(connection: Connection, workspace_id: str, now: str) -> None:
    """End the runs of a workspace that is just being deleted."""
    for run in open_in(connection, workspace_id):
        finish(connection, run["id"], GONE, now, ExecutionReason.DELETED)


def _follow_state(
    connection: Connection,
    workspace_id: str,
    runs: Sequence[RowMapping],
    payload: Mapping[str, Any],
    now: str,
) -> None:
    row = find_workspace(connection, workspace_id)
    # A state that an engine reports counts only when it matches the row.
    if row is None or payload.get("workspaceStatus") != row.status:
        return
    for run in runs:
        if row.status == WorkspaceStatus.ACTIVE:
            mark_running(connection, run["id"], now)
        elif row.status == WorkspaceStatus.ERROR:
            finish(connection, run["id"], f"Its replica failed: {row.error}", now)
        elif row.status in RESTING and _was_delivered(connection, run):
            finish(connection, run["id"], PUT_TO_REST, now, ExecutionReason.INTERRUPTED)


def _was_delivered(connection: Connection, run: RowMapping) -> bool:
    """Return whether the engine had the message: otherwise it waits for the next engine."""
    state = state_of(connection, run["chat_id"], run["message_id"])
    return state != MessageState.ACCEPTED


def _follow_turn(
    connection: Connection,
    runs: Sequence[RowMapping],
    payload: Mapping[str, Any],
    results: Mapping[Any, TurnResult],
    now: str,
) -> None:
    for run in runs:
        if run["chat_id"] != payload.get("chatId") or not _is_settled(connection, run):
            continue
        if payload.get("isComplete"):
            finish(connection, run["id"], None, now)
        else:
            error, reason = _failure(results.get(payload.get("messageId")))
            finish(connection, run["id"], error, now, reason)


def _is_settled(connection: Connection, run: RowMapping) -> bool:
    """Return whether the run's message is done, and no active goal continues the chat."""
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
                finish(connection, run["id"], CHAT_GONE, now, ExecutionReason.DELETED)
        elif run["message_id"] in canceled:
            finish(connection, run["id"], CANCELED, now, ExecutionReason.CANCELED)


def _failure(result: TurnResult | None) -> tuple[str, ExecutionReason | None]:
    """Return the error of a run whose turn failed, and the reason when a person ended the turn."""
    if result is None:
        return UNSAID, None
    if result.stopped:
        return PUT_TO_REST, ExecutionReason.INTERRUPTED
    if result.error:
        return f"Its turn failed: {result.error}"[:LONGEST_ERROR], None
    if result.stop_reason == "cancelled":
        return INTERRUPTED, ExecutionReason.INTERRUPTED
    return UNSAID, None


def _results(
    connection: Connection, workspace_id: str, events: Sequence[NewEvent]
) -> dict[Any, TurnResult]:
    """Return the turn results among the events, and of a turn whose end comes in a later batch."""
    before = last_index(connection, workspace_id) - len(events)
    earlier = read_after(connection, workspace_id, max(0, before - LOOKED_BACK), LOOKED_BACK)
    deltas = [
        *(
            json.loads(state.payload_json)
            for state in earlier
            if state.type == EventType.CHAT_TURN_DELTA
        ),
        *(event.payload for event in events if event.type == EventType.CHAT_TURN_DELTA),
    ]
    results: dict[Any, TurnResult] = {}
    for delta in deltas:
        agent_event = cast("dict[str, Any]", delta.get("event") or {})
        if agent_event.get("type") != AgentEventType.TURN_RESULT:
            continue
        try:
            result = TurnResult.model_validate(agent_event.get("payload"))
        except ValidationError:
            continue  # the run fails anyway, without its turn's own error
        results[delta.get("messageId")] = result
    return results
