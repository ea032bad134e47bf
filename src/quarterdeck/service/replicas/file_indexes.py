"""Indexes of the files of replicas.

The indexes of all workspaces: saved, fetched from engines, built from mirrors.

| index | kept | rebuilt |
|---|---|---|
| engine | seven days | by a search of an active workspace, in the background after 30 s |
| fallback | five minutes | by a search of an inactive workspace that has no engine index |

A failed attempt does not change the saved one.
"""

import asyncio
import base64
import json
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import chain, count
from operator import attrgetter
from typing import Annotated, NamedTuple
from weakref import WeakValueDictionary

from cachetools import LRUCache
from frizbee import Haystacks
from pydantic import Field, TypeAdapter, ValidationError
from sqlalchemy import Connection, delete, insert, select

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import file_indexes, workspaces
from quarterdeck.service.errors import ApiError, StorageError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.rows import WorkspaceRow
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.files import INDEX_LIMIT, FileStatus
from quarterdeck.wire.json_size import has_too_many_values

LARGEST = 64 << 20
"""Maximum bytes of JSON that are read: an engine may send anything."""

PackedRepository = tuple[str, list[str], str]
_Packed = TypeAdapter(
    Annotated[list[tuple[str, Annotated[list[str], Field(max_length=INDEX_LIMIT)], str]], ...]
)

STATUS_OF = {
    "u": FileStatus.UNCHANGED,
    "c": FileStatus.CHANGED,
    "n": FileStatus.UNTRACKED,
}


class BadIndexError(Exception):
    """An engine sent an invalid index."""


def pack(repositories: Sequence[PackedRepository]) -> bytes:
    """Return the stored form."""
    text = json.dumps(repositories, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode(), 1)


def unpack(packed: bytes) -> list[PackedRepository]:
    """Return the repositories of a stored form.

    Raises:
        BadIndexError: it is not valid.
    """
    try:
        stream = zlib.decompressobj()
        text = stream.decompress(packed, LARGEST)
        if not stream.eof:
            raise BadIndexError("The index is cut short, or too long.")
        if has_too_many_values(text):
            raise BadIndexError("The index has too many files or repositories.")
        content = _Packed.validate_json(text)
    except (zlib.error, ValidationError) as e:
        raise BadIndexError("The index has no known form.") from e
    if any(len(paths) != len(statuses) for _, paths, statuses in content):
        raise BadIndexError("The index has another number of states than of files.")
    return content


class IndexedFile(NamedTuple):
    """One file.

    `text` is searched: the path, below its repository's name if there are several. `letter` is its
    packed status, `place` its position in an unfiltered list.
    """

    repository: str
    path: str
    letter: str
    text: str
    place: int


class Prepared:
    """Files sorted by length, so that of equal matches the shorter comes first."""

    def __init__(self, entries: Sequence[IndexedFile]) -> None:
        self.entries = entries

    @cached_property
    def paths(self) -> Haystacks:
        """The searched texts, for the matcher."""
        return Haystacks([entry.text for entry in self.entries])

    @cached_property
    def names(self) -> Haystacks:
        """The last part of each path, for the matcher."""
        return Haystacks([entry.text.rpartition("/")[2] for entry in self.entries])

    @cached_property
    def listing(self) -> Sequence[int]:
        """The positions of all files, by repository and path."""
        places = [entry.place for entry in self.entries]
        return sorted(range(len(places)), key=places.__getitem__)

    def below(self, prefix: str) -> "Prepared":
        """Return the files whose path in their repository begins with a prefix."""
        return Prepared([entry for entry in self.entries if entry.path.startswith(prefix)])


def prepare(repositories: Sequence[PackedRepository]) -> Prepared:
    """Prepare an index for searches."""
    several = len(repositories) > 1
    entries: list[IndexedFile] = []
    for name, paths, letters in sorted(repositories):
        above = f"{name}/" if several else ""
        entries += [
            IndexedFile(name, path, letter, above + path, place)
            for place, (path, letter) in enumerate(
                sorted(zip(paths, letters, strict=True)), len(entries)
            )
        ]
    entries.sort(key=attrgetter("text"))
    entries.sort(key=_length)
    prepared = Prepared(entries)
    _ = prepared.paths, prepared.names, prepared.listing  # not delayed to the first search
    return prepared


