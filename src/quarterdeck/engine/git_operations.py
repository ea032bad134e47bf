"""Git operations in a workspace: differences, commit, update, checkpoints and rewind.

They run in the workspace's sandbox, with the repository's own hooks and filters, which are trusted
no more than the agent.

A checkpoint holds a repository's files at the start of a turn: a commit at

`refs/qd/turns/MESSAGE` or, made by a rewind to undo it, at `refs/qd/rewinds/...`.
"""

import asyncio
import fcntl
import logging
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from quarterdeck.engine.git import (
    GitError,
    base_of,
    commit_time,
    large_files,
    read_commit,
    run_git,
    without,
)
from quarterdeck.local.git_directory import git_locks, remove_left_locks
from quarterdeck.wire.git import Checkpoint, Checkpoints, Committed, PackHeader, Updated
from quarterdeck.wire.git_state import CheckoutDiff, EngineRepository, GitCommit, RepositoryDiffs

logger = logging.getLogger(__name__)

DIFF_BYTES = 1 << 20
"""A longer difference is cut after its last whole line."""
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M")


async def read_diffs(
    repositories: Sequence[EngineRepository], environment: Mapping[str, str]
) -> RepositoryDiffs:
    """Return the diff of each repository; those that git cannot read are left out."""
    diffs: list[CheckoutDiff] = []
    for repository in repositories:
        try:
            text = await read_diff(repository, environment)
        except GitError:
            continue  # its state shows no counts either
        diffs.append(CheckoutDiff(name=repository.name, diff=text))
    return RepositoryDiffs(diffs=diffs)


async def read_diff(repository: EngineRepository, environment: Mapping[str, str]) -> str:
    """Return the diff with commits, uncommitted changes and new files, but no ignored ones.

    Raises:
        GitError: no repository there, an unknown base, or git took too long.
    """
    path = Path(repository.path)
    branch = repository.base_branch or repository.default_branch
    base = await base_of(path, repository.base_commit, branch, environment)
    async with index_with_new_files(path, environment) as variables:
        large = await large_files(path, base, variables)
        output = await run_git(
            path, variables, *_DIFF, base, "--", *without(large), most=DIFF_BYTES
        )
    output = b"".join(map(_large_diff, large)) + output
    if len(output) >= DIFF_BYTES:
        output = output[: output.rfind(b"\n", 0, DIFF_BYTES) + 1]
    return output.decode(errors="replace")


def _large_diff(name: str) -> bytes:
    """Return what git prints of a file that it does not compare."""
    plain = name.isprintable() and not {'"', "\\"} & set(name)
    # Like git: octal numbers in quotes.
    text = name if plain else "".join(f"\\{byte:03o}" for byte in os.fsencode(name))
    old, new = (f"{side}/{text}" if plain else f'"{side}/{text}"' for side in "ab")
    return os.fsencode(f"diff --git {old} {new}\nBinary files {old} and {new} differ\n")


@asynccontextmanager
async def index_with_new_files(
    path: Path, environment: Mapping[str, str]
) -> AsyncGenerator[dict[str, str]]:
    """Yield variables for a copy of the index that lists new files, so that git compares them."""
    objects = await git_path(path, environment, "objects")
    alternates = environment.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
    async with own_index(path, environment) as index:
        variables = {
            **environment,
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(index.parent),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(filter(None, [str(objects), alternates])),
        }
        await run_git(path, variables, "add", "--intent-to-add", "--", ".")
        yield variables


@asynccontextmanager
async def own_index(path: Path, environment: Mapping[str, str]) -> AsyncGenerator[Path]:
    """Copy the index of a checkout to a directory that is removed afterwards."""
    index = await git_path(path, environment, "index")
    with TemporaryDirectory(prefix="qd-index-") as directory:
        own = Path(directory, "index")
        await asyncio.to_thread(_copy, index, own)
        yield own


async def git_path(path: Path, environment: Mapping[str, str], name: str) -> Path:
    """Return the path of a file in git's directory.

    Raises:
        GitError: there is no repository.
    """
    arguments = ("rev-parse", "--path-format=absolute", "--git-path", name)
    return Path(os.fsdecode(await run_git(path, environment, *arguments)).rstrip("\n"))


