"""When keys were last used, stored now and then: never a write for a request."""

import asyncio
import logging

from quarterdeck.service.db.database import Database
from quarterdeck.service.errors import StorageError
from quarterdeck.service.moments import now_text
from quarterdeck.service.records.api_keys import store_uses

PAUSE_SECONDS = 60.0
"""A key is stored as used at most once in this time."""

log = logging.getLogger(__name__)


class KeyUse:
    """Collects uses; `run` stores them until it is cancelled, which stores the last ones."""

    def __init__(self, database: Database, pause: float = PAUSE_SECONDS) -> None:
        self._database = database
        self._pause = pause
        self._uses: dict[str, str] = {}
        self._used = asyncio.Event()

    def note(self, key_id: str) -> None:
        """A key was used at this moment."""
        self._uses[key_id] = now_text()
        self._used.set()

    async def run(self) -> None:
        """Stores uses soon after the first one, then after each pause in which there were some."""
        try:
            while True:
                await self._used.wait()
                await self.store()
                await asyncio.sleep(self._pause)
        finally:
            await self.store()

    async def store(self) -> None:
        """Stores what was collected. What cannot be stored is dropped: it is no more than news."""
        uses, self._uses = self._uses, {}
        self._used.clear()
        if not uses:
            return
        try:
            await self._database.write(lambda c: store_uses(c, uses))
        except StorageError:
            log.warning("When keys were last used could not be stored", exc_info=True)