def _length(entry: IndexedFile) -> int:
    return len(entry.text)


class IndexOrigin(StrEnum):
    """The origin of an index."""

    ENGINE = "engine"
    FALLBACK = "fallback"


@dataclass(frozen=True)
class SavedIndex:
    """An index without its files. `indexed_at` is its version."""

    workspace_id: str
    origin: IndexOrigin
    truncated: bool
    indexed_at: str


def save_index(connection: Connection, index: SavedIndex, files: bytes) -> None:
    """Store an index, replacing an earlier one; does nothing when its workspace was deleted."""
    there = select(workspaces.c.id).where(workspaces.c.id == index.workspace_id)
    if connection.execute(there).first() is None:
        return
    connection.execute(
        delete(file_indexes).where(
            file_indexes.c.workspace_id == index.workspace_id,
            file_indexes.c.origin == index.origin,
        )
    )
    connection.execute(
        insert(file_indexes).values(
            workspace_id=index.workspace_id,
            origin=index.origin,
            files=files,
            truncated=index.truncated,
            indexed_at=index.indexed_at,
        )
    )


def find_index(
    connection: Connection, workspace_id: str, origin: IndexOrigin, since: str
) -> SavedIndex | None:
    """Return the index of an origin, unless it was built before `since`."""
    statement = select(file_indexes.c.truncated, file_indexes.c.indexed_at).where(
        file_indexes.c.workspace_id == workspace_id,
        file_indexes.c.origin == origin,
        file_indexes.c.indexed_at >= since,
    )
    row = connection.execute(statement).first()
    return None if row is None else SavedIndex(workspace_id, origin, row.truncated, row.indexed_at)


def files_of(connection: Connection, index: SavedIndex) -> bytes | None:
    """Return the packed files of an index; None when it was replaced in the meantime."""
    statement = select(file_indexes.c.files).where(
        file_indexes.c.workspace_id == index.workspace_id,
        file_indexes.c.origin == index.origin,
        file_indexes.c.indexed_at == index.indexed_at,
    )
    return connection.execute(statement).scalar()


ENGINE_KEPT = timedelta(days=7)
FALLBACK_KEPT = timedelta(minutes=5)
FRESH = timedelta(seconds=30)
SAME_KEPT = timedelta(days=1)
"""How long an unchanged index keeps its version, so that cursors stay valid."""

INDEX_SECONDS = 60.0
REMEMBERED = 1_000
"""Maximum number of workspaces with a known last query of their engine."""
PREPARED = 8
"""Maximum number of prepared indexes."""

log = logging.getLogger(__name__)


