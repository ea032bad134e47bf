"""Searching the files of one workspace, page by page (operation 13)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.files.cursors import FileCursor, decode, search_mark
from quarterdeck.service.files.indexes import Indexes
from quarterdeck.service.files.packing import STATUS_OF
from quarterdeck.service.files.prepared import Entry, Prepared
from quarterdeck.service.files.ranking import Found, Results, rank
from quarterdeck.service.fleet.fleet import fleet_of
from quarterdeck.service.opaque import encode
from quarterdeck.service.records.file_indexes import SavedIndex
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.service.shelf import Shelf
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.files import FileStatus, FoundFile, FoundFiles
from quarterdeck.wire.replicas import WorkspaceStatus

TRIES = 3
"""An index may be replaced between being chosen and being read."""
RESULTS = 32
"""Searches whose next pages are ready."""


@dataclass(frozen=True)
class Asked:
    """One request. `limit` is within its bounds."""

    q: str
    prefix: str
    limit: int
    cursor: str | None
    refresh: bool


class FileSearch:
    """Answers searches of all workspaces; wakes none. `close` ends what runs in the background."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._indexes = Indexes(context)
        self._results: Shelf[tuple[SavedIndex, str, str], tuple[Prepared, Results]] = Shelf(RESULTS)

    async def close(self) -> None:
        """Ends the refreshes that run."""
        await self._indexes.close()

    def forget_results(self) -> None:
        """Makes the next page of every search rank anew, as a first one does."""
        self._results = Shelf(RESULTS)

    async def search(self, row: WorkspaceRow, asked: Asked) -> FoundFiles:
        """A page of the files that match.

        When `indexed_at` differs from the page before, the index has changed in between.

        Raises:
            ApiError: INVALID_REQUEST for a cursor of another search.
        """
        mark = search_mark(row.id, asked.q, asked.prefix, asked.limit)
        cursor = None if asked.cursor is None else decode(asked.cursor, mark)
        index, stale, prepared = await self._open(row, asked, first=cursor is None)
        searched, results = await self._ranked(index, prepared, asked)
        offset = 0 if cursor is None else cursor.offset
        found = await asyncio.to_thread(results.page, offset, asked.limit)
        end = offset + len(found)
        following = FileCursor(offset=end, version=index.indexed_at, search=mark)
        compatibility = {"unsupported": True} if self._indexes.unsupported(row.id) else {}
        return FoundFiles(
            files=_described(searched, found, index, stale),
            next_cursor=encode(following) if found and end < len(results) else None,
            indexed_at=datetime.fromisoformat(index.indexed_at),
            stale=stale,
            refreshing=self._indexes.refreshing(row.id),
            truncated=index.truncated,
            **compatibility,
        )

    async def _open(
        self, row: WorkspaceRow, asked: Asked, first: bool
    ) -> tuple[SavedIndex, bool, Prepared]:
        for _ in range(TRIES):
            index, stale = await self._choose(row, asked, first)
            prepared = await self._indexes.prepared(index)
            if prepared is not None:
                return index, stale, prepared
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")  # deleted meanwhile

    async def _choose(
        self, row: WorkspaceRow, asked: Asked, first: bool
    ) -> tuple[SavedIndex, bool]:
        """The index to search, and whether it is stale."""
        active = self._is_active(row)
        saved = await self._indexes.of_engine(row.id)
        failed = False
        if active and first and (saved is None or asked.refresh):
            failed = not await self._indexes.refresh(row)
            saved = await self._indexes.of_engine(row.id)
        if saved is None:
            return await self._indexes.fallback(row), True
        fresh = self._indexes.is_fresh(saved)
        if active and first and not fresh and not failed:
            self._indexes.begin_refresh(row)
        return saved, failed or not (active and fresh)

    def _is_active(self, row: WorkspaceRow) -> bool:
        return (
            row.status == WorkspaceStatus.ACTIVE and not fleet_of(self._context).of(row.id).stopping
        )

    async def _ranked(
        self, index: SavedIndex, prepared: Prepared, asked: Asked
    ) -> tuple[Prepared, Results]:
        key = (index, asked.q, asked.prefix)
        return self._results.get(key) or self._results.put(
            key, await asyncio.to_thread(_search, prepared, asked.q, asked.prefix)
        )


def _search(prepared: Prepared, q: str, prefix: str) -> tuple[Prepared, Results]:
    searched = prepared.below(prefix) if prefix else prepared
    return searched, rank(searched, q)


def _described(
    prepared: Prepared, found: Sequence[Found], index: SavedIndex, stale: bool
) -> list[FoundFile]:
    indexed_at = datetime.fromisoformat(index.indexed_at)

    def describe(entry: Entry, score: float) -> FoundFile:
        return FoundFile.model_construct(
            repo_name=entry.repository,
            path=entry.path,
            display_path=f"{entry.repository}/{entry.path}",
            status=STATUS_OF.get(entry.letter, FileStatus.UNCHANGED),
            score=score,
            indexed_at=indexed_at,
            stale=stale,
        )

    return [describe(prepared.entries[position], score) for position, score in found]
