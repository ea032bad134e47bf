"""Accepting a message: stored before it is answered, in whatever state the replica is.

| state | answer | also |
|---|---|---|
| active | `sent`, or `queued` behind unfinished messages of the chat | |
| preparing | `waking` | |
| sleeping, archived | `waking` | the replica is woken in the same transaction |
| error | WORKSPACE_ERROR_STATE | nothing is stored |
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.canvas.queued import claim_uploads, uploads_for_message
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.agents import usable_agent
from quarterdeck.service.conversation.composing import Composed, compose, email_of
from quarterdeck.service.conversation.making import store_chat
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.transitions import RESTING, wake_up
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.chats import change_chat, find_chat, list_chats
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.messages import UNFINISHED, add_message, count_in
from quarterdeck.service.records.workspaces import (
    WorkspaceRow,
    change_workspace,
    find_workspace,
)
from quarterdeck.wire.agents import BUILTIN
from quarterdeck.wire.chats import Chat, EventChat
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.messages import Delivery, MessageAccepted, SendMessage
from quarterdeck.wire.replicas import WorkspaceStatus


@dataclass(frozen=True)
class Sending:
    """One request: what is sent, by whom, and where to."""

    workspace_id: str
    body: SendMessage
    composed: Composed
    caller: Caller
    moment: datetime
    limit: int
    stopping: bool

    @property
    def now(self) -> str:
        return moment_text(self.moment)


async def send_message(
    context: ServiceContext, fleet: Fleet, caller: Caller, workspace_id: str, body: SendMessage
) -> MessageAccepted:
    """Stores a message, and wakes the replica when it rests.

    Without `chat_id` it goes to the replica's first chat; with `coding_agent` as well, to the first
    chat of that agent, which is made if there is none. A `coding_agent` that is not the named
    chat's is refused: a chat runs one agent.

    Raises:
        ApiError: INVALID_REQUEST, NOT_FOUND for an unknown chat, WORKSPACE_ERROR_STATE,
            WORKSPACE_LIMIT_REACHED when the replica would have to be woken.
    """
    if body.coding_agent is not None:
        await usable_agent(
            context,
            caller.organization_id,
            caller.user_id,
            body.coding_agent,
            "coding_agent",
            workspace_id,
        )
    sending = plan_message(context, fleet, caller, workspace_id, body)
    accepted = await context.event_log.write(lambda writer: store_message(writer, sending))
    begin_delivery(fleet, workspace_id)
    return accepted


def plan_message(
    context: ServiceContext, fleet: Fleet, caller: Caller, workspace_id: str, body: SendMessage
) -> Sending:
    """Checks a message, but for its agent.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    composed = compose(body)
    _check(composed, body)
    now = context.clock()
    limit, stopping = fleet.settings.active_limit, fleet.of(workspace_id).stopping
    return Sending(workspace_id, body, composed, caller, now, limit, stopping)


def begin_delivery(fleet: Fleet, workspace_id: str) -> None:
    """Sees to it that what was stored is delivered."""
    supervisor = fleet.of(workspace_id)
    supervisor.begin()
    supervisor.nudge()


def _check(composed: Composed, body: SendMessage) -> None:
    if not composed.text.strip() and not body.canvas_upload_ids:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "A message needs text or uploads.", "message: empty"
        )


def store_message(writer: LogWriter, sending: Sending) -> MessageAccepted:
    """Stores a message, and wakes the replica when it rests.

    Raises:
        ApiError: as `send_message`.
    """
    connection = writer.connection
    row = find_workspace(connection, sending.workspace_id)
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")
    if row.status == WorkspaceStatus.ERROR:
        raise ApiError(
            ErrorCode.WORKSPACE_ERROR_STATE,
            "The replica has failed. Wake it to try again, then send the message.",
            row.error,
        )
    chat = _chat(writer, row, sending)
    named = list(dict.fromkeys(sending.body.canvas_upload_ids or ()))
    uploads = uploads_for_message(connection, row.id, named, sending.moment)
    ahead = count_in(connection, str(chat.id), UNFINISHED)
    model = row.model if chat.provider == row.coding_agent else None
    email = email_of(connection, sending.caller)
    message = sending.composed.placed(
        str(chat.id), sending.caller, sending.now, model, email, named
    )
    add_message(connection, row.id, message)
    claim_uploads(connection, uploads, message.id)
    if chat.plan_ready:
        _answer_plan(writer, row.id, chat)
    change_workspace(connection, row.id, last_activity_at=sending.now)
    if row.status in RESTING:
        wake_up(writer, row, sending.limit)
    if row.status != WorkspaceStatus.ACTIVE or sending.stopping:
        status, position = Delivery.WAKING, None
    elif ahead:
        # Of those ahead, the first runs or is about to: it is not in the queue.
        status, position = Delivery.QUEUED, ahead
    else:
        status, position = Delivery.SENT, None
    return MessageAccepted(
        status=status, message_id=UUID(message.id), position=position, chat_id=chat.id
    )


def _answer_plan(writer: LogWriter, workspace_id: str, chat: Chat) -> None:
    """The plan waits no longer, although the engine that will tell so may have to be started."""
    change_chat(writer.connection, workspace_id, str(chat.id), plan_ready=False)
    told = EventChat.model_validate({**chat.model_dump(), "plan_ready": False})
    payload = {"chat": told.model_dump(mode="json")}
    writer.append(workspace_id, [NewEvent(EventType.CHAT_UPDATED, payload)])


def _chat(writer: LogWriter, row: WorkspaceRow, sending: Sending) -> Chat:
    connection = writer.connection
    wanted = sending.body.coding_agent
    if sending.body.chat_id is not None:
        return _named(connection, row, str(sending.body.chat_id), wanted)
    for chat in list_chats(connection, row.id):
        if wanted in (None, chat.provider):
            return chat
    provider = wanted or row.coding_agent or BUILTIN
    return store_chat(writer, row.id, str(uuid4()), provider, sending.now)


def _named(connection: Connection, row: WorkspaceRow, chat_id: str, wanted: str | None) -> Chat:
    chat = find_chat(connection, row.id, chat_id)
    if chat is None:
        raise ApiError(ErrorCode.NOT_FOUND, "The replica has no chat with this id.")
    if wanted not in (None, chat.provider):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"This chat runs {chat.provider}. Leave out chat_id to use another agent.",
            "coding_agent",
        )
    return chat