def _copy(index: Path, own: Path) -> None:
    """Copy an index; a repository without files has none.

    Its time is kept: git compares the content of files that were changed in the same second.
    """
    with suppress(FileNotFoundError):
        shutil.copy2(index, own)


async def make_ready(
    repositories: Sequence[EngineRepository], environment: Mapping[str, str]
) -> None:
    """Prepare repositories for programs of agents, none of which may run yet.

    Locks of git processes that ended with an earlier engine are removed. The index is refreshed,
    after which the state is read quickly: that leaves the index to the agents.
    """
    for repository in repositories:
        path = Path(repository.path)
        try:
            checkout = CheckoutOperations(path, environment)
            await checkout.recover()
            try:
                refresh = ("update-index", "-q", "--unmerged", "--refresh")
                await run_git(path, environment, *refresh)
            finally:
                await checkout.recover()  # it may have been killed at its time limit
        except (GitError, OSError) as error:
            logger.warning("the repository %s could not be prepared: %s", repository.name, error)


NOTE = "qd-update"
"""File in git's directory that names the running operation."""
UNFINISHED = {"merge": ("MERGE_HEAD",), "rebase": ("rebase-merge", "rebase-apply")}
"""Files in git's directory that exist while an operation is not finished."""
IN_THE_WAY = ("error: Your local changes", "error: cannot rebase: You")
"""How git's message begins when uncommitted changes of tracked files are in the way."""
HOOK_SECONDS = 600.0
"""How long a commit, a merge or a rebase may take: hooks run in them."""


class NothingToCommitError(GitError):
    """The work tree has no changes."""


class UncommittedChangesError(GitError):
    """Uncommitted changes are in the way, which git can stash."""


class MergeConflictError(GitError):
    """The base branch and the checkout cannot be merged automatically, or a merge is not resolved."""

    def __init__(self, message: str, conflicts: Sequence[str]) -> None:
        super().__init__(message)
        self.conflicts = list(conflicts)


class CheckoutOperations:
    """Operations on one checkout. `environment` is for git."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        self._environment = environment

    async def commit(self, message: str, paths: Sequence[str] | None) -> Committed:
        """Commit everything that is not ignored, or some files and directories of it.

        Raises:
            NothingToCommitError: there is nothing, or nothing in `paths`.
            MergeConflictError: files in conflict still have conflict markers.
            GitError: a path is unknown, a hook refused, or an operation is unfinished.
        """
        async with self._recoverable("commit"):
            # Literal names: a file may be called `*`.
            chosen = ["--", *(f":(top,literal){path}" for path in paths or [])]
            changed = await self._git(
                "status", "--porcelain", "-z", "--untracked-files=all", *chosen
            )
            if not changed:
                raise NothingToCommitError("There is nothing to commit.")
            if marked := await self._conflict_markers():
                raise MergeConflictError("Conflict markers are left.", marked)
            await self._git("add", "--all", *(chosen if paths else ()))
            only = ["--only", *chosen] if paths else []
            await self._git(
                "commit",
                "--quiet",
                "--file=-",
                "--cleanup=whitespace",
                *only,
                data=message.encode(),
            )
            commit = await read_commit(self._path, "HEAD", self._environment)
            branch = await self._optional("symbolic-ref", "--quiet", "--short", "HEAD")
            summary = GitCommit(
                sha=commit.sha, title=commit.title, author=commit.author, at=commit.at
            )
            return Committed(commit=summary, branch=branch)

    async def update(self, base_branch: str, base: str, *, rebase: bool, stash: bool) -> Updated:
        """Merge the base branch, or rebase onto it; a conflict leaves the checkout unchanged.

        If the stashed changes conflict with what came in, they stay in the stash, too.

        Args:
            base_branch: a branch of `origin`, whose remote-tracking branch becomes `base`.
            base: its newest commit, whose objects are present.

        Raises:
            MergeConflictError: with the files; nothing was changed.
            UncommittedChangesError: they are in the way, and `stash` is false.
            GitError: another operation is not finished, or git refused.
        """
        operation = "rebase" if rebase else "merge"
        noted = await self._text("rev-parse", "HEAD")
        async with self._recoverable(f"{operation} {noted} {base}"):
            if unresolved := await self._conflicts():
                raise MergeConflictError("Conflicts are not resolved.", unresolved)
            for name in UNFINISHED:
                if await self._unfinished(name):
                    raise GitError(f"A {name} is not finished.")
            before = await self._text("rev-parse", "HEAD")  # taking back an operation moves it
            await self._git("update-ref", f"refs/remotes/origin/{base_branch}", base)
            options = ["--autostash"] if stash else []
            if rebase:
                command = ["rebase", "--quiet", *options, base]
            else:
                message = f"Merge branch '{base_branch}'"
                command = ["merge", "--quiet", "--no-edit", *options, "-m", message, base]
            try:
                await self._git(*command)
            except GitError as error:
                conflicts = await self._conflicts()
                await self._abort(operation)
                if conflicts:
                    raise MergeConflictError(
                        f"{base_branch} changes the same lines as this branch.", conflicts
                    ) from error
                if str(error).startswith(IN_THE_WAY) and not stash:
                    raise UncommittedChangesError(str(error)) from error
                raise
            head = await self._text("rev-parse", "HEAD")
            # git ends with status 0 although stashed changes conflict.
            conflicts = await self._conflicts() if stash else []
            return Updated(head=head, base=base, changed=head != before, conflicts=conflicts)

    @asynccontextmanager
    async def _recoverable(self, operation: str) -> AsyncGenerator[None]:
        """Note an operation while it runs, so that the next one aborts it if it was killed.

        Raises:
            GitError: another one is running.
        """
        note = await git_path(self._path, self._environment, NOTE)
        with note.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise GitError("Another commit, update or rewind is running.") from error
            file.seek(0)
            if unfinished := file.read():
                remove_left_locks(note.parent, self._path.resolve().parent)
                await self._abort(*unfinished.split()[:3])
            file.truncate(0)
            file.write(operation)
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)

    async def recover(self) -> None:
        """Remove what git left when it ended with an earlier engine.

        Raises:
            GitError, OSError: it is used, or cannot be removed.
        """
        directory = self._path / ".git"
        if git_locks(directory):
            async with self._recoverable("rewind"):
                remove_left_locks(directory, self._path.resolve().parent)

    async def pack_branch(self, branch: str | None, base: str | None) -> None:
        """Print a `PackHeader`, then a pack of the commits that `origin` lacks.

        Args:
            branch: None for the one that is checked out.
            base: a commit that the source has.

        Raises:
            GitError: no branch is checked out, the branch is missing, or it has no commit.
        """
        name = branch or await self._optional("symbolic-ref", "--quiet", "--short", "HEAD")
        if name is None:
            raise GitError("No branch is checked out in the replica.")
        commit = await self._optional(
            "rev-parse", "--quiet", "--verify", f"refs/heads/{name}^{{commit}}"
        )
        if commit is None:
            raise GitError(f"The replica has no commit on a branch {name}.")
        header = PackHeader(branch=name, commit=commit)
        sys.stdout.write(header.model_dump_json(by_alias=True) + "\n")
        sys.stdout.flush()
        await self.pack([commit], base)

    async def pack(self, commits: Sequence[str], base: str | None) -> None:
        """Print a pack of the objects of some commits and tags that `origin` lacks.

        Raises:
            GitError: one of them is missing.
        """
        listed = ("for-each-ref", "--format=^%(objectname)", "refs/remotes/origin")
        remote_commits = (await self._text(*listed)).split()
        revisions = "\n".join([*commits, *remote_commits, *([f"^{base}"] if base else [])])
        packed = ("pack-objects", "--stdout", "--revs", "--thin", "--delta-base-offset", "--quiet")
        await run_git(
            *(self._path, self._environment, *packed),
            data=f"{revisions}\n".encode(),
            printed=True,
            seconds=None,
        )

    async def _conflicts(self) -> list[str]:
        output = await self._git("diff", "--name-only", "--diff-filter=U", "-z")
        return [os.fsdecode(name) for name in output.split(b"\0") if name]

    async def _conflict_markers(self) -> list[str]:
        """Return the files in conflict that have conflict markers: an edited file may not be added yet."""
        if not (names := await self._conflicts()):
            return []
        chosen = ["--", *(f":(top,literal){name}" for name in names)]
        marks = ("grep", "-I", "-G", "-z", "-l", "--full-name", "-e", "^<<<<<<< ", *chosen)
        try:
            output = await self._git(*marks)
        except GitError as error:
            if error.status != 1:  # that it found nothing
                raise
            return []
        return [os.fsdecode(name) for name in output.split(b"\0") if name]

    async def _abort(self, operation: str, before: str = "", base: str = "") -> None:
        """Take back an operation that was killed.

        Args:
            before, base: the commit that a merge began at, and what it merged.
        """
        if await self._unfinished(operation):
            await self._git(operation, "--abort")
        elif operation == "merge" and before == await self._optional("rev-parse", "HEAD"):
            await self._restore(before, base)

    async def _unfinished(self, operation: str) -> bool:
        paths = [
            await git_path(self._path, self._environment, name)
            for name in UNFINISHED.get(operation, ())
        ]
        return any(path.exists() for path in paths)

    async def _restore(self, before: str, base: str) -> None:
        """Restore the files that a killed merge has written: those that are as in `base`."""
        listed = ("--name-only", "--no-renames", "-z")
        touched = await self._git("diff-tree", "-r", *listed, before, base)
        async with own_index(self._path, self._environment) as index:
            variables = {**self._environment, "GIT_INDEX_FILE": str(index)}
            await run_git(self._path, variables, "add", "--all", seconds=HOOK_SECONDS)
            differing = await run_git(
                self._path, variables, "diff-index", "--cached", *listed, base
            )
        if written := set(touched.split(b"\0")) - set(differing.split(b"\0")):
            data = b"\0".join(b":(top,literal)" + name for name in sorted(written))
            chosen = ("--pathspec-from-file=-", "--pathspec-file-nul")
            await self._git("add", "--force", *chosen, data=data)  # so that new ones are removed
            await self._git(
                "restore", f"--source={before}", "--staged", "--worktree", *chosen, data=data
            )

    # checkpoints

    async def checkpoint(self, name: str, title: str, without: Sequence[str] = ()) -> str:
        """Store the work tree, except ignored files, as a commit at `refs/qd/NAME`; return it.

        The index and the branches stay as they are.

        Args:
            without: files that are stored as the index has them.

        Raises:
            GitError: git refused.
        """
        places = [".", *(f":(top,exclude,literal){path}" for path in without)]
        given = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
        async with own_index(self._path, self._environment) as index:
            variables = {**self._environment, "GIT_INDEX_FILE": str(index)}
            data = b"\0".join(map(os.fsencode, places))
            await run_git(self._path, variables, *given, data=data, seconds=HOOK_SECONDS)
            tree = (await run_git(self._path, variables, "write-tree")).decode().strip()
        head = await self._optional("rev-parse", "--quiet", "--verify", "HEAD")
        parent = ["-p", head] if head else []
        arguments = ("commit-tree", "--no-gpg-sign", tree, *parent, "-m", title)
        commit = (await run_git(self._path, self._environment, *arguments)).decode().strip()
        await run_git(self._path, self._environment, "update-ref", f"refs/qd/{name}", commit)
        return commit

    async def rewind(self, name: str, undo: str) -> bool:
        """Restore the files and the branch of a checkpoint; uncommitted changes stay uncommitted.

        Return whether this repository has the checkpoint.

        Args:
            name: of the checkpoint.
            undo: name for a checkpoint of the state before.

        Raises:
            GitError: git refused; the same call can be repeated.
        """
        arguments = ("rev-parse", "--quiet", "--verify", f"refs/qd/{name}^{{commit}}")
        if (commit := await self._optional(*arguments)) is None:
            return False
        async with self._recoverable("rewind"):
            await self.checkpoint(undo, "Before a rewind")
            await self._git("add", "--all")  # so that files which the checkpoint lacks are removed
            await self._git("read-tree", "--reset", "-u", commit)
            if head := await self._optional("rev-parse", "--quiet", "--verify", f"{commit}^1"):
                await self._git("reset", "--quiet", head)
        return True

    async def _git(self, *arguments: str, data: bytes = b"") -> bytes:
        return await run_git(
            self._path,
            self._environment,
            *arguments,
            data=data,
            hooks=True,
            seconds=HOOK_SECONDS,
        )

    async def _text(self, *arguments: str) -> str:
        return os.fsdecode(await self._git(*arguments)).strip()

    async def _optional(self, *arguments: str) -> str | None:
        try:
            return await self._text(*arguments) or None
        except GitError as error:
            if error.status is None:  # it has not answered
                raise
            return None


TURNS = "turns"
REWINDS = "rewinds"
KEPT = 200
"""Number of checkpoints kept for a repository; older ones are removed."""
NEW_BYTES = 200 << 20
"""No checkpoint is made of more bytes in changed and new files: they would fill the disk."""
TITLE_LIMIT = 200
_FORMAT = "%(refname) %(objectname) %(creatordate:unix) %(contents:subject)"


async def keep_checkpoints(
    repositories: Sequence[EngineRepository], environment: Mapping[str, str], turn: UUID, text: str
) -> None:
    """Make a checkpoint of every repository; one that cannot be made is logged.

    Args:
        turn: the message that starts the turn.
        text: the message; its first line outside code fences becomes the title of the checkpoint.
    """
    lines = (line.strip() for line in text.splitlines())
    title_lines = (line for line in lines if line and not line.startswith("```"))
    title = next(title_lines, "(no text)")[:TITLE_LIMIT]
    for repository in repositories:
        checkout = CheckoutOperations(Path(repository.path), environment)
        try:
            new = await new_files(Path(repository.path), environment)
            if sum(size for size, _ in new) > NEW_BYTES:
                logger.warning("%s has too many new bytes for a checkpoint", repository.name)
                continue
            await checkout.checkpoint(f"{TURNS}/{turn}", title)
            await _remove_old(Path(repository.path), environment)
        except GitError as error:
            logger.warning("no checkpoint of %s was made: %s", repository.name, error)


async def list_checkpoints(
    repositories: Sequence[EngineRepository], environment: Mapping[str, str]
) -> Checkpoints:
    """Return the checkpoints of all repositories, the newest first.

    Raises:
        GitError: git refused.
    """
    checkpoints: dict[str, Checkpoint] = {}
    for repository in repositories:
        listed = ("for-each-ref", "--sort=-creatordate", f"--format={_FORMAT}")
        places = (f"refs/qd/{TURNS}", f"refs/qd/{REWINDS}")
        output = await run_git(Path(repository.path), environment, *listed, *places)
        for line in output.decode(errors="replace").splitlines():
            ref, commit, seconds, title = line.split(" ", 3)
            name = ref.removeprefix("refs/qd/")
            at = commit_time(seconds)
            checkpoint = checkpoints.setdefault(
                name, Checkpoint(id=name, at=at, title=title, commits={})
            )
            checkpoint.commits[repository.name] = commit
    return Checkpoints(
        checkpoints=sorted(checkpoints.values(), key=lambda entry: entry.at, reverse=True)
    )


async def new_files(path: Path, environment: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return the size and name of each changed and new file.

    Raises:
        GitError: git refused.
    """
    listed = ("ls-files", "-z", "--modified", "--others", "--exclude-standard")
    output = await run_git(path, environment, *listed)
    names = [os.fsdecode(name) for name in output.split(b"\0") if name]
    return await asyncio.to_thread(lambda: [(_size(path / name), name) for name in names])


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0  # it was removed


async def _remove_old(path: Path, environment: Mapping[str, str]) -> None:
    listed = ("for-each-ref", "--sort=-creatordate", "--format=%(refname)", f"refs/qd/{TURNS}")
    names = (await run_git(path, environment, *listed)).decode().split()
    for name in names[KEPT:]:
        await run_git(path, environment, "update-ref", "-d", name)
