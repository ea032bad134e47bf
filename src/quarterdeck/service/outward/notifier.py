"""Tells people of turns that ended, questions that wait and replicas that failed.

At most once: a notification is not worth being kept over a crash. Nothing else waits for it, and of
what goes wrong only the service's name is logged, never the address.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import DatabaseClosedError, StorageError
from quarterdeck.service.outward.notices import notice_for
from quarterdeck.service.outward.targets import Notice, send, service_of
from quarterdeck.service.records.events import StoredEvent
from quarterdeck.service.records.notification_targets import Target
from quarterdeck.wire.events import EventType

SECONDS = 20.0
"""A target that has not taken a notification within this is left alone."""
THREADS = 4
WAITING = 1000
"""Events that may wait; further ones are dropped."""

log = logging.getLogger(__name__)

_Event = tuple[str, str, dict[str, Any]]


class Notifier:
    """The one owner of notifications."""

    def __init__(self, context: ServiceContext, send: Callable[[str, Notice], bool] = send) -> None:
        self._context = context
        self._send = send
        self._events: asyncio.Queue[_Event] = asyncio.Queue(WAITING)
        self._asking: set[str] = set()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="notifications")
        self._sending: set[asyncio.Task[None]] = set()

    def hear(self, workspace_id: str, stored: Sequence[StoredEvent]) -> None:
        """Picks what may be told; called for every event of the log."""
        for event in stored:
            if self._matters(event):
                if self._events.full():
                    log.warning("A notification is dropped: too many wait")
                    return
                payload = json.loads(event.payload_json)
                self._events.put_nowait((workspace_id, event.type, payload))

    async def run(self) -> None:
        """Tells for ever."""
        try:
            while True:
                await self._tell(*await self._events.get())
        except DatabaseClosedError:
            return
        finally:
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def try_target(self, target: Target, notice: Notice) -> bool:
        """Sends one notification now; whether it was taken."""
        try:
            url = self._context.vault.unseal(target.id, target.url_sealed)
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(SECONDS):
                taken = await loop.run_in_executor(self._threads, self._send, url, notice)
        except TimeoutError:
            log.warning("A notification was not taken in time")
            return False
        except StorageError as e:
            log.warning("A notification cannot be sent: %s", e)
            return False
        if not taken:
            log.warning("A notification to %s was not taken", service_of(url))
        return taken

    def _matters(self, event: StoredEvent) -> bool:
        match event.type:
            case EventType.CHAT_TURN_COMPLETED:
                return True
            case EventType.ENGINE_STATUS_CHANGED:
                return '"workspaceStatus":"error"' in event.payload_json
            case EventType.CHAT_UPDATED:
                return self._begins_to_ask(event)
            case _:
                return False

    def _begins_to_ask(self, event: StoredEvent) -> bool:
        """A chat that waits for an answer is told of once, not with each of its changes."""
        if '"awaitingInput":true' not in event.payload_json and not self._asking:
            return False
        chat = json.loads(event.payload_json).get("chat", {})
        asks, id = bool(chat.get("awaitingInput")), str(chat.get("id"))
        new = asks and id not in self._asking
        (self._asking.add if asks else self._asking.discard)(id)
        return new

    async def _tell(self, workspace_id: str, type: str, payload: dict[str, Any]) -> None:
        try:
            found = await self._context.database.read(
                lambda c: notice_for(c, workspace_id, type, payload)
            )
        except DatabaseClosedError:
            raise
        except StorageError:
            log.exception("A notification could not be made")
            return
        if found is None:
            return
        notice, targets = found
        for target in targets:
            self._begin(target, notice)

    def _begin(self, target: Target, notice: Notice) -> None:
        async def tell() -> None:
            await self.try_target(target, notice)

        task = asyncio.create_task(tell(), name="notification")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
