"""Search for files by name.

The files that match a search, best first.

A file matches when it has the letters of every word of the query in order, in any case.
The matcher finds and scores these as fzf does; the best of them, by whole path and by file name,
are then sorted by relevance to a person (`MatchRank`), the shorter name and path first.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import cached_property
from typing import Protocol

from cachetools import LRUCache
from frizbee import Match, Matcher
from pydantic import BaseModel, Field

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.formats import decode_opaque, encode_opaque
from quarterdeck.service.replicas.file_indexes import (
    STATUS_OF,
    IndexedFile,
    Indexes,
    Prepared,
    SavedIndex,
)
from quarterdeck.service.replicas.rows import WorkspaceRow
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.files import FileStatus, FoundFile, FoundFiles
from quarterdeck.wire.replicas import WorkspaceStatus


class FileCursor(BaseModel):
    """`search` identifies the parameters that must stay the same from page to page."""

    offset: int = Field(ge=0, le=1 << 40)
    version: str
    search: str


def search_mark(workspace_id: str, q: str, prefix: str, limit: int) -> str:
    """Return the mark of one search of one workspace."""
    parts = (workspace_id, q, prefix, str(limit))
    text = "\0".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:24]


def decode(text: str, search: str) -> FileCursor:
    """Return the cursor of a text.

    Raises:
        ApiError: INVALID_REQUEST when it is not a cursor, or one of another search.
    """
    try:
        cursor = decode_opaque(FileCursor, text)
    except ValueError as e:
        raise _refused(str(e)) from e
    if cursor.search != search:
        raise _refused("q, prefix and limit must stay as they were")
    return cursor


def _refused(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, "The search has no such page.", f"cursor: {why}")


_DELIMITERS = frozenset("/_-. ")


class MatchRank(IntEnum):
    """Worst first."""

    STREWN = 0
    """It has the letters, in order."""
    IN_PATH = 1
    PART_OF_PATH = 2
    """It is at the start of a part of the path, or of a name in it."""
    IN_NAME = 3
    PART_OF_NAME = 4
    BEGINS_NAME = 5
    ENDS_PATH = 6
    STEM = 7
    """It is the name without its extension."""
    NAME = 8
    PATH = 9


def fit_of(word: str, text: str, lowered: str) -> MatchRank:
    """Return the best fit of a lower-case word; `lowered` is `text` in lower case."""
    if word not in lowered:
        return MatchRank.STREWN
    start = lowered.rfind("/") + 1
    if word == lowered:
        return MatchRank.PATH
    if lowered.find(word, start) >= 0:
        return _in_name(word, text[start:], lowered[start:])
    if _ends(word, lowered):
        return MatchRank.ENDS_PATH
    return MatchRank.PART_OF_PATH if _begins_part(word, text, lowered) else MatchRank.IN_PATH


def _in_name(word: str, name: str, lowered: str) -> MatchRank:
    if word == lowered:
        return MatchRank.NAME
    if word in (lowered.rpartition(".")[0], lowered.partition(".")[0]):
        return MatchRank.STEM
    if lowered.startswith(word):
        return MatchRank.BEGINS_NAME
    return MatchRank.PART_OF_NAME if _begins_part(word, name, lowered) else MatchRank.IN_NAME


def _ends(word: str, lowered: str) -> bool:
    """Return whether it is the end of the path, with or without the name's extension."""
    if "/" not in word:
        return False
    end = "/" + word.removeprefix("/")
    path = "/" + lowered
    stem, dot, ending = path.rpartition(".")
    return path.endswith(end) or (bool(dot) and "/" not in ending and stem.endswith(end))


def _begins_part(word: str, text: str, lowered: str) -> bool:
    at = lowered.find(word)
    while at >= 0:
        if at == 0 or text[at - 1] in _DELIMITERS or word[0] in _DELIMITERS:
            return True
        if len(text) == len(lowered) and text[at].isupper() and not text[at - 1].isupper():
            return True
        at = lowered.find(word, at + 1)
    return False


