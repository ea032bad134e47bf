"""Archives of workspaces: completed before the files are removed, and the reverse.

A workspace has, at every moment, a directory with all its files or an archive of them. When it has
both (something was killed between two steps), the directory is the newer.

    pack     files -> ID.part -> ID.tar.gz | files -> .packed-ID -> gone
    unpack   ID.tar.gz -> .unpacking-ID -> files | ID.tar.gz -> gone
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from quarterdeck.local.files import sync_directory
from quarterdeck.local.home import Home
from quarterdeck.local.processes import end_process
from quarterdeck.sandboxes.errors import ArchiveError, SandboxError
from quarterdeck.sandboxes.layout import Places, places_of
from quarterdeck.sandboxes.trees import remove_tree

PROGRAM = (sys.executable, "-I", "-m", "quarterdeck.sandboxes.archive")
T = TypeVar("T")

_PACKED = ".packed-"
_UNPACKING = ".unpacking-"


class Archives:
    """Packs and unpacks. The caller serializes operations on a workspace."""

    def __init__(self, home: Home) -> None:
        self._home = home

    async def pack(self, places: Places) -> None:
        """See `SandboxDriver.pack`.

        Raises:
            OSError, SandboxError: nothing was removed.
        """
        if places.root.is_dir():
            await self._write(places)
            await _finish(_move, places.root, self._aside(_PACKED, places))
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
            await _finish(_move, aside, places.root)
        except _FailedError as e:
            raise ArchiveError(
                "The archive with the replica's files is damaged. "
                "Put a whole copy in its place, then wake the replica.",
                f"{archive}: {e}",
            ) from e
        finally:
            # an interrupted attempt would keep the disk full
            await _finish(remove_tree, aside)
        await _finish(archive.unlink)

    async def remove(self, places: Places) -> None:
        """Remove an archive and its remains."""
        await _finish(self._remove, places)

    async def tidy(self, places: Places) -> None:
        """Remove unfinished files that a killed service left."""
        for kind in (_PACKED, _UNPACKING):
            await _finish(remove_tree, self._aside(kind, places))
        self._part(places).unlink(missing_ok=True)

    def unfinished(self) -> list[Places]:
        """Return the workspaces that may have unfinished files."""
        names = [path.name.removesuffix(".part") for path in self._home.archives.glob("*.part")]
        for kind in (_PACKED, _UNPACKING):
            paths = self._home.workspaces.glob(f"{kind}*")
            names += [path.name.removeprefix(kind) for path in paths]
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
        """Return the path of a workspace's archive."""
        return self._home.archives / f"{places.root.name}.tar.gz"

    def _part(self, places: Places) -> Path:
        return self._home.archives / f"{places.root.name}.part"

    def _aside(self, kind: str, places: Places) -> Path:
        return places.root.with_name(kind + places.root.name)


async def copy_tree(tree: Path, new_tree: Path) -> None:
    """Copy a tree that programs inside may change meanwhile, and follow none of its links.

    Raises:
        OSError, SandboxError: it cannot be read, or the new one cannot be written.
    """
    try:
        await _run("copy", str(tree), str(new_tree))
    except _FailedError as e:
        raise SandboxError("The files could not be copied.", str(e)) from e


async def _finish(work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Run a step in a thread, to its end even when cancelled: nothing else may happen meanwhile."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments, **options))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


def _move(path: Path, aside: Path) -> None:
    """Move a whole directory in one step, durably."""
    remove_tree(aside)
    path.rename(aside)
    sync_directory(aside.parent)


def _put_in_place(part: Path, archive: Path) -> None:
    part.replace(archive)
    sync_directory(archive.parent)


async def _run(*arguments: str) -> None:
    """Run the packing program; kill it when cancelled.

    Raises:
        _FailedError: it reported an error.
    """
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        str(os.getpid()),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        output, _ = await process.communicate()
    finally:
        await end_process(process)
    if process.returncode == 0:
        return
    failure = json.loads(output or "{}")
    number, message = int(failure.get("errno", 0)), str(failure.get("message", "It was killed."))
    if number:
        raise OSError(number, os.strerror(number), message or None)
    raise _FailedError(message)


class _FailedError(Exception):
    """The program failed; the text says why."""
