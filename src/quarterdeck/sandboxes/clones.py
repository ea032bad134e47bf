"""Clones of repositories in a workspace."""

import asyncio
import os
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from quarterdeck.sandboxes.archives import copy_tree
from quarterdeck.sandboxes.errors import CloneError, DiskFullError, SandboxError
from quarterdeck.sandboxes.git import GitRunner, SourceGitError, quoted
from quarterdeck.sandboxes.layout import MIRRORS_INSIDE, Places, make_directory, write_for_user
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import Progress, RepositorySource, UncommittedCommit
from quarterdeck.sandboxes.processes import SandboxUser
from quarterdeck.sandboxes.record import CloneBook, CloneEntry, Mode, load_book, store_book
from quarterdeck.sandboxes.source_port import START_REF
from quarterdeck.sandboxes.sources import safe_name, spellings, without_password
from quarterdeck.sandboxes.trees import Entered, remove_tree, walk
from quarterdeck.wire.base import shown
from quarterdeck.wire.dial_home import BootClone, UncommittedPack
from quarterdeck.wire.git_state import EngineRepository

CHECKOUT_SECONDS = 1800.0
_ROOM = 1 << 20  # bytes; with less, the cause of git's failure is a full disk
_NEUTRAL_NAME = "quarterdeck"
_NEUTRAL_EMAIL = "quarterdeck@localhost"


async def copy_workspace(source: Places, places: Places) -> None:
    """See `SandboxDriver.copy_files`. The clones keep their names, owners and origins.

    Raises:
        SandboxError: there are no files, or they cannot be copied.
        OSError: the disk is full.
    """
    if places.files.is_dir():
        return
    if not source.files.is_dir():
        raise SandboxError("The other replica has no files here; it has to be woken first.")
    part = places.parts / "copy"
    for directory in (places.root, places.parts):
        directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    try:
        await asyncio.to_thread(remove_tree, part)
        await copy_tree(source.files, part)
        book = await asyncio.to_thread(load_book, source.clones)
        await asyncio.to_thread(store_book, places.clones, book)
        await asyncio.to_thread(part.rename, places.files)
    finally:
        await asyncio.to_thread(remove_tree, part)


def objects_path(mirrors: Mirrors, repository_id: str, mode: Mode) -> str:
    """Return the path of a mirror's objects for a workspace's processes."""
    if mode == "bubblewrap":
        return f"{MIRRORS_INSIDE}/{mirrors.path(repository_id).name}/objects"
    return str(mirrors.objects(repository_id))


