"""Reads a directory of a source: from this machine's disk, or from a mirrored repository."""

import asyncio
import os
import re
import stat
import tarfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath

from quarterdeck.sandboxes.errors import NotARepositoryError, SandboxError
from quarterdeck.sandboxes.git import SourceGitError
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.sandboxes.reach import network_options
from quarterdeck.sandboxes.source_port import TreeFile
from quarterdeck.sandboxes.sources import local_path, without_password

MOST_FILES = 500
MOST_BYTES = 8 << 20
"""Of one directory with all below it."""
MOST_DIRECTORIES = 20_000
"""Searched for files of a name."""
PASSED_BY = frozenset((".git", "node_modules"))
_WITHOUT_LOGIN = re.compile("https?://", re.IGNORECASE)
FRESH_SECONDS = 60.0
"""A mirror that was updated within this time is not updated again."""


@dataclass(frozen=True)
class _Bounds:
    """Refuses more files or bytes than the limits."""

    name: str

    def check(self, files: int, size: int) -> None:
        if files > MOST_FILES or size > MOST_BYTES:
            raise SandboxError(
                f"{self.name} is too large: at most {MOST_FILES} files and "
                f"{MOST_BYTES >> 20} MiB are taken."
            )


class Trees:
    """Directories of sources; git ones through mirrors, whose names begin with `prefix`.

    What was fetched with credentials is never shown to those who may not use these: `Trees` without
    a login need a prefix of their own.
    """

    def __init__(self, mirrors: Mirrors, prefix: str = "tree") -> None:
        self._mirrors = mirrors
        self._prefix = prefix
        self._fetched: dict[str, float] = {}

    async def require(self, url: str, private: bool = True) -> None:
        """Check whether a source can exist; see `SandboxDriver.require_source`.

        Raises:
            NotARepositoryError: it does not exist, or the address is not valid.
        """
        if not await asyncio.to_thread(self._may_exist, url):
            raise NotARepositoryError(f"There is nothing at {url} on the service's machine.")
        if self._mirrors.git.login is None and not _WITHOUT_LOGIN.match(url.strip()):
            raise NotARepositoryError(
                f"{url} cannot be read without credentials, which only admins may use. Give an "
                "https address that anybody can read."
            )
        await network_options(url, private)

    async def read(self, url: str, directory: str, private: bool = True) -> list[TreeFile]:
        """Return every plain file below a directory; see `SandboxDriver.read_tree`.

        Raises:
            SandboxError: there is no such directory, it is too large, or it cannot be read.
        """
        inside = _inside(directory)
        path = await asyncio.to_thread(local_path, url)
        if path is not None:
            target = path.joinpath(*inside.parts)
            if await asyncio.to_thread(target.is_dir) and not _bare(path):
                return await asyncio.to_thread(_read_disk, path, target)
        return await self._read_mirror(url, inside, private)

    async def find(self, url: str, name: str, private: bool = True) -> list[TreeFile]:
        """Return every plain file of one name; see `SandboxDriver.find_in_tree`.

        Raises:
            SandboxError: there is no such source, it has too many, or it cannot be read.
        """
        path = await asyncio.to_thread(local_path, url)
        if path is not None and not _bare(path) and await asyncio.to_thread(path.is_dir):
            return await asyncio.to_thread(_find_disk, path, name)
        source = await self._fresh(url, private)
        commit = await self._mirrors.start_commit(source, _discard)
        if commit is None:
            return []
        mirror = self._mirrors.path(source.id)
        git = self._mirrors.git
        pattern = f":(glob)**/{name}"
        try:
            listed = await git.run("ls-tree", "-r", "-l", "-z", commit, directory=mirror)
            # In a thread: a hostile source has millions of files.
            if not await asyncio.to_thread(_check, _named(listed, name), _Bounds(source.name)):
                return []
            # Of a tree, not a commit: its attributes could let git fill in any length of text.
            archive = ("archive", "--format=tar", f"{commit}^{{tree}}", "--", pattern)
            packed = await git.run(*archive, directory=mirror)
        except SourceGitError as e:
            raise SandboxError(f"{source.name} could not be read.", str(e)) from e
        return await asyncio.to_thread(_read_archive, packed)

    async def _read_mirror(self, url: str, inside: PurePosixPath, private: bool) -> list[TreeFile]:
        source = await self._fresh(url, private)
        commit = await self._mirrors.start_commit(source, _discard)
        name = f"{source.name}#{inside}" if inside.parts else source.name
        if commit is None:
            raise SandboxError(f"{source.name} has no commit yet.")
        tree = f"{commit}:{_colon(inside)}"
        return await self._archived(self._mirrors.path(source.id), tree, name)

    def _may_exist(self, url: str) -> bool:
        path = local_path(url)
        # With `exists` a name that is too long counts as missing, instead of an error.
        exists = path is None or os.path.exists(path)  # noqa: PTH110
        return exists or self._mirrors.path(self._key(url)).is_dir()

    def _key(self, url: str) -> str:
        """Return the key of a source's mirror."""
        return f"{self._prefix}-{sha256(url.encode()).hexdigest()[:32]}"

    async def _fresh(self, url: str, private: bool) -> RepositorySource:
        """Return the source with its mirror, updated unless it was recently."""
        key = self._key(url)
        source = RepositorySource(key, without_password(url), url, default_branch="")
        now = time.monotonic()
        if now - self._fetched.get(key, -FRESH_SECONDS) >= FRESH_SECONDS:
            await self._mirrors.refresh(source, _discard, private)
            self._fetched[key] = now
        return source

    async def _archived(self, mirror: Path, tree: str, name: str) -> list[TreeFile]:
        git = self._mirrors.git
        try:
            listed = await git.run("ls-tree", "-r", "-l", "-z", tree, directory=mirror)
        except SourceGitError as e:
            raise SandboxError(f"{name} is not a directory of the repository.", str(e)) from e
        await asyncio.to_thread(_check, _named(listed, ""), _Bounds(name))
        try:
            packed = await git.run("archive", "--format=tar", tree, directory=mirror)
        except SourceGitError as e:
            raise SandboxError(f"{name} could not be read.", str(e)) from e
        return await asyncio.to_thread(_read_archive, packed)


def _named(listed: str, name: str) -> Iterator[str]:
    """Yield the records of `git ls-tree -l -z` with a file name, or all of them without one."""
    end = -1
    while (end := listed.find(f"{name}\0", end + 1)) >= 0:
        start = listed.rfind("\0", 0, end) + 1
        if not name or listed[end - 1] in "\t/":
            yield listed[start:end]
        end += len(name)


def _check(records: Iterable[str], bounds: _Bounds) -> int:
    """Check the records as far as they are within the limits; return how many there are."""
    count = total = 0
    for count, record in enumerate(records, 1):
        size = record.partition("\t")[0].split()[-1]
        total += int(size) if size.isdigit() else 0
        bounds.check(count, total)
    return count


def _discard(line: str) -> None:
    """Drop a line of progress."""


def _colon(inside: PurePosixPath) -> str:
    return str(inside) if inside.parts else ""


def _inside(directory: str) -> PurePosixPath:
    inside = PurePosixPath(directory.strip("/"))
    if ".." in inside.parts:
        raise SandboxError(f"{directory!r} leaves its source.")
    return inside


def _bare(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir()


def _read_disk(root: Path, directory: Path) -> list[TreeFile]:
    true_root = root.resolve()
    if not directory.resolve().is_relative_to(true_root):
        raise SandboxError(f"{directory} leads out of {root}.")
    bounds, size, files = _Bounds(str(directory)), 0, list[TreeFile]()
    for parent, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if name != ".git")
        for name in sorted(names):
            file = _read_file(Path(parent, name))
            if file is None:
                continue
            content, executable = file
            size += len(content)
            path = Path(parent, name).relative_to(directory).as_posix()
            files.append(TreeFile(path, content, executable))
            bounds.check(len(files), size)
    return files


def _find_disk(root: Path, name: str) -> list[TreeFile]:
    bounds, size, files = _Bounds(str(root)), 0, list[TreeFile]()
    for visited, (parent, directories, names) in enumerate(os.walk(root)):
        if visited >= MOST_DIRECTORIES:
            raise SandboxError(f"{root} has more than {MOST_DIRECTORIES} directories.")
        directories[:] = sorted(
            directory for directory in directories if directory not in PASSED_BY
        )
        file = _read_file(Path(parent, name)) if name in names else None
        if file is None:
            continue
        size += len(file[0])
        bounds.check(len(files) + 1, size)
        files.append(TreeFile(Path(parent, name).relative_to(root).as_posix(), *file))
    return files


def _read_file(path: Path) -> tuple[bytes, bool] | None:
    """Return a plain file's content and whether it is executable; None for any other kind."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            return None
        return file.read(MOST_BYTES + 1), bool(mode & 0o100)


def _read_archive(packed: str) -> list[TreeFile]:
    """Return the files of an archive, which git has printed."""
    files: list[TreeFile] = []
    with tarfile.open(fileobj=BytesIO(packed.encode(errors="surrogateescape"))) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() else None
            if content is not None:
                files.append(TreeFile(member.name, content.read(), bool(member.mode & 0o100)))
    return files
