"""What an engine must be told before it goes on: what was changed while it did not run.

A queue is changed in the rows alone while the workspace is not active, and in the engine alone
while it is. An engine therefore holds its queues when it starts, until it was told here.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection

from quarterdeck.engine.link import EngineLink, EngineRefused
from quarterdeck.service.fleet.site import Site
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.chats import (
    Deletion,
    change_chat,
    deletion_of,
    unfinished_deletions,
)
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.messages import canceled_among, waiting_ids
from quarterdeck.wire.engine_chats import (
    CancelQueued,
    DeleteEngineChat,
    HeldQueues,
    OrderQueue,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType


async def settle(site: Site, calls: EngineLink) -> bool:
    """Tells the engine of deleted chats, canceled messages and new orders.

    Returns whether it is to be released: when it has what waits here, which may go before what
    waits there.

    Call when the workspace is active in its row: from then on nothing is changed without it.

    Raises:
        EngineError: the engine was lost, or refused.
        TimeoutError: it does not answer, or its journal does not come.
    """
    limit = site.tools.settings.call_limit
    database = site.tools.context.database
    async with asyncio.timeout(limit):
        held = await _held(calls)
        if held.held:
            await site.mark.reached(calls.hello.last_index)
    ended = await until_stored(lambda: database.read(lambda c: unfinished_deletions(c, site.id)))
    async with asyncio.timeout(limit):
        for chat_id, deletion in ended:
            await end_chat(site, calls, chat_id, deletion)
        if held.held:
            gone = {chat_id for chat_id, _ in ended}
            for chat_id, queue in held.queues.items():
                if chat_id not in gone:
                    await _settle_queue(site, calls, chat_id, [str(one) for one in queue])
    return held.held


async def end_chat(site: Site, link: EngineLink, chat_id: str, deletion: str) -> None:
    """Ends a deleted chat in the engine, and sees to it that the log tells its end once.

    Raises:
        EngineError: as `settle`.
    """
    told = deletion == Deletion.TOLD
    answer = await link.chat_delete(DeleteEngineChat(chat_id=UUID(chat_id), told=told))
    await site.mark.reached(answer.index)
    event_log = site.tools.context.event_log
    await until_stored(lambda: event_log.write(lambda w: _ended(w, site.id, chat_id)))


def _ended(writer: LogWriter, workspace_id: str, chat_id: str) -> None:
    """The engine has no such chat any more; when it never had it, its end is told here."""
    deletion = deletion_of(writer.connection, chat_id)
    if deletion in (None, Deletion.GONE):
        return
    change_chat(writer.connection, workspace_id, chat_id, deletion=Deletion.GONE)
    if deletion == Deletion.ASKED:
        writer.append(workspace_id, [NewEvent(EventType.CHAT_DELETED, {"chatId": chat_id})])


async def _held(calls: EngineLink) -> HeldQueues:
    try:
        return await calls.queue_held()
    except EngineRefused as e:
        if e.code != ErrorCode.NOT_FOUND:
            raise
        return HeldQueues(held=False)  # an engine of an earlier version, which runs on


async def _settle_queue(site: Site, calls: EngineLink, chat_id: str, queue: Sequence[str]) -> None:
    def read(connection: Connection) -> tuple[list[str], list[str]]:
        return canceled_among(connection, queue), waiting_ids(connection, chat_id)

    canceled, waiting = await until_stored(lambda: site.tools.context.database.read(read))
    if canceled:
        await calls.queue_cancel(CancelQueued(chat_id=UUID(chat_id), message_ids=_ids(canceled)))
    left = [one for one in queue if one not in canceled]
    if left != [one for one in waiting if one in left]:
        await calls.queue_order(OrderQueue(chat_id=UUID(chat_id), message_ids=_ids(waiting)))


def _ids(texts: Sequence[str]) -> list[UUID]:
    return [UUID(text) for text in texts]
