"""Pushes commits of a workspace to the source of its repository, as the user.

The workspace's own repository is not used: its commits arrive as a pack, are checked in a
repository made for this push, whose configuration is ours, and are pushed from there.

pack -> quarantine (alternates: the mirror) -> git push -> the source
"""

import asyncio
import json
import re
import shlex
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.local.files import write_file
from quarterdeck.sandboxes.errors import CloneError, PushError
from quarterdeck.sandboxes.git import (
    NOTHING_RUN,
    GitLimitError,
    GitRunner,
    GitTimeoutError,
    PackTooLargeError,
    SourceGitError,
)
from quarterdeck.sandboxes.mirrors import OUTGOING, Mirrors
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.sandboxes.source_port import RefUpdate
from quarterdeck.sandboxes.sources import local_path, without_password
from quarterdeck.sandboxes.trees import remove_abandoned, remove_tree, temporary_name

PUSH_SECONDS = 1800.0
_OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PUSH = (
    # However large the objects are, memory is bounded.
    *("-c", "pack.windowMemory=256m", "-c", "core.bigFileThreshold=64m"),
    *("-c", "push.gpgSign=false", "push", "--porcelain", "--no-verify", "--atomic"),
    *("--no-follow-tags", "--recurse-submodules=no"),
)
_RECEIVE = (
    # Work trees stay as they are, also those that `worktree list` shows without their branch, such
    # as during a rebase. Maintenance is the user's. Both run what the configuration names.
    *("-c", "receive.denyCurrentBranch=refuse", "-c", "receive.autoGC=false"),
)
"""Settings of a repository on this machine while it is pushed to."""
_UNREACHABLE = re.compile(
    "Connection refused|Connection timed out|Could not resolve|Failed to connect|Couldn't connect"
    "|Network is unreachable|No route to host"
)
_REJECTED = re.compile(r"^!\t[^\t]*\t(.*)$", re.MULTILINE)
_REASONS = {
    "non-fast-forward": "The branch has other commits at the source. Update the replica first.",
    "fetch first": "The branch has other commits at the source. Update the replica first.",
    "stale info": "The branch has changed at the source since it was last seen here. It has been"
    " fetched now: look at it, and then push again.",
}


