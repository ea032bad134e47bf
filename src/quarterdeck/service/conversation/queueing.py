"""The queue of a chat changed by hand, in every state of the replica.

Of an active replica the engine decides: it alone knows what has started, and its journal brings
the change into the rows. Of any other the rows are changed, and the engine is told before it runs
anything again (`fleet.settling`).
"""

from collections.abc import Sequence
from uuid import UUID

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.places import change_somewhere, known_chat
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.supervisor import Supervisor
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.messages import (
    MessageState,
    move_message,
    order_waiting,
    queue_of,
    state_of,
    waiting_ids,
)
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine_chats import CancelQueued, OrderQueue
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import ChatChanged, EventType
from quarterdeck.wire.messages import Queue, QueueAnswer, ReorderQueue


async def read_queue(context: ServiceContext, row: WorkspaceRow, chat_id: UUID) -> Queue:
    """Messages of a chat that wait for their turn.

    Raises:
        ApiError: NOT_FOUND.
    """
    chat, waiting = await context.database.read(
        lambda c: (known_chat(c, row.id, chat_id), queue_of(c, str(chat_id)))
    )
    return Queue(chat_id=chat_id, processing=chat.processing, queue=waiting)


async def clear_queue(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID
) -> QueueAnswer:
    """Cancels everything that waits; what starts in the meantime runs.

    Raises:
        ApiError: NOT_FOUND.
    """
    waiting = await context.database.read(
        lambda c: (known_chat(c, row.id, chat_id), waiting_ids(c, str(chat_id)))[1]
    )
    await _cancel(context, fleet, row.id, chat_id, waiting)
    return await _answer(context, chat_id)


async def remove_queued(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, message_id: UUID
) -> QueueAnswer:
    """Cancels one message.

    Raises:
        ApiError: NOT_FOUND when it is not in the queue, CONFLICT when it has started.
    """
    await _require_waiting(context, row, chat_id, message_id)
    started = await _cancel(context, fleet, row.id, chat_id, [str(message_id)])
    if started:
        raise _started()
    return await _answer(context, chat_id)


async def reorder_queue(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, body: ReorderQueue
) -> QueueAnswer:
    """Gives a message another place, from 1; one behind the end is the last.

    Raises:
        ApiError: NOT_FOUND when it is not in the queue, CONFLICT when it has started.
    """
    await _require_waiting(context, row, chat_id, body.message_id)
    wanted, chat = str(body.message_id), str(chat_id)

    def in_rows(writer: LogWriter) -> bool:
        waiting = waiting_ids(writer.connection, chat)
        if wanted in waiting:
            order_waiting(writer.connection, chat, _moved(waiting, wanted, body.position))
            _tell(writer, row.id, chat, [])
        return wanted in waiting

    async def in_engine(supervisor: Supervisor, active: WorkspaceRow) -> bool:
        waiting = await context.database.read(lambda c: waiting_ids(c, chat))
        order = OrderQueue(
            chat_id=chat_id, message_ids=_ids(_moved(waiting, wanted, body.position))
        )
        changed = await supervisor.change(active, lambda link: link.queue_order(order))
        return body.message_id not in changed.started

    if not await change_somewhere(context, fleet, row.id, in_rows, in_engine):
        raise _started()
    return await _answer(context, chat_id)


async def _cancel(
    context: ServiceContext, fleet: Fleet, workspace_id: str, chat_id: UUID, ids: Sequence[str]
) -> list[UUID]:
    """Cancels messages; returns those that had started."""
    chat = str(chat_id)

    def in_rows(writer: LogWriter) -> list[UUID]:
        waiting = waiting_ids(writer.connection, chat)
        gone = [one for one in ids if one in waiting]
        for message_id in gone:
            move_message(writer.connection, workspace_id, message_id, MessageState.CANCELED)
        if gone:
            _tell(writer, workspace_id, chat, gone)
        return _ids([one for one in ids if one not in waiting])

    async def in_engine(supervisor: Supervisor, active: WorkspaceRow) -> list[UUID]:
        request = CancelQueued(chat_id=chat_id, message_ids=_ids(ids))
        return (await supervisor.change(active, lambda link: link.queue_cancel(request))).started

    return await change_somewhere(context, fleet, workspace_id, in_rows, in_engine)


def _tell(writer: LogWriter, workspace_id: str, chat_id: str, canceled: list[str]) -> None:
    """The event that the engine would have told."""
    chat = known_chat(writer.connection, workspace_id, chat_id)
    changed = ChatChanged(
        chat=EventChat.model_validate(chat.model_dump()),
        queue=waiting_ids(writer.connection, chat_id),
        canceled_message_ids=canceled,
    )
    payload = changed.model_dump(mode="json", exclude={"client_request_id"})
    writer.append(workspace_id, [NewEvent(EventType.CHAT_UPDATED, payload)])


async def _require_waiting(
    context: ServiceContext, row: WorkspaceRow, chat_id: UUID, message_id: UUID
) -> None:
    state = await context.database.read(
        lambda c: (known_chat(c, row.id, chat_id), state_of(c, str(chat_id), str(message_id)))[1]
    )
    if state in (MessageState.STARTED, MessageState.DONE):
        raise _started()
    if state in (None, MessageState.CANCELED):
        raise ApiError(ErrorCode.NOT_FOUND, "The queue has no message with this id.", "messageId")


async def _answer(context: ServiceContext, chat_id: UUID) -> QueueAnswer:
    waiting = await context.database.read(lambda c: queue_of(c, str(chat_id)))
    return QueueAnswer(success=True, queue=waiting)


def _moved(waiting: Sequence[str], message_id: str, position: int) -> list[str]:
    others = [one for one in waiting if one != message_id]
    return [*others[: position - 1], message_id, *others[position - 1 :]]


def _ids(texts: Sequence[str]) -> list[UUID]:
    return [UUID(text) for text in texts]


def _started() -> ApiError:
    return ApiError(
        ErrorCode.CONFLICT, "The message has started. Interrupt the chat to stop its turn."
    )