@dataclass(frozen=True)
class Provisioner:
    """Makes workspaces for one kind of sandbox.

    A clone is made elsewhere and moved into place when it is complete, so the workspace has only
    finished clones, and a repeated call makes only missing ones.
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
        uncommitted: Mapping[str, UncommittedCommit],
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
                changes = uncommitted.get(source.id)
                await self._clone(places, book, source, branch, report, changes)
        return [described(workspace_dir, book, source) for source in repositories]

    async def _directories(self, places: Places) -> None:
        fresh = await asyncio.to_thread(self._make_directories, places)
        if not fresh:
            return
        text = (await git_identity(self.mirrors.git)).encode()
        await asyncio.to_thread(write_for_user, places.home / ".gitconfig", text, self.user, 0o644)

    def _make_directories(self, places: Places) -> bool:
        for directory in (places.root, places.parts):
            directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        created = {
            directory: make_directory(directory, self.user) for directory in places.owned_inside
        }
        return created[places.home] or not any(places.home.iterdir())

    async def _clone(
        self,
        places: Places,
        book: CloneBook,
        source: RepositorySource,
        branch: str,
        report: Progress,
        changes: UncommittedCommit | None,
    ) -> None:
        report(f"{source.name}: bringing its mirror up to date")
        await self.mirrors.refresh(source, report)
        report(f"{source.name}: cloning")
        part = places.parts / safe_name(source.id)
        try:
            await asyncio.to_thread(remove_tree, part)
            base = await self._fill(part, source, branch, report)
            if changes is not None:
                await self._restore_uncommitted(part, source, base, changes)
            objects = await asyncio.to_thread(self._finish, part, source)
            directory = free_name(places, book, source)
            book.clones[source.id] = CloneEntry(
                directory=directory, base_commit=base, objects=objects
            )
            await asyncio.to_thread(store_book, places.clones, book)
            await asyncio.to_thread(part.rename, places.files / directory)
        except SourceGitError as e:
            full = await asyncio.to_thread(_is_full, places.parts)
            raise _failure(source, str(e), full) from e
        finally:
            # an interrupted clone would keep the disk full
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
        await asyncio.to_thread(_append, part / ".git/config", carried_origin(source))
        if start is None:
            await git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}", directory=part)
            return None
        checkout = ("checkout", "--quiet", "--no-track", "-b", branch, start)
        await git.run(*checkout, directory=part, seconds=CHECKOUT_SECONDS)
        return start

    async def _restore_uncommitted(
        self, part: Path, source: RepositorySource, base: str | None, changes: UncommittedCommit
    ) -> None:
        """Put the user's uncommitted changes into a new clone, uncommitted.

        Nothing in the clone's configuration or attributes runs a program yet.
        """
        git = self.mirrors.git
        await git.index_pack(part, _whole(changes.pack))
        arguments = ("rev-list", "--parents", "--max-count=1", changes.commit)
        if await git.run(*arguments, directory=part) != f"{changes.commit} {base}":
            raise CloneError(f"{source.name}: the uncommitted changes are of another commit.")
        await git.run("update-ref", START_REF, changes.commit, directory=part)
        trees = ("HEAD", changes.commit)
        await git.run("read-tree", "-m", "-u", *trees, directory=part, seconds=CHECKOUT_SECONDS)
        await git.run("read-tree", "HEAD", directory=part)
        with suppress(SourceGitError):  # its exit status only says that there are changes
            await git.run("update-index", "-q", "--refresh", directory=part)

    def _finish(self, part: Path, source: RepositorySource) -> str | None:
        """Give a clone to the user, with the mirror's path as seen by the user."""
        alternates = part / ".git/objects/info/alternates"
        objects = None
        if alternates.exists():
            objects = objects_path(self.mirrors, source.id, self.mode)
            alternates.write_text(f"{objects}\n")
        if self.user.drop:
            _give(part, self.user)
        return objects


async def git_identity(git: GitRunner) -> str:
    """Return the git configuration of a new home directory: the name and address of the user."""
    name = await _of_user(git, "user.name") or _NEUTRAL_NAME
    email = await _of_user(git, "user.email") or _NEUTRAL_EMAIL
    # The keys of the user stay outside, whatever the machine's configuration asks for.
    unsigned = "[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n"
    return f"[user]\n\tname = {quoted(name)}\n\temail = {quoted(email)}\n{unsigned}"


async def _of_user(git: GitRunner, key: str) -> str | None:
    try:
        return await git.run("config", "--global", "--includes", "--get", key, private=False)
    except SourceGitError:
        return None


def carried_origin(source: RepositorySource) -> str:
    """Return the configuration that lets git in a new clone reach its source by `git-remote-qd`, in any spelling of its address.

    `remote.origin.url` stays the true address, for tools that read it. It is therefore not replaced
    itself (`insteadOf`), except for pushes.
    """
    url = without_password(source.url)
    lines = ['[remote "origin"]', "\tvcs = qd", f"\tqdRepository = {quoted(source.name)}"]
    spelled, pushed = spellings(url)
    if pushed:  # with a pushurl `pushInsteadOf` leaves the remote alone
        lines.append(f"\tpushurl = {quoted(url)}")
    lines += [f"[url {quoted(f'qd::{source.name}')}]"]
    lines += [f"\tinsteadOf = {quoted(spelling)}" for spelling in spelled]
    lines += [f"\tpushInsteadOf = {quoted(url)}"] if pushed else []
    return "\n".join(lines) + "\n"


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


async def _whole(data: bytes) -> AsyncGenerator[bytes]:
    yield data


def _is_full(directory: Path) -> bool:
    room = os.statvfs(directory)
    return room.f_bavail * room.f_frsize < _ROOM or (room.f_files > 0 and room.f_favail == 0)


_DAMAGE = re.compile(r"corrupt|bad object|unable to (?:read|parse)|invalid object|missing .*object")


