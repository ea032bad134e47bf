"""Putting a workspace on disk: its directories, and a clone of each of its repositories."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from quarterdeck.sandboxes.git import DiskFullError, GitError, quoted
from quarterdeck.sandboxes.guarded import make_directory, write_file
from quarterdeck.sandboxes.identity import SandboxUser
from quarterdeck.sandboxes.layout import MIRRORS_INSIDE, Places
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import CloneError, Progress, RepositorySource, SandboxError
from quarterdeck.sandboxes.record import CloneBook, CloneEntry, Mode, load_book, store
from quarterdeck.sandboxes.removal import remove_tree
from quarterdeck.sandboxes.sources import safe_name, without_password
from quarterdeck.wire.engine import EngineRepository

CHECKOUT_SECONDS = 1800.0
_ROOM = 1 << 20  # bytes; with less, git fails for want of room whatever it says
_NEUTRAL_NAME = "quarterdeck"
_NEUTRAL_EMAIL = "quarterdeck@localhost"


def objects_path(mirrors: Mirrors, repository_id: str, mode: Mode) -> str:
    """Where a workspace's processes find a mirror's objects."""
    if mode == "bubblewrap":
        return f"{MIRRORS_INSIDE}/{mirrors.path(repository_id).name}/objects"
    return str(mirrors.objects(repository_id))


@dataclass(frozen=True)
class Provisioner:
    """Makes workspaces for one kind of sandbox.

    A clone is made aside and moved into place when it is whole, so what lies in the workspace is
    always finished, and asking again only makes what is missing.
    """

    mirrors: Mirrors
    user: SandboxUser
    mode: Mode

    async def provision(
        self,
        places: Places,
        workspace_dir: str,
        repositories: list[RepositorySource],
        branch: str,
        report: Progress,
    ) -> list[EngineRepository]:
        """See `SandboxDriver.provision`.

        Raises:
            CloneError: a repository could not be cloned.
            OSError, SandboxError: the disk is full, or a directory cannot be made.
        """
        await self._directories(places)
        book = await asyncio.to_thread(load_book, places.clones)
        for source in repositories:
            if not _is_there(places, book, source):
                await self._clone(places, book, source, branch, report)
        return [_described(workspace_dir, book, source) for source in repositories]

    async def _directories(self, places: Places) -> None:
        fresh = await asyncio.to_thread(self._make_directories, places)
        if not fresh:
            return
        text = await self._identity()
        await asyncio.to_thread(write_file, places.home / ".gitconfig", text, self.user, 0o644)

    def _make_directories(self, places: Places) -> bool:
        for directory in (places.root, places.parts):
            directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        made = {
            directory: make_directory(directory, self.user) for directory in places.owned_inside
        }
        return made[places.home] or not any(places.home.iterdir())

    async def _identity(self) -> bytes:
        name = await self._of_user("user.name") or _NEUTRAL_NAME
        email = await self._of_user("user.email") or _NEUTRAL_EMAIL
        return f"[user]\n\tname = {quoted(name)}\n\temail = {quoted(email)}\n".encode()

    async def _of_user(self, key: str) -> str | None:
        question = ("config", "--global", "--includes", "--get", key)
        try:
            return await self.mirrors.git.run(*question, private=False)
        except GitError:
            return None

    async def _clone(
        self,
        places: Places,
        book: CloneBook,
        source: RepositorySource,
        branch: str,
        report: Progress,
    ) -> None:
        report(f"{source.name}: bringing its mirror up to date")
        await self.mirrors.refresh(source, report)
        report(f"{source.name}: cloning")
        part = places.parts / safe_name(source.id)
        try:
            await asyncio.to_thread(remove_tree, part)
            base = await self._fill(part, source, branch, report)
            objects = await asyncio.to_thread(self._finish, part, source)
            directory = _free_name(places, book, source)
            book.clones[source.id] = CloneEntry(
                directory=directory, base_commit=base, objects=objects
            )
            await asyncio.to_thread(store, places.clones, book)
            await asyncio.to_thread(part.rename, places.files / directory)
        except GitError as e:
            full = await asyncio.to_thread(_is_full, places.parts)
            raise _failure(source, str(e), full) from e
        finally:
            # a clone cut short would keep the disk full
            await asyncio.to_thread(remove_tree, part)

    async def _fill(
        self, part: Path, source: RepositorySource, branch: str, report: Progress
    ) -> str | None:
        git = self.mirrors.git
        mirror = str(self.mirrors.path(source.id))
        start = await self.mirrors.start_commit(source, report)
        shared = ("clone", "--quiet", "--shared", "--no-checkout", "--template=")
        await git.run(*shared, "--", mirror, str(part), seconds=CHECKOUT_SECONDS)
        await git.run("remote", "set-url", "origin", without_password(source.url), directory=part)
        if start is None:
            await git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}", directory=part)
            return None
        checkout = ("checkout", "--quiet", "--no-track", "-b", branch, start)
        await git.run(*checkout, directory=part, seconds=CHECKOUT_SECONDS)
        return start

    def _finish(self, part: Path, source: RepositorySource) -> str | None:
        """Makes a clone the user's own, with the mirror where the user will see it."""
        alternates = part / ".git/objects/info/alternates"
        objects = None
        if alternates.exists():
            objects = objects_path(self.mirrors, source.id, self.mode)
            alternates.write_text(f"{objects}\n")
        if self.user.drop:
            _give(part, self.user)
        return objects


def _is_full(directory: Path) -> bool:
    room = os.statvfs(directory)
    return room.f_bavail * room.f_frsize < _ROOM or (room.f_files > 0 and room.f_favail == 0)


def _failure(source: RepositorySource, said: str, full: bool) -> SandboxError:
    if full:
        return DiskFullError("The disk is full. Make room, and try again.", said)
    return CloneError(f"{source.name} could not be cloned.", said)


def _is_there(places: Places, book: CloneBook, source: RepositorySource) -> bool:
    entry = book.clones.get(source.id)
    return entry is not None and os.path.lexists(places.files / entry.directory)


def _free_name(places: Places, book: CloneBook, source: RepositorySource) -> str:
    """A directory of the workspace that no other repository has."""
    known = book.clones.get(source.id)
    if known:
        return known.directory
    name, taken = safe_name(source.name), {entry.directory for entry in book.clones.values()}
    candidates = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 100))]
    return next(
        candidate
        for candidate in candidates
        if candidate not in taken and not os.path.lexists(places.files / candidate)
    )


def _described(workspace_dir: str, book: CloneBook, source: RepositorySource) -> EngineRepository:
    entry = book.clones[source.id]
    return EngineRepository(
        id=UUID(source.id),
        name=entry.directory,
        path=f"{workspace_dir}/{entry.directory}",
        default_branch=source.default_branch,
        base_commit=entry.base_commit,
    )


def _give(directory: Path, user: SandboxUser) -> None:
    os.chown(directory, user.uid, user.gid)
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            os.chown(Path(parent, name), user.uid, user.gid, follow_symlinks=False)
