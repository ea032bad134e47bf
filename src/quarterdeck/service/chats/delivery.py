"""Delivers accepted messages to a workspace's engine.

In order within a chat, at least once: the engine recognizes a repeated message by its id. A
message leaves the state `accepted` only when the engine's journal says so, so whichever process is
killed, it is either still here to be delivered or already there.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from time import monotonic

from pydantic_core import from_json

from quarterdeck.engine.link import EngineLink, EngineRefusedError
from quarterdeck.service.chats.rows import UPLOADS, Undelivered, find_chat, undelivered
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.errors import UnknownWorkspaceError
from quarterdeck.service.event_log import EventLog
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.replicas.queued_canvas import find_uploads, write_queued
from quarterdeck.wire.chats import Chat, EventGoal
from quarterdeck.wire.engine import DeliverMessage, OpenChat
from quarterdeck.wire.events import EventType

log = logging.getLogger(__name__)

_LOOSE_UPLOADS = "uploads"
"""Represents uploads among the ids of chats that wait for another attempt."""


class MessageDelivery:
    """Delivers for one workspace, on one link at a time.

    `pauses` are the seconds between attempts for a message that the engine refuses, `limit` those
    for an engine's answer.
    """

    def __init__(
        self,
        database: Database,
        event_log: EventLog,
        workspace_id: str,
        pauses: Sequence[float],
        limit: float,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._event_log = event_log
        self._workspace_id = workspace_id
        self._pauses = pauses
        self._limit = limit
        self._clock = clock
        self._called = asyncio.Event()
        self._refused: dict[str, int] = {}
        self._retry_at: dict[str, float] = {}
        self.paused = False
        """Set while the engine is being stopped: messages accepted now wait for the next one."""

    def nudge(self) -> None:
        """Note that a message was accepted."""
        self._called.set()

    async def run(
        self, link: EngineLink, release: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Deliver forever; call `release` once, when the messages that wait now were delivered.

        Raises:
            EngineGoneError: the link was lost.
            TimeoutError: the engine does not answer.
        """
        handed: set[str] = set()
        self._retry_at.clear()
        while True:
            self._called.clear()
            waiting = await retry_until_stored(self._waiting)
            handed &= {message.id for message in waiting}
            if not self.paused:
                await self._write_uploads(link)
                await self._deliver(link, waiting, handed)
            if release is not None:
                async with asyncio.timeout(self._limit):
                    await release()
                release = None
            await self._next_call()

    async def _write_uploads(self, link: EngineLink) -> None:
        """Write the uploads that no message names, or not yet; messages wait for their own."""
        self._retry_at.pop(_LOOSE_UPLOADS, None)
        place = (self._database, link, self._workspace_id)
        refused = await write_queued(*place, self._clock, self._limit)
        for error in refused.values():
            log.warning("An upload was refused: %s", error.message)
            self._retry_at[_LOOSE_UPLOADS] = monotonic() + self._pauses[-1]

    async def _waiting(self) -> list[Undelivered]:
        return await self._database.read(lambda c: undelivered(c, self._workspace_id))

    async def _next_call(self) -> None:
        soonest = min(self._retry_at.values(), default=None)
        delay = None if soonest is None else max(soonest - monotonic(), 0)
        try:
            # Python 3.11's wait_for loses a cancellation that comes together with the event.
            async with asyncio.timeout(delay):
                await self._called.wait()
        except TimeoutError:
            return  # time for the next attempt

    async def _deliver(
        self, link: EngineLink, waiting: list[Undelivered], handed: set[str]
    ) -> None:
        by_chat: defaultdict[str, list[Undelivered]] = defaultdict(list)
        for message in waiting:
            by_chat[message.chat_id].append(message)
        for chat_id, messages in by_chat.items():
            if self._retry_at.get(chat_id, 0) <= monotonic():
                await self._deliver_chat(link, chat_id, messages, handed)

    async def _deliver_chat(
        self, link: EngineLink, chat_id: str, messages: list[Undelivered], handed: set[str]
    ) -> None:
        self._retry_at.pop(chat_id, None)
        for message in messages:
            if message.id in handed:
                continue
            try:
                await hand_over(
                    self._database, link, self._workspace_id, message, self._clock, self._limit
                )
            except EngineRefusedError as e:
                await self._refusal(message, e)
                return
            handed.add(message.id)
            self._refused.pop(message.id, None)

    async def _refusal(self, message: Undelivered, error: EngineRefusedError) -> None:
        attempts = self._refused.get(message.id, 0)
        self._refused[message.id] = attempts + 1
        pause = self._pauses[min(attempts, len(self._pauses) - 1)]
        self._retry_at[message.chat_id] = monotonic() + pause
        if attempts == 0:
            log.warning("A message was refused: %s", error.message)
            await self._report_refusal(message, error)

    async def _report_refusal(self, message: Undelivered, error: EngineRefusedError) -> None:
        payload = {
            "code": str(error.code),
            "message": f"A message waits to be delivered. {error.message}",
            "details": {"chatId": message.chat_id, "messageId": message.id},
        }
        event = NewEvent(EventType.ERROR, payload)
        try:
            await retry_until_stored(lambda: self._event_log.append(self._workspace_id, [event]))
        except UnknownWorkspaceError:
            return  # deleted in the meantime