@dataclass(frozen=True)
class OutgoingPushes:
    """Pushes to the sources of repositories; `mirrors` has their state."""

    mirrors: Mirrors
    _locks: defaultdict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    """One push at a time to a source: of two that create the same branch, git refuses one."""

    async def push(
        self, source: RepositorySource, pack: AsyncIterable[bytes], updates: Sequence[RefUpdate]
    ) -> str:
        """Check a pack and push; all updates happen or none. Return the output of the source's git.

        Args:
            pack: what the mirror lacks of the updates' commits.
            updates: branches and tags.

        Raises:
            PushError: the pack is damaged, a branch is checked out, or the source refused.
            CloneError: there is no mirror, and none could be made.
        """
        for update in updates:
            await self._check(update)
        if not self.mirrors.path(source.id).is_dir():
            await self.mirrors.connect(source.id, source.url)
        async with self._quarantine(source) as place:
            await self._receive(place, pack)
            await self._refuse_checked_out(source, updates)
            async with self._locks[source.id]:
                output = await self._push(place, source, updates)
        await self.mirrors.refresh(source, _ignored)
        return output

    async def _check(self, update: RefUpdate) -> None:
        ref, commit = update.ref, update.commit
        if not ref.startswith(("refs/heads/", "refs/tags/")):
            raise PushError(f"{ref} is neither a branch nor a tag.")
        try:
            await self.mirrors.git.run("check-ref-format", ref)
        except SourceGitError as error:
            raise PushError(f"{ref} is not a valid name.") from error
        if commit is not None and not _OBJECT.fullmatch(commit):
            raise PushError(f"{commit} is not the name of a commit.")

    @asynccontextmanager
    async def _quarantine(self, source: RepositorySource) -> AsyncGenerator[Path]:
        root = self.mirrors.root
        await asyncio.to_thread(remove_abandoned, root, OUTGOING)
        place = root / temporary_name(OUTGOING)
        try:
            try:
                await self.mirrors.git.run("init", "--quiet", "--bare", "--template=", str(place))
            except SourceGitError as error:
                raise PushError("The push could not be prepared.", str(error)) from error
            information = place / "objects" / "info"
            objects = self.mirrors.objects(source.id)
            await asyncio.to_thread(write_alternates, information, objects)
            yield place
        finally:
            await asyncio.to_thread(remove_tree, place)

    async def _receive(self, place: Path, pack: AsyncIterable[bytes]) -> None:
        try:
            await self.mirrors.git.index_pack(place, pack)
        except PackTooLargeError as error:
            raise PushError(
                "The replica's commits are too large to be pushed.", str(error)
            ) from error
        except SourceGitError as error:
            raise PushError("The replica's commits cannot be read.", str(error)) from error

    async def _refuse_checked_out(
        self, source: RepositorySource, updates: Sequence[RefUpdate]
    ) -> None:
        path = await asyncio.to_thread(local_path, source.url)
        if path is None:
            return
        listed = ("-C", str(path), "worktree", "list", "--porcelain")
        places = _checked_out(await self.mirrors.git.run(*listed, private=False))
        for update in updates:
            if place := places.get(update.ref):
                branch = update.ref.removeprefix("refs/heads/")
                raise PushError(
                    f"{branch} is checked out in {place}.",
                    "Push another branch, or bring the work in there with: qd replica merge.",
                )

    async def _push(
        self, place: Path, source: RepositorySource, updates: Sequence[RefUpdate]
    ) -> str:
        options: list[str] = []
        refspecs: list[str] = []
        for update in updates:
            if update.force:
                expected = update.known or await self._mirrored_commit(source, update.ref)
                options.append(f"--force-with-lease={update.ref}:{expected or ''}")
            refspecs.append(f"{update.commit or ''}:{update.ref}")
        if await asyncio.to_thread(local_path, source.url) is not None:
            # Programs of a repository on this machine are only for the user's work in it.
            settings = (*NOTHING_RUN, *_RECEIVE)
            # It writes to another disk, maybe, than the one that its files are limited for.
            receive = f"ulimit -S -f unlimited 2>/dev/null; git {shlex.join(settings)} receive-pack"
            options.append(f"--receive-pack={receive}")
        git: GitRunner = self.mirrors.git
        try:
            address, reach = await self.mirrors.origin(source)
        except CloneError as error:
            raise PushError(str(error), error.details) from error
        command = (*reach, *_PUSH, *options, "--", address, *refspecs)
        try:
            return await git.run(
                *command, directory=place, private=False, seconds=PUSH_SECONDS, with_errors=True
            )
        except GitTimeoutError as error:
            raise PushError(
                f"{without_password(source.url)} did not answer.", str(error)
            ) from error
        except SourceGitError as error:
            message = str(error).replace(source.url, without_password(source.url))
            match = _REJECTED.search(message)
            reason = match[1] if match else ""
            if "stale info" in reason:
                await self.mirrors.refresh(source, _ignored)
            url = without_password(source.url)
            refusal = f"{url} refused the push."
            if not match and "hung up unexpectedly" in message:
                refusal = f"The connection to {url} was lost during the push. Push again."
            elif not match and isinstance(error, GitLimitError):
                refusal = "The push takes too much memory or time."
            elif not match and _UNREACHABLE.search(message):
                refusal = f"{url} cannot be reached."
            explanation = next((text for key, text in _REASONS.items() if key in reason), refusal)
            raise PushError(explanation, message) from error

    async def _mirrored_commit(self, source: RepositorySource, ref: str) -> str | None:
        try:
            arguments = ("rev-parse", "--quiet", "--verify", ref)
            return await self.mirrors.git.run(*arguments, directory=self.mirrors.path(source.id))
        except SourceGitError:
            return None


def _checked_out(listed: str) -> dict[str, str]:
    """Return the work tree of each branch that is checked out; a bare repository has none."""
    work_trees: dict[str, str] = {}
    path = ""
    for line in listed.splitlines():
        key, _, value = line.partition(" ")
        if key == "worktree":
            path = value
        elif key == "branch":
            work_trees[value] = path
    return work_trees


def write_alternates(information: Path, *objects: Path) -> None:
    """Let a repository borrow the objects in some directories; `information` is its `objects/info`."""
    information.mkdir(parents=True, exist_ok=True)
    # git reads a quoted path like a string of C, of which JSON's are a part.
    lines = [f"{json.dumps(str(path), ensure_ascii=False)}\n" for path in objects]
    path, text = information / "alternates", "".join(lines)
    if not path.exists() or path.read_bytes() != text.encode():
        write_file(path, text)  # in one step: git may be reading it


def _ignored(line: str) -> None:
    """Ignore a failed refresh: the next caller that needs the mirror refreshes it."""