class Indexes:
    """Owns its refreshes; `close` ends them."""

    def __init__(self, context: ServiceContext, fleet: Fleet) -> None:
        self._context = context
        self._fleet = fleet
        self._ready: LRUCache[SavedIndex, Prepared] = LRUCache(PREPARED)
        self._refreshes: dict[str, asyncio.Task[bool]] = {}
        self._seen: LRUCache[str, datetime] = LRUCache(REMEMBERED)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._unsupported: set[str] = set()

    async def close(self) -> None:
        """Cancel the running refreshes."""
        running = list(self._refreshes.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def of_engine(self, workspace_id: str) -> SavedIndex | None:
        """Return the last index from the engine, at most seven days old."""
        return await self._find(workspace_id, IndexOrigin.ENGINE, ENGINE_KEPT)

    def is_fresh(self, index: SavedIndex) -> bool:
        """Return whether the engine was queried within 30 seconds."""
        refreshed = self._seen.get(index.workspace_id)
        indexed = datetime.fromisoformat(index.indexed_at)
        return self._context.clock() - max(refreshed or indexed, indexed) <= FRESH

    def refreshing(self, workspace_id: str) -> bool:
        """Return whether an engine is being queried."""
        return workspace_id in self._refreshes

    def unsupported(self, workspace_id: str) -> bool:
        """Return whether the workspace's engine is older than file search."""
        return workspace_id in self._unsupported

    def begin_refresh(self, row: WorkspaceRow) -> None:
        """Query the engine in the background, unless that is running."""
        if row.id not in self._refreshes:
            self._start(row)

    async def refresh(self, row: WorkspaceRow) -> bool:
        """Query the engine after this call started; return whether it succeeded."""
        if (running := self._refreshes.get(row.id)) is not None:
            await asyncio.wait({running})
        return await asyncio.shield(self._refreshes.get(row.id) or self._start(row))

    async def fallback(self, row: WorkspaceRow) -> SavedIndex:
        """Return the files of the default branches, at most five minutes old when they can be read."""
        async with self._locks.setdefault(row.id, asyncio.Lock()):
            saved = await self._find(row.id, IndexOrigin.FALLBACK, FALLBACK_KEPT)
            return saved or await self._from_mirrors(row)

    async def prepared(self, index: SavedIndex) -> Prepared | None:
        """Return the prepared index; None when it was replaced in the meantime."""
        if (ready := self._ready.get(index)) is not None:
            return ready
        files = await self._context.database.read(lambda c: files_of(c, index))
        if files is None:
            return None
        self._ready[index] = ready = await asyncio.to_thread(lambda: prepare(unpack(files)))
        return ready

    def _start(self, row: WorkspaceRow) -> "asyncio.Task[bool]":
        task = asyncio.create_task(self._refresh(row), name=f"files of {row.id}")
        self._refreshes[row.id] = task
        task.add_done_callback(lambda _: self._refreshes.pop(row.id, None))
        return task

    async def _refresh(self, row: WorkspaceRow) -> bool:
        started = self._context.clock()
        try:
            await self._take_over(row, started)
        except ApiError as e:
            if e.code is ErrorCode.NOT_FOUND:
                self._unsupported.add(row.id)
            log.info("The files of %s cannot be listed now: %s", row.id, e.message)
            return False
        except (StorageError, BadIndexError) as e:
            log.warning("The files of %s cannot be indexed: %s", row.id, e)
            return False
        self._unsupported.discard(row.id)
        self._seen[row.id] = started
        return True

    async def _take_over(self, row: WorkspaceRow, started: datetime) -> None:
        supervisor = self._fleet.of(row.id)
        answer = await supervisor.call(row, lambda link: link.files_index(), INDEX_SECONDS)
        try:
            packed = base64.b64decode(answer.packed, validate=True)
        except ValueError as e:  # also for text that is not ASCII
            raise BadIndexError("The index is not base64.") from e
        if await self._is_known(row.id, packed, answer.truncated):
            return
        ready = await asyncio.to_thread(lambda: prepare(unpack(packed)))
        index = SavedIndex(row.id, IndexOrigin.ENGINE, answer.truncated, moment_text(started))
        await self._context.database.write(lambda c: save_index(c, index, packed))
        self._ready[index] = ready

    async def _is_known(self, workspace_id: str, packed: bytes, truncated: bool) -> bool:
        saved = await self._find(workspace_id, IndexOrigin.ENGINE, SAME_KEPT)
        if saved is None or saved.truncated != truncated:
            return False
        return await self._context.database.read(lambda c: files_of(c, saved)) == packed

    async def _find(
        self, workspace_id: str, origin: IndexOrigin, kept: timedelta
    ) -> SavedIndex | None:
        since = moment_text(self._context.clock() - kept)
        return await self._context.database.read(
            lambda c: find_index(c, workspace_id, origin, since)
        )

    async def _from_mirrors(self, row: WorkspaceRow) -> SavedIndex:
        now = self._context.clock()
        indexed: list[PackedRepository] = []
        sources = [
            RepositorySource.from_json(repository)
            for repository in json.loads(row.repositories_json)
        ]
        room = INDEX_LIMIT
        missing = False
        for source in sources:
            try:
                paths = await self._context.sources.tree(source)
            except SandboxError as e:
                log.warning("The tree of %s cannot be read: %s", source.name, e)
                missing = True
                continue
            missing = missing or len(paths) > room
            name = _directory(source.name, {name for name, _, _ in indexed})
            indexed.append((name, paths[:room], "u" * min(len(paths), room)))
            room = max(room - len(paths), 0)
        packed = await asyncio.to_thread(pack, indexed)
        index = SavedIndex(row.id, IndexOrigin.FALLBACK, missing, moment_text(now))
        self._ready[index] = await asyncio.to_thread(prepare, indexed)
        await self._context.database.write(lambda c: save_index(c, index, packed))
        return index


def _directory(name: str, used: set[str]) -> str:
    """Return the repository's directory in the workspace, with a number if the name is taken."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(part for part in names if part not in used)
