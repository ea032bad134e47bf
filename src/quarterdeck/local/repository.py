"""The user's repository: its checkout and its uncommitted changes.

Nothing here changes it. The user's configuration applies: identity, signing, filters. Hooks are not
run.
"""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Self

from quarterdeck.local.git import CheckoutError, NoRepositoryError, run_git

_SNAPSHOT = (
    # No parts of the index outside the copy.
    *("-c", "core.splitIndex=false", "-c", "core.untrackedCache=false"),
    *("-c", "advice.addEmbeddedRepo=false", "--literal-pathspecs"),
)
_SNAPSHOT_AUTHOR = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "quarterdeck"), ("EMAIL", "quarterdeck@localhost"))
}
_REMOTE_URL = re.compile(r"(?:\w+://)?(?:[^@/]*@)?([^/:@]+)(?::[0-9]+(?=/))?[:/]+(.+)")
_UNPACKED = 32
"""Factor by which a snapshot's files may exceed its limit before they are compressed."""
_MOST_NAMED = 3


class TooLargeError(CheckoutError):
    """The uncommitted changes exceed the limit; `details` names the largest files."""


@dataclass(frozen=True)
class CheckoutState:
    """The state of a checkout before changes are brought in."""

    branch: str | None
    """None on a detached head."""
    uncommitted: int
    """Number of files that differ from the newest commit, new files included."""


@dataclass(frozen=True)
class CheckoutStart:
    """The part of the checkout that a replica starts from."""

    base: str
    """The branch that is checked out; on a detached head, its commit."""
    unpushed: int = 0
    """Number of commits here that the source does not have on that branch, as last fetched."""


@dataclass(frozen=True)
class UncommittedBundle:
    """Uncommitted changes, new files included, as a git bundle of one commit on top of `base`."""

    base: str
    bundle: bytes


@dataclass(frozen=True)
class LocalRepository:
    """One work tree; `git_directory` is its part of the repository.

    `environment` is for git. Every method may raise `CheckoutError`.
    """

    top: Path
    git_directory: Path
    environment: Mapping[str, str]
    bounded: ClassVar[bool] = False
    """Whether git works on what a replica sent."""

    @classmethod
    async def find(cls, directory: Path, environment: Mapping[str, str] | None = None) -> Self:
        """Return the checkout that a directory is in.

        Args:
            environment: variables besides those of this process, such as the profile of `qd`.

        Raises:
            NoRepositoryError: it is not in one.
        """
        variables = {
            **os.environ,
            **(environment or {}),
            "LC_ALL": "C",
            # git starts `git-remote-qd`, which is installed next to this program.
            "PATH": f"{Path(sys.prefix, 'bin')}{os.pathsep}{os.environ.get('PATH', '')}",
        }
        repository = cls(directory, directory, variables)
        try:
            arguments = ("rev-parse", "--show-toplevel", "--absolute-git-dir")
            top, _, git_directory = (await repository._text(*arguments)).partition("\n")
        except NoRepositoryError:
            raise
        except CheckoutError as error:
            raise NoRepositoryError(
                f"{directory} is not in a git repository.", error.details or str(error)
            ) from error
        return cls(Path(top), Path(git_directory), variables)

    async def state(self) -> CheckoutState:
        """Return the branch, and the number of uncommitted files. The index is not refreshed."""
        arguments = ("status", "--porcelain", "-z", "--untracked-files=all")
        output = await self._git("--no-optional-locks", *arguments)
        return CheckoutState(
            branch=await self._optional("symbolic-ref", "--quiet", "--short", "HEAD"),
            uncommitted=len([entry for entry in output.split(b"\0") if entry[2:3] == b" "]),
        )

    async def branches(self) -> list[str]:
        """Return the branches, the one with the newest commit first."""
        form = ("--format=%(refname:lstrip=2)", "--sort=-committerdate")
        return (await self._text("for-each-ref", *form, "refs/heads")).splitlines()

    async def start(self, source: str) -> CheckoutStart | None:
        """Return where a replica of a repository starts by default; None if it is another one.

        Args:
            source: the path of this checkout, or the URL of one of its remotes. A remote has to
                have the branch, or on a detached head the commit.
        """
        head = await self._optional("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        if head is None:
            return None
        branch = await self._optional("symbolic-ref", "--quiet", "--short", "HEAD")
        if await self._is_part_of(source):
            return CheckoutStart(branch or head)
        for remote in await self._remotes_at(source):
            if branch is None:
                arguments = ("for-each-ref", "--count=1", f"--contains={head}")
                return (
                    CheckoutStart(head)
                    if await self._text(*arguments, f"refs/remotes/{remote}")
                    else None
                )
            upstream = f"refs/remotes/{remote}/{branch}"
            if await self._optional("rev-parse", "--quiet", "--verify", upstream) is None:
                return None
            return CheckoutStart(
                branch, int(await self._text("rev-list", "--count", f"{upstream}..{head}"))
            )
        return None

    async def is_clone(self, source: str, commit: str | None) -> bool:
        """Return whether a repository has this source, or a commit of the source.

        Without a commit the result is true.
        """
        if await self._is_part_of(source) or await self._remotes_at(source):
            return True
        arguments = ("rev-parse", "--quiet", "--verify")
        return (
            commit is None or await self._optional(*arguments, f"{commit}^{{commit}}") is not None
        )

    async def _remotes_at(self, source: str) -> list[str]:
        """Return the remotes with the URL of a source, as it is configured or as git rewrites it."""
        remotes: list[str] = []
        for remote in (await self._text("remote")).splitlines():
            url = await self._optional("remote", "get-url", remote) or ""
            configured = await self._optional("config", "--get", f"remote.{remote}.url") or ""
            if _plain_url(source) in (_plain_url(url), _plain_url(configured)):
                remotes.append(remote)
        return remotes

    async def snapshot(self, limit: int) -> UncommittedBundle | None:
        """Return the uncommitted changes; None when there are none. The repository is not changed.

        Files are added as by `git add`, with the user's filters. The index is a copy, and
        new objects are put into a directory that is removed.

        Args:
            limit: most bytes of the bundle.

        Raises:
            TooLargeError: it would be larger.
        """
        base = await self._optional("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        if base is None:
            raise CheckoutError("Uncommitted changes cannot be included before the first commit.")
        objects = await self._text("rev-parse", "--path-format=absolute", "--git-path", "objects")
        async with self._index(copied=True) as index:
            new_objects = index.with_name("objects")
            await asyncio.to_thread(new_objects.mkdir)
            inherited = self.environment.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
            # git reads a quoted path like a string of C, of which JSON's are a part.
            alternates = [
                json.dumps(objects, ensure_ascii=False),
                *([inherited] if inherited else []),
            ]
            variables = {
                **self.environment,
                **_SNAPSHOT_AUTHOR,
                "GIT_OBJECT_DIRECTORY": str(new_objects),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(alternates),
            }
            repository = replace(self, environment=variables)
            return await repository._snapshot(base, index, limit)

    async def _is_part_of(self, source: str) -> bool:
        """Return whether a source is the path of this repository or of another work tree of it."""
        path = source.removeprefix("file://")
        if not await asyncio.to_thread(os.path.isdir, path):
            return False
        arguments = ("rev-parse", "--path-format=absolute", "--git-common-dir")
        return await self._optional("-C", path, *arguments) == await self._text(*arguments)

    async def _snapshot(self, base: str, index: Path, limit: int) -> UncommittedBundle | None:
        arguments = ("ls-files", "--others", "--exclude-standard", "-z", "--full-name")
        output = await self._git(*_SNAPSHOT, *arguments, index=index)
        # Another repository below this one is listed as a directory, and is left out.
        new = [name for name in split_names(output) if not name.endswith("/")]
        edited = split_names(
            await self._git(*_SNAPSHOT, "diff-files", "--name-only", "-z", index=index)
        )
        sizes = await asyncio.to_thread(_sizes, self.top, [*new, *edited])
        if sum(sizes.values()) > _UNPACKED * limit:
            raise _too_large(sizes, limit)
        await self._git(*_SNAPSHOT, "add", "--sparse", "--update", index=index)
        if new:
            names = b"".join(os.fsencode(name) + b"\0" for name in new)
            listed = ("--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
            await self._git(*_SNAPSHOT, "add", *listed, index=index, data=names)
        tree = await self._text(*_SNAPSHOT, "write-tree", index=index)
        if tree == await self._text("rev-parse", f"{base}^{{tree}}"):
            return None
        message = b"Uncommitted changes\n"
        commit = await self._text("commit-tree", tree, "-p", base, "-F", "-", data=message)
        pack = await self._git(
            *("pack-objects", "--quiet", "--revs", "--thin", "--delta-base-offset", "--stdout"),
            data=f"{commit}\n^{base}\n".encode(),
        )
        head = f"# v2 git bundle\n-{base}\n{commit} refs/heads/uncommitted\n\n"
        bundle = head.encode() + pack
        if len(bundle) > limit:
            raise _too_large(sizes, limit)
        return UncommittedBundle(base, bundle)

    # git

    @asynccontextmanager
    async def _index(self, *, copied: bool = False) -> AsyncGenerator[Path]:
        """Yield the path of a temporary index, empty or a copy of the checkout's."""
        with TemporaryDirectory(prefix="qd-index-") as directory:
            index = Path(directory, "index")
            if copied:
                await asyncio.to_thread(copy_index, self.git_directory / "index", index)
            yield index

    async def _text(self, *arguments: str, data: bytes = b"", index: Path | None = None) -> str:
        return os.fsdecode(await self._git(*arguments, data=data, index=index)).removesuffix("\n")

    async def _optional(self, *arguments: str) -> str | None:
        try:
            return await self._text(*arguments) or None
        except CheckoutError:
            return None

    async def _git(
        self,
        *arguments: str,
        data: bytes = b"",
        index: Path | None = None,
        allowed: Sequence[int] = (0,),
        printed: bool = False,
    ) -> bytes:
        """Run git here; see `run_git`."""
        environment = dict(self.environment)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        return await run_git(
            *arguments,
            directory=self.top,
            environment=environment,
            data=data,
            allowed=allowed,
            printed=printed,
            bounded=self.bounded,
        )


def _plain_url(url: str) -> str:
    """Return host and path of a URL, the same for `https://host/a.git` and `git@host:a`."""
    url = url.strip().rstrip("/").removesuffix(".git")
    if match := _REMOTE_URL.fullmatch(url):
        return f"{match[1].lower()}/{match[2]}"
    return url


def _sizes(top: Path, names: Sequence[str]) -> dict[str, int]:
    """Return the sizes of existing files, in bytes."""
    sizes: dict[str, int] = {}
    for name in names:
        with suppress(OSError):
            sizes[name] = (top / name).lstat().st_size
    return sizes


def _too_large(sizes: Mapping[str, int], limit: int) -> TooLargeError:
    largest = sorted(sizes.items(), key=lambda item: item[1], reverse=True)[:_MOST_NAMED]
    named = ", ".join(f"{name} ({max(1, size >> 20)} MB)" for name, size in largest)
    text = f"The uncommitted changes are too large: at most {limit >> 20} MB can be included."
    return TooLargeError(text, named)


def split_names(output: bytes) -> list[str]:
    """Return the names in git output where each ends with a zero byte."""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def copy_index(index: Path, copy: Path) -> None:
    """Copy an index; a repository without files has none."""
    try:
        # With its modification time: git compares files with it to find changes of the same second.
        shutil.copy2(index, copy)
    except FileNotFoundError:
        copy.unlink(missing_ok=True)
