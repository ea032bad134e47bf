"""The files of the workspace's repositories: indexed for searching, and read (INTERFACE 6).

An index is made when it is asked for, from git's own: what is tracked, and what is neither tracked
nor ignored. Watching eighty thousand files costs more than looking at them when somebody searches.
"""

import asyncio
import base64
import json
import logging
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from quarterdeck.engine.errors import EngineRefused
from quarterdeck.engine.git import GitError, run_git
from quarterdeck.engine.reading import as_text, open_inside
from quarterdeck.wire.engine import EngineRepository, IndexedFiles, ReadFile
from quarterdeck.wire.files import CONTENT_LIMIT, INDEX_LIMIT, FileContent
from quarterdeck.wire.names import meant, shown

logger = logging.getLogger(__name__)

_SUBMODULE = b"160000"
_UNCHANGED, _CHANGED, _UNTRACKED = "u", "c", "n"
_QUICK = 1
_Repository = tuple[str, list[str], str]


class Files:
    """The files of the repositories of the configuration."""

    def __init__(
        self, repositories: Sequence[EngineRepository], environment: Mapping[str, str]
    ) -> None:
        self._repositories = repositories
        self._environment = environment

    async def index(self) -> IndexedFiles:
        """Looks at every repository now."""
        found: list[_Repository] = []
        whole = True
        room = INDEX_LIMIT
        for one in self._repositories:
            try:
                tracked, status = await self._ask(one)
            except GitError as error:
                logger.warning("the files of %s cannot be listed: %s", one.name, error)
                whole = False
                continue
            names = await asyncio.to_thread(_names, tracked, status)
            whole = whole and len(names) <= room
            names = names[:room]
            room -= len(names)
            found.append(
                (one.name, [name for name, _ in names], "".join(letter for _, letter in names))
            )
        return IndexedFiles(truncated=not whole, packed=await asyncio.to_thread(_packed, found))

    async def read(self, call: ReadFile) -> FileContent:
        """A file's first MiB.

        Raises:
            EngineRefused: INVALID_REQUEST for a path that leads out of the repository, NOT_FOUND.
        """
        parts = call.path.split("/")
        if not call.path or call.path.startswith("/") or ".." in parts:
            raise EngineRefused.invalid(
                "The path leads out of the repository.", "path: relative to it, and without .."
            )
        for one in self._repositories:
            if one.name == call.repo_name:
                return await asyncio.to_thread(_read, Path(one.path), call.path)
        raise EngineRefused.not_found("The workspace has no repository of this name.")

    async def _ask(self, one: EngineRepository) -> tuple[bytes, bytes]:
        path = Path(one.path)
        tracked = await run_git(path, self._environment, "ls-files", "-z", "--stage")
        status = await run_git(
            path, self._environment, "status", "--porcelain=v2", "-z", "--untracked-files=all",
            "--no-renames",
        )  # fmt: skip
        return tracked, status


def _names(tracked: bytes, status: bytes) -> list[tuple[str, str]]:
    """Paths as they are shown, each with the letter of its status, in order."""
    letters: dict[bytes, str] = {}
    for record in tracked.split(b"\0"):
        head, _, name = record.partition(b"\t")
        if name and not head.startswith(_SUBMODULE):
            letters[name] = _UNCHANGED
    for record in status.split(b"\0"):
        _take_status(letters, record)
    return sorted((shown(name), letter) for name, letter in letters.items())


def _take_status(letters: dict[bytes, str], record: bytes) -> None:
    kind = record[:2]
    if kind == b"? ":
        if not record.endswith(b"/"):  # a repository within the repository
            letters[record[2:]] = _UNTRACKED
        return
    if kind not in (b"1 ", b"u "):
        return
    name = record.split(b" ", 8 if kind == b"1 " else 10)[-1]
    if record[3:4] == b"D" and kind == b"1 ":
        letters.pop(name, None)
    elif name in letters:
        letters[name] = _CHANGED


def _packed(found: list[_Repository]) -> str:
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), _QUICK)).decode()


def _read(root: Path, path: str) -> FileContent:
    for name in meant(path):
        # Not git's own, with what it knows of other machines.
        descriptor = open_inside(root, name, hidden=b".git")
        if descriptor is not None:
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(CONTENT_LIMIT + 1)
                size = max(os.fstat(file.fileno()).st_size, len(data))
            return _content(data, size)
    raise EngineRefused.not_found("The repository has no file of this path.")


def _content(data: bytes, size: int) -> FileContent:
    cut = len(data) > CONTENT_LIMIT
    data = data[:CONTENT_LIMIT]
    text = as_text(data, cut)
    encoded = None if text is not None else base64.b64encode(data).decode()
    return FileContent(content=text, base64=encoded, size_bytes=size, truncated=cut)
