"""Reconcile records with the running engine."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import Connection

from quarterdeck.engine.link import EngineLink, EngineRefusedError
from quarterdeck.service.chats.delivery import open_chat
from quarterdeck.service.chats.rows import (
    Deletion,
    MessageState,
    change_chat,
    chosen_settings,
    deletion_of,
    ended_among,
    find_chat,
    forget_chosen,
    forget_notice,
    list_chats,
    messages_in,
    move_message,
    notices,
    take_back,
    unfinished_deletions,
    waiting_ids,
)
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.fleet.runtime import WorkspaceRuntime
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine import (
    CancelQueued,
    ChangeSettings,
    DeleteEngineChat,
    GiveNotice,
    HeldQueues,
    OrderQueue,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType, TurnCompleted, TurnDelta
from quarterdeck.wire.history import AgentEvent, AgentEventType, TurnResult

LOST = (
    "The engine's state was lost in the middle of this turn. Look at what it has done, and send the "
    "message again if that is not enough."
)
LOST_ELSEWHERE = (
    "This turn was lost with its node or volume. Look at what was restored, and send the message "
    "again if you want it."
)
"""Where files are not on the service's machine."""

log = logging.getLogger(__name__)


async def settle(site: WorkspaceRuntime, calls: EngineLink) -> bool:
    """Send the engine deleted chats, canceled messages, new orders, settings and notices to agents.

    Returns whether its queue is to be released after it has the messages that wait here, which may
    come before its own.

    Call when the workspace is active in its row: from then on every change goes through the engine.

    Raises:
        EngineError: the engine was lost, or refused.
        TimeoutError: it does not answer, or its journal does not come.
    """
    limit = site.tools.settings.call_limit
    database = site.tools.context.database
    async with asyncio.timeout(limit):
        held_queues = await _held_queues(calls)
        if held_queues.held:
            await site.mark.reached(max(calls.hello.last_index, held_queues.index))
    returned = await _recover(site, held_queues)
    ended = await retry_until_stored(
        lambda: database.read(lambda c: unfinished_deletions(c, site.id))
    )
    async with asyncio.timeout(limit):
        for chat_id, deletion in ended:
            await end_chat(site, calls, chat_id, deletion)
        await _give_settings(database, site.id, calls)
        await give_notices(database, site.id, calls)
        if held_queues.held:
            ended_ids = {chat_id for chat_id, _ in ended}
            queues = {str(chat_id): queue for chat_id, queue in held_queues.queues.items()}
            for chat_id, queue in queues.items():
                if chat_id not in ended_ids:
                    waiting = [str(message) for message in queue]
                    await _settle_queue(site, calls, chat_id, waiting, chat_id in returned)
    return held_queues.held


async def _recover(site: WorkspaceRuntime, held_queues: HeldQueues) -> set[str]:
    """Repair the rows when the engine has lost its state.

    Safe to repeat. Returns the chats in which messages are to be delivered again.
    """
    known = held_queues.open
    if not held_queues.held or known is None:
        return set()  # an engine that did not restart has its state
    event_log = site.tools.context.event_log
    lost = LOST if (await site.driver()).saved_work is None else LOST_ELSEWHERE
    queued = {str(message) for queue in held_queues.queues.values() for message in queue}
    running = {str(chat_id): str(message_id) for chat_id, message_id in known.items()}
    return await retry_until_stored(
        lambda: event_log.write(lambda w: _put_right(w, site.id, queued, running, lost))
    )


def _put_right(
    writer: LogWriter, workspace_id: str, queued: set[str], running: dict[str, str], lost: str
) -> set[str]:
    connection = writer.connection
    delivered = messages_in(connection, workspace_id, MessageState.DELIVERED)
    waiting = [(id, chat_id) for id, chat_id in delivered if id not in queued]
    take_back(connection, [id for id, _ in waiting])
    started = messages_in(connection, workspace_id, MessageState.STARTED)
    ended = [(id, chat_id) for id, chat_id in started if running.get(chat_id) != id]
    for message_id, chat_id in ended:
        move_message(connection, workspace_id, message_id, MessageState.DONE)
        writer.append(workspace_id, _lost_turn(chat_id, message_id, lost))
    for chat in list_chats(connection, workspace_id):
        if chat.processing and str(chat.id) not in running:
            _rest(writer, workspace_id, str(chat.id))
    if waiting or ended:
        log.error(
            "The engine of %s has lost its state: %d messages are delivered again, %d turns ended",
            workspace_id,
            len(waiting),
            len(ended),
        )
    return {chat_id for _, chat_id in waiting}


def _lost_turn(chat_id: str, message_id: str, lost: str) -> list[NewEvent]:
    """Return the events with which an engine ends an interrupted turn."""
    result = TurnResult(message_id=message_id, stop_reason="failed", error=lost)
    event = AgentEvent(
        timestamp=utc_now(), type=AgentEventType.TURN_RESULT, payload=_payload(result)
    )
    delta = TurnDelta(chat_id=chat_id, message_id=message_id, event=event)
    completed = TurnCompleted(chat_id=chat_id, message_id=message_id, is_complete=False)
    return [
        NewEvent(EventType.CHAT_TURN_DELTA, _payload(delta)),
        NewEvent(EventType.CHAT_TURN_COMPLETED, _payload(completed)),
    ]


