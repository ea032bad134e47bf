"""Messages that wait, put into the running turn or joined to one, by a person."""

from collections.abc import Sequence
from uuid import UUID, uuid4

from sqlalchemy import Connection

from quarterdeck.engine.link import EngineLink
from quarterdeck.service.chats.delivery import as_delivery, hand_over_up_to, open_chat, upload_paths
from quarterdeck.service.chats.joining import (
    JoinedMessage,
    check_parts,
    join,
    read_parts,
    store_joined,
)
from quarterdeck.service.chats.messages import (
    append_change,
    message_started,
    queue_answer,
    require_waiting,
)
from quarterdeck.service.chats.rows import (
    MessageState,
    Undelivered,
    state_of,
    waiting_ids,
)
from quarterdeck.service.chats.service import change_somewhere, known_chat
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.workspace_manager import WorkspaceManager
from quarterdeck.service.replicas.queued_canvas import write_queued
from quarterdeck.service.replicas.rows import WorkspaceRow
from quarterdeck.wire.chats import JoinQueue, QueueAnswer, SteerAnswer
from quarterdeck.wire.engine import JoinQueued, Journaled, Steered, SteerQueued
from quarterdeck.wire.errors import ErrorCode


async def steer_queued(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, message_id: UUID
) -> SteerAnswer:
    """Put a message into the running turn; one that has only just been sent is delivered first.

    Raises:
        ApiError: NOT_FOUND when it is not in the queue; CONFLICT when it has started, no turn runs, a
            question is open, or the turn cannot take it; WORKSPACE_NOT_ACTIVE.
    """
    await require_waiting(context, row, chat_id, message_id)

    async def request(link: EngineLink) -> Steered:
        place = (row.id, str(chat_id), str(message_id))
        await hand_over_up_to(context.database, link, *place, context.clock)
        return await link.queue_steer(SteerQueued(chat_id=chat_id, message_id=message_id))

    steered = await fleet.of(row.id).change(row, request)
    answer = await queue_answer(context, chat_id)
    return SteerAnswer(queue=answer.queue, interrupted=steered.interrupted)


async def join_queued(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, body: JoinQueue
) -> QueueAnswer:
    """Join messages to one, by default all that wait; it has a new id and the first one's place.

    Raises:
        ApiError: NOT_FOUND when one is not in the queue; CONFLICT when one has started, or they cannot
            be joined; INVALID_REQUEST for fewer than two.
    """
    message_id = uuid4()

    def plan(connection: Connection) -> JoinedMessage:
        known_chat(connection, row.id, chat_id)
        parts = _chosen(connection, row.id, str(chat_id), body.message_ids)
        read = read_parts(connection, row.id, str(chat_id), parts)
        check_parts(read)
        return join(read, str(message_id))

    def in_rows(writer: LogWriter) -> bool:
        joined = plan(writer.connection)
        store_joined(writer.connection, row.id, joined)
        append_change(writer, row.id, str(chat_id), list(joined.parts))
        return True

    async def in_engine(supervisor: WorkspaceManager, active: WorkspaceRow) -> bool:
        chat, joined = await context.database.read(
            lambda c: (known_chat(c, row.id, chat_id), plan(c))
        )
        message = joined.message
        stored = Undelivered(message.id, message.chat_id, 0, message.text, message.delivery_json)
        parts = [UUID(part) for part in joined.parts]

        async def request(link: EngineLink) -> Journaled:
            refused = await write_queued(context.database, link, row.id, context.clock)
            await open_chat(link, chat)
            uploads = await upload_paths(context.database, row.id, stored, refused)
            call = JoinQueued(
                chat_id=chat_id, message_ids=parts, message=as_delivery(stored, uploads)
            )
            return await link.queue_join(call)

        await supervisor.change(active, request)
        return True

    await change_somewhere(context, fleet, row.id, in_rows, in_engine)
    return await queue_answer(context, chat_id)


def _chosen(
    connection: Connection, workspace_id: str, chat_id: str, ids: Sequence[UUID] | None
) -> list[str]:
    """Return the messages to join.

    Raises:
        ApiError: as `join_queued`.
    """
    waiting = waiting_ids(connection, workspace_id, chat_id)
    chosen = waiting if ids is None else list(dict.fromkeys(map(str, ids)))
    for message_id in chosen:
        if message_id not in waiting:
            state = state_of(connection, chat_id, message_id)
            if state in (MessageState.STARTED, MessageState.DONE):
                raise message_started()
            raise ApiError(
                ErrorCode.NOT_FOUND, "The queue has no message with this id.", "messageIds"
            )
    if len(chosen) < 2:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Two messages can be joined, not fewer.", "messageIds"
        )
    return chosen
