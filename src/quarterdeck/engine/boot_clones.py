"""Clones of repositories that an engine in a container makes before it starts.

They are fetched from the service over git's HTTP protocol: the credentials of sources stay there. A
clone is made elsewhere and moved into place when it is complete.

On an empty volume the last save (`wire.saves`) is restored as well. The engine's journal, which is
made after that, says whether it is to be done, or done again. A volume on a node that the replica left
before its newest work is emptied first.
"""

import asyncio
import os
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from quarterdeck.engine.dial_home import ServiceAddress
from quarterdeck.engine.journal import FILE_NAME
from quarterdeck.local.files import read_file, write_file
from quarterdeck.local.processes import end_process
from quarterdeck.wire.dial_home import BootClone, BootConfig, UncommittedPack
from quarterdeck.wire.saves import FILES_REF, PLAIN, SAVED_REF, STASHES, WorkSave, saved_refs

_LAST_LINES = 5
_SHOWN = 5
"""Names of files that are shown."""


MARK = "incarnation"
"""File of the state that names the start which has used the volume last."""


class CloneFailedError(Exception):
    """A repository could not be cloned. The text is git's."""


class NoFilesError(Exception):
    """The volume does not have the workspace's files."""


async def make_clones(boot: BootConfig, address: ServiceAddress) -> str | None:
    """Make the clones that are missing, and `~/.gitconfig` in a new home directory.

    Returns what was restored from a save, for a person; None when nothing was.

    Raises:
        CloneFailedError: git failed.
        NoFilesError: the volume is empty.
        OSError: a file cannot be written.
    """
    state = Path(boot.config.state_dir)
    if boot.incarnation is not None:
        newest = boot.newest if boot.save is not None else []
        places = (Path(boot.config.workspace_dir), Path.home(), state)
        if boot.needs_files and not await asyncio.to_thread((state / MARK).exists):
            raise NoFilesError(
                "The volume with the replica's files is missing on this node. Their last save is "
                f"saves/{address.workspace_id}.git in the directory of the service that had the "
                "replica before."
            )
        await asyncio.to_thread(_take_up, places, boot.incarnation, newest)
    parts = state / "clones"
    await asyncio.to_thread(_prepare, Path.home() / ".gitconfig", boot.git_config, parts)
    journal = state / FILE_NAME
    save = None if await asyncio.to_thread(journal.exists) else boot.save
    heads = save.heads if save is not None else {}
    for clone in boot.clones:
        if not await asyncio.to_thread(os.path.lexists, clone.path):
            part = parts / clone.repository_id
            await asyncio.to_thread(part.mkdir, parents=True)
            making = _Clone(part, clone, address, boot.config.secret)
            await making.make(heads.get(clone.repository_id))
            await asyncio.to_thread(part.rename, clone.path)
    if save is None:
        return None
    part = parts / "files.git"
    await asyncio.to_thread(part.mkdir, parents=True)
    await _Files(part, address, boot.config.secret).restore(state.parent)
    await asyncio.to_thread(shutil.rmtree, part)
    return restored_text(save, [one.name for one in boot.clones if one.repository_id in heads])


def _take_up(places: Sequence[Path], incarnation: str, newest: Sequence[str]) -> None:
    """Mark the volume as this incarnation's; empty it if its files are older than the newest work.

    Args:
        places: the directories on the volume, the last one that of the state.
    """
    mark = places[-1] / MARK
    try:
        last = read_file(mark).decode()
    except FileNotFoundError:
        last = None
    if last is not None and newest and last not in newest:
        # The mark is kept: a removal that was interrupted is repeated.
        entries = [one for place in places for one in place.iterdir()]
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                _remove(entry)
            elif entry != mark:
                entry.unlink()
    write_file(mark, incarnation)


def _remove(directory: Path) -> None:
    """Remove a directory, whatever an agent did to the modes in it."""
    subprocess.run(["chmod", "-R", "u+rwX", "--", directory], stderr=subprocess.DEVNULL)
    shutil.rmtree(directory)


def _prepare(identity: Path, git_config: str, parts: Path) -> None:
    """Write the identity unless there is one; remove what an interrupted start left."""
    if not os.path.lexists(identity):
        identity.write_text(git_config)
    shutil.rmtree(parts, ignore_errors=True)


def _keep_plain(repository: Path) -> None:
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info/attributes").write_text(PLAIN)


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def restored_text(save: WorkSave, repositories: Sequence[str]) -> str:
    """Return the notice about files that were restored from a save."""
    at = f"{save.at:%Y-%m-%d %H:%M:%S} UTC" if save.at else "an unknown time"
    what = [*repositories, "the canvas", "the sessions of agents"]
    if save.forked:
        text = f"The files are those of the other replica's save of {at}"
    else:
        text = (
            f"The replica's files were lost. They were restored from its save of {at}: "
            f"{', '.join(what[:-1])} and {what[-1]}"
        )
    text += ". What is newer, and what git ignores, was not saved."
    if save.lost:
        text += f" The save was damaged. Lost are: {_first(save.lost)}."
    if save.left_out:
        text += f" Too large for it were: {_first(save.left_out)}."
    return text


def _first(names: Sequence[str]) -> str:
    more = "" if len(names) <= _SHOWN else f" and {len(names) - _SHOWN} more"
    return ", ".join(names[:_SHOWN]) + more