def _rest(writer: LogWriter, workspace_id: str, chat_id: str) -> None:
    """Note that no turn runs in a chat any more."""
    rest = {"processing": False, "awaiting_input": False, "processing_since": None}
    change_chat(writer.connection, workspace_id, chat_id, **rest)
    chat = find_chat(writer.connection, workspace_id, chat_id)
    assert chat is not None  # it was listed just now
    event_chat = EventChat.model_validate(chat.model_dump())
    writer.append(workspace_id, [NewEvent(EventType.CHAT_UPDATED, {"chat": _payload(event_chat)})])


def _payload(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True)


async def give_notices(database: Database, workspace_id: str, link: EngineLink) -> None:
    """Give the engine the notices for agents' next messages. It is safe to repeat.

    Raises:
        EngineGoneError: the link was lost.
    """
    waiting = await retry_until_stored(lambda: database.read(lambda c: notices(c, workspace_id)))
    for chat_id, text in waiting.items():
        try:
            await link.chat_notice(GiveNotice(chat_id=UUID(chat_id), text=text))
        except (
            EngineRefusedError
        ) as e:  # a full disk, or an earlier version: the next start retries
            log.warning("A notice to an agent was refused: %s", e.message)
            continue
        given = partial(forget_notice, chat_id=chat_id, text=text)
        await retry_until_stored(partial(database.write, given))


async def _give_settings(database: Database, workspace_id: str, link: EngineLink) -> None:
    """Give the engine the settings that were chosen without it. It is safe to repeat.

    Raises:
        EngineGoneError: the link was lost.
    """
    chosen = await retry_until_stored(
        lambda: database.read(lambda c: chosen_settings(c, workspace_id))
    )
    for chat_id, text in chosen.items():
        chat = await retry_until_stored(
            partial(database.read, partial(find_chat, workspace_id=workspace_id, chat_id=chat_id))
        )
        if chat is None:
            continue  # deleted in the meantime
        try:
            await open_chat(link, chat)
            await link.chat_settings(ChangeSettings.model_validate_json(text))
        except EngineRefusedError as e:  # as a notice
            log.warning("The settings of a chat were refused: %s", e.message)
            continue
        given = partial(forget_chosen, chat_id=chat_id, chosen=text)
        await retry_until_stored(partial(database.write, given))


async def end_chat(site: WorkspaceRuntime, link: EngineLink, chat_id: str, deletion: str) -> None:
    """End a deleted chat in the engine, and append its end to the log once.

    Raises:
        EngineError: as `settle`.
    """
    is_logged = deletion == Deletion.LOGGED
    answer = await link.chat_delete(DeleteEngineChat(chat_id=UUID(chat_id), logged=is_logged))
    await site.mark.reached(answer.index)
    event_log = site.tools.context.event_log
    await retry_until_stored(lambda: event_log.write(lambda w: _ended(w, site.id, chat_id)))


def _ended(writer: LogWriter, workspace_id: str, chat_id: str) -> None:
    """Note that the engine no longer has the chat; if it never had it, append its end here."""
    deletion = deletion_of(writer.connection, chat_id)
    if deletion in (None, Deletion.ENDED):
        return
    change_chat(writer.connection, workspace_id, chat_id, deletion=Deletion.ENDED)
    if deletion == Deletion.REQUESTED:
        writer.append(workspace_id, [NewEvent(EventType.CHAT_DELETED, {"chatId": chat_id})])


async def _held_queues(calls: EngineLink) -> HeldQueues:
    try:
        return await calls.queue_held()
    except EngineRefusedError as e:
        if e.code != ErrorCode.NOT_FOUND:
            raise
        return HeldQueues(held=False)  # an engine of an earlier version, which did not restart


async def _settle_queue(
    site: WorkspaceRuntime, calls: EngineLink, chat_id: str, queue: Sequence[str], incomplete: bool
) -> None:
    """Cancel and order what waits in the engine; `incomplete` when more of the queue follows.

    An engine whose journal has lost its end may wait with messages that have run.
    """

    def read(connection: Connection) -> tuple[list[str], list[str]]:
        return ended_among(connection, site.id, queue), waiting_ids(connection, site.id, chat_id)

    queue = list(dict.fromkeys(queue))  # an engine may repeat one a million times
    canceled, waiting = await retry_until_stored(lambda: site.tools.context.database.read(read))
    if canceled:
        await calls.queue_cancel(CancelQueued(chat_id=UUID(chat_id), message_ids=_ids(canceled)))
    left = dict.fromkeys(queue)
    for message in canceled:
        del left[message]
    if incomplete or list(left) != [message for message in waiting if message in left]:
        await calls.queue_order(OrderQueue(chat_id=UUID(chat_id), message_ids=_ids(waiting)))


def _ids(texts: Sequence[str]) -> list[UUID]:
    return [UUID(text) for text in texts]