async def hand_over(
    database: Database,
    link: EngineLink,
    workspace_id: str,
    message: Undelivered,
    clock: Callable[[], datetime],
    limit: float | None = None,
) -> None:
    """Deliver one message; does nothing when the engine has it.

    `limit` are the seconds for an answer of the engine. Waits for the database do not count: while
    it is away, terminals and commands go on over the same link.

    Raises:
        EngineRefusedError: it was not accepted, or one of its uploads.
        EngineGoneError: the link was lost.
        TimeoutError: the engine does not answer.
    """
    refused = await write_queued(database, link, workspace_id, clock, limit)
    chat = await retry_until_stored(
        lambda: database.read(lambda c: find_chat(c, workspace_id, message.chat_id))
    )
    if chat is None:
        raise EngineRefusedError.not_found("The chat of this message was deleted.")
    paths = await upload_paths(database, workspace_id, message, refused)
    delivery = as_delivery(message, paths)
    async with asyncio.timeout(limit):
        await open_chat(link, chat)
        await link.chat_send(delivery)


async def hand_over_up_to(
    database: Database,
    link: EngineLink,
    workspace_id: str,
    chat_id: str,
    message_id: str,
    clock: Callable[[], datetime],
) -> None:
    """Deliver a message that has only just been sent, with those of its chat before it.

    Raises:
        EngineRefusedError, EngineGoneError: as `hand_over`.
    """
    waiting = await database.read(lambda c: undelivered(c, workspace_id))
    ahead = [message for message in waiting if message.chat_id == chat_id]
    ids = [message.id for message in ahead]
    if message_id in ids:
        for message in ahead[: ids.index(message_id) + 1]:
            await hand_over(database, link, workspace_id, message, clock)


async def upload_paths(
    database: Database,
    workspace_id: str,
    message: Undelivered,
    refused: Mapping[str, EngineRefusedError],
) -> list[str]:
    """Return the files that come with a message.

    Raises:
        EngineRefusedError: one of them is refused.
    """
    ids = from_json(message.delivery_json).get(UPLOADS)
    if not ids:
        return []
    for id in ids:
        if id in refused:
            raise refused[id]
    uploads = await retry_until_stored(
        lambda: database.read(lambda c: find_uploads(c, workspace_id, ids))
    )
    return [upload.file_path for upload in uploads]


async def open_chat(link: EngineLink, chat: Chat) -> None:
    """Open a chat in the engine; does nothing when it is known.

    Raises:
        EngineRefusedError: it was not created.
        EngineGoneError: the link was lost.
    """
    await link.chat_open(
        OpenChat(
            chat_id=chat.id,
            provider=chat.provider,
            title=chat.title,
            parent_chat_id=chat.parent_chat_id,
            created_at=chat.created_at,
            last_message_text=chat.last_message_text,
            goal=chat.goal and EventGoal.model_validate(chat.goal.model_dump()),
            plan_ready=bool(chat.plan_ready),
            turn_failed=chat.turn_failed,
            permission_mode=chat.permission_mode,
            model=chat.model,
            thinking_level=chat.thinking_level,
        )
    )


def as_delivery(message: Undelivered, uploads: Sequence[str] = ()) -> DeliverMessage:
    """Return the message as the engine takes it; `uploads` are the files that come with it."""
    delivery = from_json(message.delivery_json)
    delivery.pop(UPLOADS, None)
    return DeliverMessage.model_validate(
        {
            **delivery,
            "uploads": list(uploads) or None,
            "chat_id": message.chat_id,
            "message_id": message.id,
            "text": message.text,
        }
    )
