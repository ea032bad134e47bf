"""The files of the workspace's repositories: indexed for searching, and read (INTERFACE 6).

An index is made on request, from git's: tracked files, and files neither tracked nor ignored.
Watching eighty thousand files costs more than listing them at a search.
"""

import asyncio
import base64
import json
import logging
import os
import stat
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.git import GitError, run_git
from quarterdeck.wire.base import meant, shown
from quarterdeck.wire.engine import IndexedFiles, ReadFile
from quarterdeck.wire.files import CONTENT_LIMIT, INDEX_LIMIT, FileContent
from quarterdeck.wire.git_state import EngineRepository

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TAIL = 3  # bytes of a UTF-8 character that a cut may leave


def open_inside(root: Path, name: bytes, hidden: bytes = b"") -> int | None:
    """Open the regular file with a relative name; return None when there is none inside `root`.

    A file called `hidden`, or in a directory called so, counts as missing.

    Links are followed as long as they stay inside. The resolved path is then walked without
    following any, so a link that is changed meanwhile is refused.
    """
    if not name or name.startswith(b"/") or b"\0" in name or b".." in name.split(b"/"):
        return None
    try:
        top = os.path.realpath(os.fsencode(root), strict=True)
        true = os.path.realpath(os.path.join(top, name), strict=True)  # noqa: PTH118 - bytes
    except OSError:
        return None
    if os.path.commonpath((top, true)) != top or true == top:
        return None
    parts = os.path.relpath(true, top).split(b"/")
    return None if hidden in parts else _walk(top, parts)


def _walk(top: bytes, parts: list[bytes]) -> int | None:
    try:
        directory = os.open(top, _FLAGS | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        for part in parts[:-1]:
            child = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = child
        descriptor = os.open(parts[-1], _FLAGS, dir_fd=directory)
    except OSError:
        return None
    finally:
        os.close(directory)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def as_text(data: bytes, cut: bool = False) -> str | None:
    """Decode UTF-8; return None when it is not text. `cut` data may end inside a character."""
    if b"\0" in data:
        return None
    for end in range(len(data), len(data) - (_TAIL if cut else 0) - 1, -1):
        try:
            return data[: max(end, 0)].decode()
        except UnicodeDecodeError:
            continue
    return None


logger = logging.getLogger(__name__)

_SUBMODULE = b"160000"
_UNCHANGED, _CHANGED, _UNTRACKED = "u", "c", "n"
_QUICK = 1
_Repository = tuple[str, list[str], str]


class RepositoryFiles:
    """The files of the repositories of the configuration."""

    def __init__(
        self, repositories: Sequence[EngineRepository], environment: Mapping[str, str]
    ) -> None:
        self._repositories = repositories
        self._environment = environment

    async def index(self) -> IndexedFiles:
        """List the files of every repository now."""
        listed: list[_Repository] = []
        whole = True
        room = INDEX_LIMIT
        for repository in self._repositories:
            try:
                tracked, status = await self._list(repository)
            except GitError as error:
                logger.warning("the files of %s cannot be listed: %s", repository.name, error)
                whole = False
                continue
            names = await asyncio.to_thread(_names, tracked, status)
            whole = whole and len(names) <= room
            names = names[:room]
            room -= len(names)
            listed.append(
                (
                    repository.name,
                    [name for name, _ in names],
                    "".join(letter for _, letter in names),
                )
            )
        return IndexedFiles(truncated=not whole, packed=await asyncio.to_thread(_packed, listed))

    async def read(self, call: ReadFile) -> FileContent:
        """Return a file's first MiB.

        Raises:
            EngineRefusedError: INVALID_REQUEST for a path that leads out of the repository,
                NOT_FOUND.
        """
        parts = call.path.split("/")
        if not call.path or call.path.startswith("/") or ".." in parts:
            raise EngineRefusedError.invalid(
                "The path leads out of the repository.", "path: relative to it, and without .."
            )
        for repository in self._repositories:
            if repository.name == call.repo_name:
                return await asyncio.to_thread(_read, Path(repository.path), call.path)
        raise EngineRefusedError.not_found("The workspace has no repository of this name.")

    async def _list(self, repository: EngineRepository) -> tuple[bytes, bytes]:
        path = Path(repository.path)
        tracked = await run_git(path, self._environment, "ls-files", "-z", "--stage")
        status = await run_git(
            path, self._environment, "status", "--porcelain=v2", "-z", "--untracked-files=all",
            "--no-renames",
        )  # fmt: skip
        return tracked, status


def _names(tracked: bytes, status: bytes) -> list[tuple[str, str]]:
    """Return the paths as shown, each with the letter of its status, in order."""
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


def _packed(repositories: list[_Repository]) -> str:
    text = json.dumps(repositories, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), _QUICK)).decode()


def _read(root: Path, path: str) -> FileContent:
    for name in meant(path):
        # Not files of git, which name other machines.
        descriptor = open_inside(root, name, hidden=b".git")
        if descriptor is not None:
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(CONTENT_LIMIT + 1)
                size = max(os.fstat(file.fileno()).st_size, len(data))
            return _content(data, size)
    raise EngineRefusedError.not_found("The repository has no file of this path.")


def _content(data: bytes, size: int) -> FileContent:
    cut = len(data) > CONTENT_LIMIT
    data = data[:CONTENT_LIMIT]
    text = as_text(data, cut)
    encoded = None if text is not None else base64.b64encode(data).decode()
    return FileContent(content=text, base64=encoded, size_bytes=size, truncated=cut)