class _Repository:
    """git in a directory that is being made, with the service's repositories at hand."""

    umask = -1
    """Of git; -1: as it is."""

    def __init__(self, part: Path, name: str, address: ServiceAddress, secret: str) -> None:
        self._part = part
        self._name = name
        self._origin = f"{address.url.rstrip('/')}/v1/origin"
        self._saved_url = f"{self._origin}/{address.workspace_id}"
        self._environment = _with_headers(address.headers(secret))
        if address.ca is not None:
            self._environment["GIT_SSL_CAINFO"] = str(address.ca)

    async def _fetch(self, url: str, *refs: str) -> None:
        fetch = ("fetch", "--quiet", "--no-write-fetch-head", "--update-head-ok", "--no-tags")
        await self._git(*fetch, url, *refs)

    async def _has(self, name: str) -> bool:
        return await self._status("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}") == 0

    async def _status(self, *arguments: str) -> int:
        status, _, _ = await self._run(arguments, b"")
        return status

    async def _git(self, *arguments: str, data: bytes = b"") -> str:
        status, output, errors = await self._run(arguments, data)
        if status != 0:
            lines = errors.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
            raise CloneFailedError("\n".join([f"{self._name} could not be cloned.", *lines]))
        return output.decode(errors="replace")

    async def _run(self, arguments: tuple[str, ...], data: bytes) -> tuple[int, bytes, bytes]:
        process = await asyncio.create_subprocess_exec(
            "git",
            *("-C", str(self._part)),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
            umask=self.umask,
        )
        try:
            output, errors = await process.communicate(data)
        finally:
            await end_process(process)
        assert process.returncode is not None
        return process.returncode, output, errors


class _Files(_Repository):
    """The saved files of `HOME` and of the engine."""

    umask = 0o077

    def __init__(self, part: Path, address: ServiceAddress, secret: str) -> None:
        super().__init__(part, "The save", address, secret)

    async def restore(self, top: Path) -> None:
        """Write them, readable by their owner alone."""
        await self._git("init", "--quiet", "--bare", "--template=")
        await self._fetch(self._saved_url, f"+{FILES_REF}:{FILES_REF}")
        await asyncio.to_thread(_keep_plain, self._part)
        await self._git("read-tree", FILES_REF)
        # From the top: of other directories git would write only what is below them.
        places = ("-C", str(top), f"--git-dir={self._part}", f"--work-tree={top}")
        await self._git(*places, "checkout-index", "--all", "--force")


class _Clone(_Repository):
    def __init__(self, part: Path, clone: BootClone, address: ServiceAddress, secret: str) -> None:
        super().__init__(part, clone.name, address, secret)
        self._clone = clone
        self._url = f"{self._origin}/{quote(clone.repository_id)}"

    async def make(self, saved_head: str | None) -> None:
        """Fetch, then check out the branch and uncommitted changes: those of the save, if given."""
        clone = self._clone
        await self._git("init", "--quiet", "--template=")
        refs = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"]
        await self._git("remote", "add", "origin", clone.url)
        await self._fetch(self._url, *refs)
        await asyncio.to_thread(_append, self._part / ".git/config", clone.git_config)
        if clone.base_commit is not None and not await self._has(clone.base_commit):
            await self._fetch(self._url, clone.base_commit)
        head = f"refs/remotes/origin/{clone.default_branch}"
        if await self._has(head):
            await self._git("symbolic-ref", "refs/remotes/origin/HEAD", head)
        if saved_head is not None:
            await self._restore_save(saved_head)
            return
        if clone.base_commit is None:
            await self._git("symbolic-ref", "HEAD", f"refs/heads/{clone.branch}")
            return
        await self._git("checkout", "--quiet", "--no-track", "-b", clone.branch, clone.base_commit)
        if clone.uncommitted is not None:
            await self._restore(clone.uncommitted)

    async def _restore(self, changes: UncommittedPack) -> None:
        """Put the changes into the files, uncommitted."""
        pack = ("index-pack", "--stdin", "--fix-thin", "--strict")
        await self._git(*pack, data=await asyncio.to_thread(b64decode, changes.pack))
        found = await self._git("rev-list", "--parents", "--max-count=1", changes.commit)
        if found.split() != [changes.commit, self._clone.base_commit]:
            raise CloneFailedError(
                f"{self._clone.name}: the uncommitted changes are of another commit."
            )
        await self._git("update-ref", changes.ref, changes.commit)
        await self._git("read-tree", "-m", "-u", "HEAD", changes.commit)
        await self._leave_uncommitted("HEAD")

    async def _restore_save(self, head: str) -> None:
        """Bring back the refs, what was checked out, and the files as they were."""
        saved = saved_refs(self._clone.repository_id)
        await self._fetch(self._saved_url, f"+{saved}/*:refs/*")
        if head.startswith("refs/"):
            await self._git("symbolic-ref", "HEAD", head)
        else:
            await self._git("update-ref", "--no-deref", "HEAD", head)
        await self._git("read-tree", "--reset", "-u", SAVED_REF)
        await self._leave_uncommitted("HEAD" if await self._has("HEAD") else "--empty")
        stashes = ("for-each-ref", "--sort=-refname", "--format=%(refname) %(subject)", STASHES)
        for line in (await self._git(*stashes)).splitlines():
            ref, _, title = line.partition(" ")
            await self._git("stash", "store", "--quiet", "-m", title, ref)
            await self._git("update-ref", "-d", ref)

    async def _leave_uncommitted(self, tree: str) -> None:
        """Take a tree for the index, and leave the files as they are."""
        await self._git("read-tree", tree)
        await self._status("update-index", "-q", "--refresh")  # 1 says that there are changes


def _with_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a git that sends these headers, which no argument shows."""
    settings = [("http.extraHeader", f"{name}: {value}") for name, value in headers.items()]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment
