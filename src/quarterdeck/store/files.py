"""The file finder of one replica: what was asked, what was found, and how far that can be trusted.

    words -> search -> page -> (next pages on demand) -> found
                    -> refreshing? asked again until the index is the new one

Only the newest search counts: an older one that still answers is thrown away.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from quarterdeck.wire.files import MOST_FILES, FoundFile, FoundFiles

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

PAGE = 200
"""Files that are asked for at a time."""
PAUSES = (0.3, 0.6, 1.2, 2.5)
"""Seconds before each look whether a refreshed index is there; the last one from then on."""


class FinderOwner(Protocol):
    """What a finder needs of the deck."""

    @property
    def client(self) -> "Client": ...


class FileFinder:
    """The files that match what was asked last."""

    def __init__(self, owner: FinderOwner, replica_id: UUID) -> None:
        self._owner = owner
        self._replica_id = replica_id
        self.asked: str | None = None
        """What `files` answers; None before the first answer."""
        self.files: list[FoundFile] = []
        self.indexed_at: datetime | None = None
        self.stale = False
        self.refreshing = False
        self.truncated = False
        self.unsupported = False
        self._cursor: str | None = None
        self._limit = PAGE
        self._search = 0

    @property
    def has_more(self) -> bool:
        """Whether there are pages that were not read."""
        return self._cursor is not None

    async def search(self, words: str, *, refresh: bool = False) -> bool:
        """Reads the first page of a search; False when another began meanwhile.

        `refresh` waits for what is there at this moment.

        Raises:
            ClientError: refused or unreachable; what was found before stays.
        """
        return await self._begin(words, PAGE, refresh=refresh)

    async def more(self) -> bool:
        """Reads the next page; False when nothing came of it.

        When the index is another one than that of the pages before, the search begins anew.

        Raises:
            ClientError: refused or unreachable.
        """
        cursor, search, words = self._cursor, self._search, self.asked
        if cursor is None or words is None:
            return False
        page = await self._page(words, self._limit, cursor=cursor)
        if search != self._search or cursor != self._cursor:
            return False
        if page.indexed_at != self.indexed_at:
            return await self._begin(words, self._limit)
        self.files += page.files
        self._take_state(page)
        return True

    async def settle(self, changed: Callable[[], None]) -> None:
        """Looks again while the service makes a new index; `changed` is told of each answer.

        Raises:
            ClientError: refused or unreachable.
        """
        looks = 0
        while self.refreshing and self.asked is not None:
            await asyncio.sleep(PAUSES[min(looks, len(PAUSES) - 1)])
            looks += 1
            # As many as are shown, so that nobody's place in them is lost.
            shown = min(MOST_FILES, max(PAGE, len(self.files)))
            if not await self._begin(self.asked, shown):
                return
            changed()

    async def _begin(self, words: str, limit: int, *, refresh: bool = False) -> bool:
        self._search += 1
        search = self._search
        page = await self._page(words, limit, refresh=refresh)
        if search != self._search:
            return False
        self.asked, self._limit = words, limit
        self.files = list(page.files)
        self._take_state(page)
        return True

    async def _page(
        self, words: str, limit: int, *, cursor: str | None = None, refresh: bool = False
    ) -> FoundFiles:
        files = self._owner.client.files
        return await files.search(
            self._replica_id, words, limit=limit, cursor=cursor, refresh=refresh
        )

    def _take_state(self, page: FoundFiles) -> None:
        self._cursor = page.next_cursor
        self.indexed_at = page.indexed_at
        self.stale, self.refreshing = page.stale, page.refreshing
        self.truncated, self.unsupported = page.truncated, bool(page.unsupported)