def _failure(source: RepositorySource, details: str, full: bool) -> SandboxError:
    if full:
        return DiskFullError("The disk is full. Make room, and try again.", details)
    if _DAMAGE.search(details):
        details += (
            f"\nThe service's copy of the repository, mirrors/{source.id} in its home, is damaged. Move it out "
            "of that directory, keep it, and try again: a new copy is fetched."
        )
    return CloneError(f"{source.name} could not be cloned.", details)


def _is_there(places: Places, book: CloneBook, source: RepositorySource) -> bool:
    entry = book.clones.get(source.id)
    return entry is not None and os.path.lexists(places.files / entry.directory)


def free_name(places: Places, book: CloneBook, source: RepositorySource) -> str:
    """Return a directory of the workspace that no other repository has."""
    entry = book.clones.get(source.id)
    if entry:
        return entry.directory
    name, used = safe_name(source.name), {entry.directory for entry in book.clones.values()}
    candidates = [name, *(f"{name}-{number}" for number in range(2, len(used) + 100))]
    return next(
        candidate
        for candidate in candidates
        if candidate not in used and not os.path.lexists(places.files / candidate)
    )


def clones_of(
    places: Places, workspace_dir: str, sources: Sequence[RepositorySource]
) -> list[EngineRepository]:
    """Return the repositories that are already in a workspace."""
    book = load_book(places.clones)
    return [
        described(workspace_dir, book, source) for source in sources if source.id in book.clones
    ]


def described(workspace_dir: str, book: CloneBook, source: RepositorySource) -> EngineRepository:
    """Return a repository of a workspace's book."""
    entry = book.clones[source.id]
    return EngineRepository(
        id=UUID(source.id),
        name=entry.directory,
        path=f"{workspace_dir}/{entry.directory}",
        default_branch=source.default_branch,
        base_branch=source.start.branch if source.start else None,
        base_commit=entry.base_commit,
    )


def _give(directory: Path, user: SandboxUser) -> None:
    os.chown(directory, user.uid, user.gid)
    for visit in walk(directory):
        if isinstance(visit, Entered):
            for entry in visit.entries:
                name, above = entry.name, visit.descriptor
                os.chown(name, user.uid, user.gid, dir_fd=above, follow_symlinks=False)


REFRESH_SECONDS = 5.0
"""A source that takes longer to answer is not refreshed."""


async def default_tree(mirrors: Mirrors, source: RepositorySource) -> list[str]:
    """See `SandboxDriver.tree`.

    Raises:
        SandboxError: there is no mirror, or it cannot be read.
    """
    mirror = mirrors.path(source.id)
    if not await asyncio.to_thread(mirror.is_dir):
        raise SandboxError(f"{source.name} is no longer connected.")
    try:
        async with asyncio.timeout(REFRESH_SECONDS):
            await mirrors.refresh(source, _discard)
    except TimeoutError:
        pass  # what was fetched before is used
    commit = await mirrors.start_commit(replace(source, start=None), _discard)
    if commit is None:
        return []
    try:
        output = await mirrors.git.run(
            "ls-tree", "-r", "-z", "--full-tree", commit, directory=mirror
        )
    except SourceGitError as e:
        raise SandboxError(f"The files of {source.name} cannot be listed.", str(e)) from e
    return await asyncio.to_thread(_files, output)


def _files(output: str) -> list[str]:
    records = (record.partition("\t") for record in output.split("\0"))
    return [shown(os.fsencode(name)) for head, _, name in records if head[7:11] == "blob"]


def _discard(line: str) -> None:
    """Drop a line of progress."""


def boot_clone(
    repository: EngineRepository,
    source: RepositorySource,
    branch: str,
    uncommitted: Mapping[str, UncommittedCommit],
) -> BootClone:
    """Return what an engine in a container needs for a clone."""
    changes = uncommitted.get(source.id)
    return BootClone(
        repository_id=source.id,
        name=source.name,
        path=repository.path,
        url=without_password(source.url),
        branch=branch,
        base_commit=repository.base_commit,
        default_branch=source.default_branch,
        git_config=carried_origin(source),
        uncommitted=changes
        and UncommittedPack(
            commit=changes.commit, pack=b64encode(changes.pack).decode(), ref=START_REF
        ),
    )
