"""Archives of workspaces: made whole before the files go, and the files whole before they go.

Of a workspace there is, at every moment, a directory with all its files or an archive of them. When
both are there (something was killed between two steps), the directory is the newer.

    pack     files -> ID.part -> ID.tar.gz | files -> .packed-ID -> gone
    unpack   ID.tar.gz -> .unpacking-ID -> files | ID.tar.gz -> gone
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.layout import Places, places_of
from quarterdeck.sandboxes.port import ArchiveError, SandboxError
from quarterdeck.sandboxes.removal import remove_tree

PROGRAM = (sys.executable, "-I", "-m", "quarterdeck.sandboxes.archive")
T = TypeVar("T")

_PACKED = ".packed-"
_UNPACKING = ".unpacking-"


class Archives:
    """Packs and unpacks. The caller lets one thing at a time happen to a workspace."""

    def __init__(self, home: Home) -> None:
        self._home = home

    async def pack(self, places: Places) -> None:
        """See `SandboxDriver.pack`.

        Raises:
            OSError, SandboxError: nothing was removed.
        """
        if places.root.is_dir():
            await self._write(places)
            await _finish(_put_aside, places.root, self._aside(_PACKED, places))
        elif not self.file(places).exists():
            raise SandboxError("The workspace has no files that could be packed.")
        await _finish(remove_tree, self._aside(_PACKED, places))

    async def unpack(self, places: Places, packed: bool) -> None:
        """See `SandboxDriver.unpack`.

        Raises:
            ArchiveError: it is missing or damaged.
            OSError, SandboxError: a file could not be written.
        """
        archive, aside = self.file(places), self._aside(_UNPACKING, places)
        if places.root.is_dir():
            await _finish(archive.unlink, missing_ok=True)
            return
        if not archive.exists():
            if packed:
                raise ArchiveError(
                    "The archive with the replica's files is missing. "
                    "Bring it back to its place, then wake the replica.",
                    str(archive),
                )
            return
        await _finish(remove_tree, aside)
        try:
            await _run("unpack", str(archive), str(aside))
            await _finish(_put_aside, aside, places.root)
        except _FailedError as e:
            raise ArchiveError(
                "The archive with the replica's files is damaged. "
                "Put a whole copy in its place, then wake the replica.",
                f"{archive}: {e}",
            ) from e
        finally:
            # a try cut short would keep the disk full
            await _finish(remove_tree, aside)
        await _finish(archive.unlink)

    async def remove(self, places: Places) -> None:
        """Removes whatever there is of an archive."""
        await _finish(self._remove, places)

    async def tidy(self, places: Places) -> None:
        """Removes what a killed service left half made."""
        for kind in (_PACKED, _UNPACKING):
            await _finish(remove_tree, self._aside(kind, places))
        self._part(places).unlink(missing_ok=True)

    def untidy(self) -> list[Places]:
        """The workspaces of which something half made may lie about."""
        names = [path.name.removesuffix(".part") for path in self._home.archives.glob("*.part")]
        for kind in (_PACKED, _UNPACKING):
            found = self._home.workspaces.glob(f"{kind}*")
            names += [path.name.removeprefix(kind) for path in found]
        return [places_of(self._home, name) for name in names]

    async def _write(self, places: Places) -> None:
        self._home.archives.mkdir(mode=0o700, exist_ok=True)
        part = self._part(places)
        part.unlink(missing_ok=True)
        left_out = [places.parts.name, places.record.name, places.status.name]
        try:
            await _run("pack", str(places.root), str(part), *left_out)
            await _finish(_put_in_place, part, self.file(places))
        except _FailedError as e:
            raise SandboxError("The replica's files could not be packed.", str(e)) from e
        finally:
            part.unlink(missing_ok=True)

    def _remove(self, places: Places) -> None:
        self.file(places).unlink(missing_ok=True)
        self._part(places).unlink(missing_ok=True)
        for kind in (_PACKED, _UNPACKING):
            remove_tree(self._aside(kind, places))

    def file(self, places: Places) -> Path:
        """Where a workspace's archive is, or would be."""
        return self._home.archives / f"{places.root.name}.tar.gz"

    def _part(self, places: Places) -> Path:
        return self._home.archives / f"{places.root.name}.part"

    def _aside(self, kind: str, places: Places) -> Path:
        return places.root.with_name(kind + places.root.name)


async def _finish(work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Runs a step in a thread, to its end also when cancelled: nothing else may happen meanwhile."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments, **options))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


def _put_aside(path: Path, aside: Path) -> None:
    """Moves a whole directory in one step, and makes sure that the step lasts."""
    remove_tree(aside)
    path.rename(aside)
    _sync(aside.parent)


def _put_in_place(part: Path, archive: Path) -> None:
    part.replace(archive)
    _sync(archive.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def _run(*words: str) -> None:
    """Runs the packing program; cancelled, it is killed.

    Raises:
        _Failed: it said what went wrong.
    """
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        str(os.getpid()),
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        said, _ = await process.communicate()
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode == 0:
        return
    failure = json.loads(said or "{}")
    number, message = int(failure.get("errno", 0)), str(failure.get("message", "It was killed."))
    if number:
        raise OSError(number, os.strerror(number), message)
    raise _FailedError(message)


class _FailedError(Exception):
    """The program could not do it; says why."""
