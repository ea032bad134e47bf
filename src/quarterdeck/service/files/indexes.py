"""The indexes of all workspaces: saved, fetched from engines, made from mirrors.

| index | kept | made anew |
|---|---|---|
| engine | seven days | by a search of an active workspace, in the background after 30 s |
| fallback | five minutes | by a search of an inactive workspace that has no engine index |

A failed attempt leaves what is saved alone.
"""

import asyncio
import base64
import json
import logging
from binascii import Error as NoBase64
from datetime import datetime, timedelta
from itertools import chain, count
from weakref import WeakValueDictionary

from quarterdeck.sandboxes.port import RepositorySource, SandboxError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError, StorageError
from quarterdeck.service.files.packing import BadIndexError, PackedRepository, pack, unpack
from quarterdeck.service.files.prepared import Prepared, prepare
from quarterdeck.service.fleet.fleet import fleet_of
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.file_indexes import (
    Origin,
    SavedIndex,
    files_of,
    find_index,
    save_index,
)
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.service.shelf import Shelf
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.files import INDEX_LIMIT

ENGINE_KEPT = timedelta(days=7)
FALLBACK_KEPT = timedelta(minutes=5)
FRESH = timedelta(seconds=30)
SAME_KEPT = timedelta(days=1)
"""An index that is found unchanged keeps its version for so long, and cursors with it."""

INDEX_SECONDS = 60.0
REMEMBERED = 1_000
"""Workspaces of which it is known when their engine was asked last."""
PREPARED = 8
"""Indexes that are held ready at once."""

log = logging.getLogger(__name__)


class Indexes:
    """Owns its refreshes: `close` ends them."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._ready: Shelf[SavedIndex, Prepared] = Shelf(PREPARED)
        self._refreshes: dict[str, asyncio.Task[bool]] = {}
        self._seen: Shelf[str, datetime] = Shelf(REMEMBERED)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._unsupported: set[str] = set()

    async def close(self) -> None:
        """Ends the refreshes that run."""
        running = list(self._refreshes.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def of_engine(self, workspace_id: str) -> SavedIndex | None:
        """What an engine told last, within seven days."""
        return await self._find(workspace_id, Origin.ENGINE, ENGINE_KEPT)

    def is_fresh(self, index: SavedIndex) -> bool:
        """Whether the engine was asked within 30 seconds."""
        asked = self._seen.get(index.workspace_id)
        told = datetime.fromisoformat(index.indexed_at)
        return self._context.clock() - max(asked or told, told) <= FRESH

    def refreshing(self, workspace_id: str) -> bool:
        """Whether an engine is being asked."""
        return workspace_id in self._refreshes

    def unsupported(self, workspace_id: str) -> bool:
        """Whether the workspace's engine is older than file search."""
        return workspace_id in self._unsupported

    def begin_refresh(self, row: WorkspaceRow) -> None:
        """Asks the engine in the background, unless that is being done."""
        if row.id not in self._refreshes:
            self._start(row)

    async def refresh(self, row: WorkspaceRow) -> bool:
        """Asks the engine, and returns whether it told; asked after this call began."""
        if (running := self._refreshes.get(row.id)) is not None:
            await asyncio.wait({running})
        return await asyncio.shield(self._refreshes.get(row.id) or self._start(row))

    async def fallback(self, row: WorkspaceRow) -> SavedIndex:
        """The files of the default branches, at most five minutes old when they can be read."""
        async with self._locks.setdefault(row.id, asyncio.Lock()):
            saved = await self._find(row.id, Origin.FALLBACK, FALLBACK_KEPT)
            return saved or await self._from_mirrors(row)

    async def prepared(self, index: SavedIndex) -> Prepared | None:
        """The index ready to be searched; None when another took its place meanwhile."""
        if (ready := self._ready.get(index)) is not None:
            return ready
        files = await self._context.database.read(lambda c: files_of(c, index))
        if files is None:
            return None
        return self._ready.put(index, await asyncio.to_thread(lambda: prepare(unpack(files))))

    def _start(self, row: WorkspaceRow) -> "asyncio.Task[bool]":
        task = asyncio.create_task(self._refresh(row), name=f"files of {row.id}")
        self._refreshes[row.id] = task
        task.add_done_callback(lambda _: self._refreshes.pop(row.id, None))
        return task

    async def _refresh(self, row: WorkspaceRow) -> bool:
        asked = self._context.clock()
        try:
            await self._take_over(row, asked)
        except ApiError as e:
            if e.code is ErrorCode.NOT_FOUND:
                self._unsupported.add(row.id)
            log.info("The files of %s cannot be listed now: %s", row.id, e.message)
            return False
        except (StorageError, BadIndexError, NoBase64) as e:
            log.warning("The files of %s cannot be indexed: %s", row.id, e)
            return False
        self._unsupported.discard(row.id)
        self._seen.put(row.id, asked)
        return True

    async def _take_over(self, row: WorkspaceRow, asked: datetime) -> None:
        supervisor = fleet_of(self._context).of(row.id)
        told = await supervisor.call(row, lambda link: link.files_index(), INDEX_SECONDS)
        packed = base64.b64decode(told.packed, validate=True)
        if await self._is_known(row.id, packed, told.truncated):
            return
        ready = await asyncio.to_thread(lambda: prepare(unpack(packed)))
        index = SavedIndex(row.id, Origin.ENGINE, told.truncated, moment_text(asked))
        await self._context.database.write(lambda c: save_index(c, index, packed))
        self._ready.put(index, ready)

    async def _is_known(self, workspace_id: str, packed: bytes, truncated: bool) -> bool:
        saved = await self._find(workspace_id, Origin.ENGINE, SAME_KEPT)
        if saved is None or saved.truncated != truncated:
            return False
        return await self._context.database.read(lambda c: files_of(c, saved)) == packed

    async def _find(self, workspace_id: str, origin: Origin, kept: timedelta) -> SavedIndex | None:
        since = moment_text(self._context.clock() - kept)
        return await self._context.database.read(
            lambda c: find_index(c, workspace_id, origin, since)
        )

    async def _from_mirrors(self, row: WorkspaceRow) -> SavedIndex:
        now = self._context.clock()
        found: list[PackedRepository] = []
        sources = [RepositorySource(**one) for one in json.loads(row.repositories_json)]
        room = INDEX_LIMIT
        missing = False
        for source in sources:
            try:
                paths = await self._context.sandboxes.tree(source)
            except SandboxError as e:
                log.warning("The tree of %s cannot be read: %s", source.name, e)
                missing = True
                continue
            missing = missing or len(paths) > room
            name = _directory(source.name, {name for name, _, _ in found})
            found.append((name, paths[:room], "u" * min(len(paths), room)))
            room = max(room - len(paths), 0)
        packed = await asyncio.to_thread(pack, found)
        index = SavedIndex(row.id, Origin.FALLBACK, missing, moment_text(now))
        self._ready.put(index, await asyncio.to_thread(prepare, found))
        await self._context.database.write(lambda c: save_index(c, index, packed))
        return index


def _directory(name: str, taken: set[str]) -> str:
    """The repository's directory in the workspace: of two with one name the second has a number."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in names if one not in taken)