CANDIDATES = 1_000
"""Best matches by path, and as many by name, that are ranked one by one."""

STEP = 10_000.0
"""The score between two ranks."""

Found = tuple[int, float]
"""A position in the index and a score."""


class Results(Protocol):
    """Files in the order of a search."""

    def __len__(self) -> int: ...

    def page(self, offset: int, limit: int) -> Sequence[Found]:
        """Return up to `limit` of them."""
        ...


class Listed:
    """All files, by repository and path."""

    def __init__(self, index: Prepared) -> None:
        self._positions = index.listing

    def __len__(self) -> int:
        return len(self._positions)

    def page(self, offset: int, limit: int) -> Sequence[Found]:
        """Return up to `limit` files, with the score 0."""
        return [(position, 0.0) for position in self._positions[offset : offset + limit]]


class Ranked:
    """Matches in order. Those after the candidates are only read when a page reaches them."""

    def __init__(self, top: Sequence[Found], matches: Sequence[Match]) -> None:
        self._top = top
        self._matches = matches

    def __len__(self) -> int:
        return max(len(self._top), len(self._matches))

    def page(self, offset: int, limit: int) -> Sequence[Found]:
        """Return up to `limit` matches."""
        end = offset + limit
        if end <= len(self._top) or len(self) == len(self._top):
            return self._top[offset:end]
        return self._all[offset:end]

    @cached_property
    def _all(self) -> Sequence[Found]:
        seen = {position for position, _ in self._top}
        rest = ((match.index, _below_step(match.score)) for match in self._matches)
        return [*self._top, *(candidate for candidate in rest if candidate[0] not in seen)]


def rank(index: Prepared, query: str) -> Results:
    """Return every file that matches; for an empty query all files, by repository and path."""
    words = query.split()
    if not words:
        return Listed(index)
    matches = Matcher.from_patterns(words, casing="ignore").match_list(index.paths)
    by_name = Matcher.from_patterns(words, casing="ignore", max_items=CANDIDATES).match_list(
        index.names
    )
    in_name = {match.index for match in by_name}
    scores = {match.index: match.score for match in matches[:CANDIDATES]}
    _add_missing(index, words, in_name - scores.keys(), scores)
    lowered = [word.lower() for word in words]
    top = [
        (position, _score(index, lowered, position, score, position in in_name))
        for position, score in scores.items()
    ]
    return Ranked(sorted(top, key=lambda candidate: (-candidate[1], candidate[0])), matches)


def _add_missing(
    index: Prepared, words: list[str], missing: set[int], scores: dict[int, int]
) -> None:
    positions = sorted(missing)
    texts = [index.entries[position].text for position in positions]
    for match in Matcher.from_patterns(words, casing="ignore").match_list(texts):
        scores[positions[match.index]] = match.score


def _score(index: Prepared, words: list[str], position: int, matched: int, in_name: bool) -> float:
    text = index.entries[position].text
    lowered = text.lower()
    fits = [fit_of(word, text, lowered) for word in words]
    if min(fits) is MatchRank.STREWN:
        return (sum(fits) + in_name) * STEP + _below_step(matched)
    name = len(text) - text.rfind("/") - 1
    return (sum(fits) + 1) * STEP + STEP / 2 - 8 * min(name, 400) - min(len(text), 1600)


def _below_step(score: float) -> float:
    return min(score, STEP - 1)


TRIES = 3
"""Attempts: an index may be replaced between being chosen and being read."""
RESULTS = 32
"""Maximum number of cached searches."""


@dataclass(frozen=True)
class FileQuery:
    """One request, with a valid `limit`."""

    q: str
    prefix: str
    limit: int
    cursor: str | None
    refresh: bool


