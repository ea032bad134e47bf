"""Clones of repositories that an engine in a container makes before it starts.

They are fetched from the service over git's HTTP protocol: the credentials of sources stay there. A
clone is made elsewhere and moved into place when it is complete.
"""

import asyncio
import os
import shutil
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from quarterdeck.engine.dial_home import ServiceAddress
from quarterdeck.local.processes import end_process
from quarterdeck.wire.dial_home import BootClone, BootConfig, Uncommitted

_LAST_LINES = 5


class CloneFailedError(Exception):
    """A repository could not be cloned. The text is git's."""


async def make_clones(boot: BootConfig, address: ServiceAddress) -> None:
    """Make the clones that are missing, and `~/.gitconfig` in a new home directory.

    Raises:
        CloneFailedError: git failed.
        OSError: a file cannot be written.
    """
    parts = Path(boot.config.state_dir) / "clones"
    await asyncio.to_thread(_prepare, Path.home() / ".gitconfig", boot.git_config, parts)
    for clone in boot.clones:
        if not await asyncio.to_thread(os.path.lexists, clone.path):
            part = parts / clone.repository_id
            await asyncio.to_thread(part.mkdir, parents=True)
            await _Clone(part, clone, address, boot.config.secret).make()
            await asyncio.to_thread(part.rename, clone.path)


def _prepare(identity: Path, git_config: str, parts: Path) -> None:
    """Write the identity unless there is one; remove what an interrupted start left."""
    if not os.path.lexists(identity):
        identity.write_text(git_config)
    shutil.rmtree(parts, ignore_errors=True)


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


class _Clone:
    def __init__(self, part: Path, clone: BootClone, address: ServiceAddress, secret: str) -> None:
        self._part = part
        self._clone = clone
        self._url = f"{address.url.rstrip('/')}/v1/origin/{quote(clone.repository_id)}"
        self._environment = _with_headers(address.headers(secret))

    async def make(self) -> None:
        """Fetch, check out the branch, restore uncommitted changes."""
        clone = self._clone
        await self._git("init", "--quiet", "--template=")
        refs = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"]
        await self._git("remote", "add", "origin", clone.url)
        await self._git("fetch", "--quiet", "--no-write-fetch-head", self._url, *refs)
        await asyncio.to_thread(_append, self._part / ".git/config", clone.git_config)
        if clone.base_commit is None:
            await self._git("symbolic-ref", "HEAD", f"refs/heads/{clone.branch}")
            return
        if not await self._has(clone.base_commit):
            wanted = ("fetch", "--quiet", "--no-write-fetch-head", self._url, clone.base_commit)
            await self._git(*wanted)
        head = f"refs/remotes/origin/{clone.default_branch}"
        if await self._has(head):
            await self._git("symbolic-ref", "refs/remotes/origin/HEAD", head)
        await self._git("checkout", "--quiet", "--no-track", "-b", clone.branch, clone.base_commit)
        if clone.uncommitted is not None:
            await self._restore(clone.uncommitted)

    async def _restore(self, changes: Uncommitted) -> None:
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
        await self._git("read-tree", "HEAD")
        await self._status("update-index", "-q", "--refresh")  # 1 says that there are changes

    async def _has(self, name: str) -> bool:
        return await self._status("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}") == 0

    async def _status(self, *arguments: str) -> int:
        status, _, _ = await self._run(arguments, b"")
        return status

    async def _git(self, *arguments: str, data: bytes = b"") -> str:
        status, output, errors = await self._run(arguments, data)
        if status != 0:
            lines = errors.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
            raise CloneFailedError("\n".join([f"{self._clone.name} could not be cloned.", *lines]))
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
        )
        try:
            output, errors = await process.communicate(data)
        finally:
            await end_process(process)
        assert process.returncode is not None
        return process.returncode, output, errors


def _with_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a git that sends these headers, which no argument shows."""
    settings = [("http.extraHeader", f"{name}: {value}") for name, value in headers.items()]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment
