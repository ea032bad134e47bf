"""The end of a chat, in every state of the replica.

The row says at once that the chat is gone; then the engine is told, now or when it next runs
(`fleet.settling`). What was said in it stays in the log.
"""

import logging
from uuid import UUID

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.places import current, known_chat
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.records.chats import Deletion, change_chat
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.messages import MessageState, move_message, waiting_ids
from quarterdeck.service.records.workspaces import BUSY, WorkspaceRow
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import WorkspaceStatus

log = logging.getLogger(__name__)


async def delete_chat(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID
) -> None:
    """Interrupts the chat's turn, cancels what waits, and takes the chat away.

    Raises:
        ApiError: NOT_FOUND.
    """
    row = await context.event_log.write(lambda writer: _mark(writer, row.id, str(chat_id)))
    if row.status != WorkspaceStatus.ACTIVE:
        return
    try:
        await fleet.of(row.id).end_chat(row, str(chat_id))
    except ApiError as e:
        log.warning("A deleted chat of %s has not ended yet: %s", row.id, e.message)


def _mark(writer: LogWriter, workspace_id: str, chat_id: str) -> WorkspaceRow:
    connection = writer.connection
    row = current(connection, workspace_id)
    known_chat(connection, workspace_id, chat_id)
    for message_id in waiting_ids(connection, chat_id):
        move_message(connection, workspace_id, message_id, MessageState.CANCELED)
    # A running engine tells the end itself, after the last that the chat said.
    told = row.status not in BUSY
    deletion = Deletion.TOLD if told else Deletion.ASKED
    change_chat(connection, workspace_id, chat_id, deletion=deletion)
    if told:
        writer.append(workspace_id, [NewEvent(EventType.CHAT_DELETED, {"chatId": chat_id})])
    return row