class FileSearch:
    """Answers searches of all workspaces; wakes none. `close` ends the background tasks."""

    def __init__(self, context: ServiceContext, fleet: Fleet) -> None:
        self._fleet = fleet
        self._indexes = Indexes(context, fleet)
        self._results: LRUCache[tuple[SavedIndex, str, str], tuple[Prepared, Results]] = LRUCache(
            RESULTS
        )

    async def close(self) -> None:
        """End the refreshes that run."""
        await self._indexes.close()

    def forget_results(self) -> None:
        """Clear the cached searches."""
        self._results = LRUCache(RESULTS)

    async def search(self, row: WorkspaceRow, query: FileQuery) -> FoundFiles:
        """Return a page of the files that match.

        When `indexed_at` differs from the earlier page, the index has changed.

        Raises:
            ApiError: INVALID_REQUEST for a cursor of another search.
        """
        mark = search_mark(row.id, query.q, query.prefix, query.limit)
        cursor = None if query.cursor is None else decode(query.cursor, mark)
        index, stale, prepared = await self._open(row, query, first=cursor is None)
        searched, results = await self._ranked(index, prepared, query)
        offset = 0 if cursor is None else cursor.offset
        page = await asyncio.to_thread(results.page, offset, query.limit)
        end = offset + len(page)
        following = FileCursor(offset=end, version=index.indexed_at, search=mark)
        compatibility = {"unsupported": True} if self._indexes.unsupported(row.id) else {}
        return FoundFiles(
            files=_described(searched, page, index, stale),
            next_cursor=encode_opaque(following) if page and end < len(results) else None,
            indexed_at=datetime.fromisoformat(index.indexed_at),
            stale=stale,
            refreshing=self._indexes.refreshing(row.id),
            truncated=index.truncated,
            **compatibility,
        )

    async def _open(
        self, row: WorkspaceRow, query: FileQuery, first: bool
    ) -> tuple[SavedIndex, bool, Prepared]:
        for _ in range(TRIES):
            index, stale = await self._choose(row, query, first)
            prepared = await self._indexes.prepared(index)
            if prepared is not None:
                return index, stale, prepared
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")  # deleted in the meantime

    async def _choose(
        self, row: WorkspaceRow, query: FileQuery, first: bool
    ) -> tuple[SavedIndex, bool]:
        """Return the index to search, and whether it is stale."""
        active = self._is_active(row)
        saved = await self._indexes.of_engine(row.id)
        failed = False
        if active and first and (saved is None or query.refresh):
            failed = not await self._indexes.refresh(row)
            saved = await self._indexes.of_engine(row.id)
        if saved is None:
            return await self._indexes.fallback(row), True
        fresh = self._indexes.is_fresh(saved)
        if active and first and not fresh and not failed:
            self._indexes.begin_refresh(row)
        return saved, failed or not (active and fresh)

    def _is_active(self, row: WorkspaceRow) -> bool:
        return row.status == WorkspaceStatus.ACTIVE and not self._fleet.of(row.id).stopping

    async def _ranked(
        self, index: SavedIndex, prepared: Prepared, query: FileQuery
    ) -> tuple[Prepared, Results]:
        key = (index, query.q, query.prefix)
        if key not in self._results:
            found = await asyncio.to_thread(_search, prepared, query.q, query.prefix)
            self._results[key] = found
            return found
        return self._results[key]


def _search(prepared: Prepared, q: str, prefix: str) -> tuple[Prepared, Results]:
    searched = prepared.below(prefix) if prefix else prepared
    return searched, rank(searched, q)


def _described(
    prepared: Prepared, matches: Sequence[Found], index: SavedIndex, stale: bool
) -> list[FoundFile]:
    indexed_at = datetime.fromisoformat(index.indexed_at)

    def describe(entry: IndexedFile, score: float) -> FoundFile:
        return FoundFile.model_construct(
            repo_name=entry.repository,
            path=entry.path,
            display_path=f"{entry.repository}/{entry.path}",
            status=STATUS_OF.get(entry.letter, FileStatus.UNCHANGED),
            score=score,
            indexed_at=indexed_at,
            stale=stale,
        )

    return [describe(prepared.entries[position], score) for position, score in matches]
