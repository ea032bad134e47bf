"""Runs git in a workspace, and reads the state of a checkout."""

import asyncio
import logging
import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

from quarterdeck.local.git_directory import unreadable_file
from quarterdeck.local.processes import end_process
from quarterdeck.wire.git_state import (
    EngineRepository,
    EventRepository,
    GitDiff,
    RepositoryCommit,
    UncommittedState,
)
from quarterdeck.wire.inside import CO_AUTHOR_VARIABLE

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
TIMEOUT_SECONDS = 60.0
COUNTED_FILE_BYTES = 1 << 20
COUNTED_FILES = 2_000
COMPARED_FILE_BYTES = 64 << 20
"""git would read all of a larger file, also one of holes, to name its content."""
LARGE_FILES = 1_000
"""Most of them that a command can leave out."""
UNTRACKED_SHOWN = 100
COMMITS_SHOWN = 50

_CHANGING = ("-c", "core.fsmonitor=false", "-c", "safe.directory=*", "-c", "core.editor=true")
_FLAGS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*")
_COMMIT_FORMAT = "%H %at%n%an%n%s"
"""The title comes last, as the rest of the text. An author's name has no line end."""
TITLE_SHOWN = 500
_FIRST_SECOND = int(datetime(2, 1, 1, tzinfo=UTC).timestamp())
_LAST_SECOND = int(datetime(9998, 12, 31, tzinfo=UTC).timestamp())
_SAFE = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
_STAT = re.compile(rb"(\d+) (insertion|deletion)")


class GitError(Exception):
    """git failed; the text says why. `status` is its exit status, if it ended by itself."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class WorkTree:
    """The result of `git status`."""

    branch: str | None = None
    """None on a detached head."""
    head: str | None = None
    """None before the first commit."""
    upstream: str | None = None
    unpushed: int | None = None
    """Commits that the upstream lacks; None without one, or while it is not known."""
    changed: int = 0
    """Tracked files that differ from the head, in the index or the work tree."""
    conflicts: list[str] = field(default_factory=list[str])
    untracked: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Commit:
    """A commit as a list shows it; `at` is when it was written. A title that is too long is cut."""

    sha: str
    title: str
    author: str
    at: datetime


@dataclass(frozen=True)
class CheckoutSummary:
    """The state of a checkout. Untracked files count as added lines."""

    tree: WorkTree
    new_files: int
    """Untracked files, all of them."""
    added: int
    removed: int
    uncommitted_added: int
    uncommitted_removed: int
    base_commit: str | None
    """Newest commit of the base branch that is an ancestor; else the one it started from."""
    base_head: str | None
    """Newest commit of the base branch; only read when `ahead` is not 0."""
    ahead: int | None
    """Number of commits not on the base branch; None if there is no base branch."""
    behind: int | None
    commits: list[Commit]
    """The newest commits that are not on the base branch."""
    operation: str | None
    """`merge` or `rebase` while one is not finished."""


async def read_checkout(
    path: Path, base: str | None, base_branch: str, environment: Mapping[str, str]
) -> CheckoutSummary:
    """Compare a checkout, uncommitted changes included, with the commit it started from.

    Args:
        base: the commit it started from.
        base_branch: the branch of `origin` that its commits are counted against.

    Raises:
        GitError: no repository there, an unknown base, or git took too long.
    """
    status = await run_git(
        path, environment, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"
    )
    tree = _read_status(status)
    untracked = tree.untracked
    new_lines = await asyncio.to_thread(_count_lines, path, untracked[:COUNTED_FILES])
    against = await base_of(path, base, base_branch, environment)
    added, removed = await _changed_lines(path, against, environment)
    uncommitted = (0, 0)
    if tree.changed:
        uncommitted = await _changed_lines(path, tree.head or EMPTY_TREE, environment)
    ahead, behind, commits = await _compare(path, tree, base_branch, environment)
    base_head = await _newest(path, base_branch, environment) if ahead else None
    return CheckoutSummary(
        tree=replace(tree, untracked=untracked[:UNTRACKED_SHOWN]),
        new_files=len(untracked),
        added=added + new_lines,
        removed=removed,
        uncommitted_added=uncommitted[0] + new_lines,
        uncommitted_removed=uncommitted[1],
        base_commit=against if against != EMPTY_TREE else None,
        base_head=base_head,
        ahead=ahead,
        behind=behind,
        commits=commits,
        operation=await asyncio.to_thread(_operation, path),
    )


async def base_of(
    path: Path, base: str | None, base_branch: str, environment: Mapping[str, str]
) -> str:
    """Return the commit that changes are counted against: the newest of its base branch that it has.

    It is never before the commit that the checkout started from, which need not be on that branch.
    """
    try:
        arguments = ("merge-base", "HEAD", f"refs/remotes/origin/{base_branch}")
        shared = (await run_git(path, environment, *arguments)).decode().strip()
    except GitError:
        return base or EMPTY_TREE
    if base is None or base == shared:
        return shared
    try:
        await run_git(path, environment, "merge-base", "--is-ancestor", base, shared)
    except GitError:
        return base
    return shared


async def _changed_lines(
    path: Path, against: str, environment: Mapping[str, str]
) -> tuple[int, int]:
    large = await large_files(path, against, environment)
    counted = await run_git(
        path, environment, "-c", "diff.autoRefreshIndex=false",  # it is an agent's, who may lock it
        "diff", "--shortstat", "--no-ext-diff", "--no-textconv", "-M", against, "--", *without(large),
    )  # fmt: skip
    counts = {kind: int(number) for number, kind in _STAT.findall(counted)}
    return counts.get(b"insertion", 0), counts.get(b"deletion", 0)


async def large_files(path: Path, against: str, environment: Mapping[str, str]) -> list[str]:
    """Return the names of changed files that are larger than `COMPARED_FILE_BYTES`.

    Raises:
        GitError: there are too many, or git cannot list the changes.
    """
    listed = await run_git(
        path, environment, "diff-index", "--name-only", "--no-renames", "-z", against, "--"
    )
    large = await asyncio.to_thread(_large, path, listed)
    if len(large) > LARGE_FILES:
        raise GitError(
            f"More than {LARGE_FILES} changed files are larger than {COMPARED_FILE_BYTES >> 20} MiB. "
            "Remove some, or let .gitignore name them."
        )
    return large


def _large(root: Path, listed: bytes) -> list[str]:
    large: list[str] = []
    for name in map(os.fsdecode, listed.split(b"\0")):
        try:
            status = (root / name).lstat()
        except OSError:
            continue  # removed, or its directory was replaced
        if stat.S_ISREG(status.st_mode) and status.st_size > COMPARED_FILE_BYTES:
            large.append(name)
            if len(large) > LARGE_FILES:
                break
    return large


def without(names: Sequence[str]) -> list[str]:
    """Return patterns for all files except these."""
    return [f":(top,exclude,literal){name}" for name in names]


async def _compare(
    path: Path, tree: WorkTree, base_branch: str, environment: Mapping[str, str]
) -> tuple[int | None, int | None, list[Commit]]:
    """Count and list commits against a branch of `origin`, which may be missing."""
    if tree.head is None:
        return None, None, []
    base = f"refs/remotes/origin/{base_branch}"
    arguments = ("rev-list", "--left-right", "--count", f"{base}...{tree.head}", "--")
    try:
        behind, ahead = map(int, (await run_git(path, environment, *arguments)).split())
    except GitError:
        return None, None, []
    if not ahead:
        return 0, behind, []
    log = await run_git(
        path, environment, "log", "-z", f"--max-count={COMMITS_SHOWN}", "--no-show-signature",
        f"--format={_COMMIT_FORMAT}", f"{base}..{tree.head}", "--",
    )  # fmt: skip
    return ahead, behind, [_commit(entry) for entry in log.split(b"\0") if entry]


async def _newest(path: Path, branch: str, environment: Mapping[str, str]) -> str:
    name = f"refs/remotes/origin/{branch}"
    return (await run_git(path, environment, "rev-parse", "--verify", name)).decode().strip()


def _commit(entry: bytes) -> Commit:
    first, author, title = entry.decode(errors="replace").split("\n", 2)
    sha, _, seconds = first.partition(" ")
    return Commit(sha, title.rstrip("\n")[:TITLE_SHOWN], author[:TITLE_SHOWN], commit_time(seconds))


def commit_time(seconds: str) -> datetime:
    """Return the time of a timestamp, of which a commit may hold any: the nearest that can be sent."""
    try:
        number = int(seconds or 0)
    except ValueError:
        number = _LAST_SECOND
    return datetime.fromtimestamp(min(max(number, _FIRST_SECOND), _LAST_SECOND), UTC)


def _operation(path: Path) -> str | None:
    """Return the unfinished operation; a `.git` file, as of a work tree, has none."""
    directory = path / ".git"
    if (directory / "MERGE_HEAD").exists():
        return "merge"
    rebases = ("rebase-merge", "rebase-apply")
    return "rebase" if any((directory / name).is_dir() for name in rebases) else None


def _read_status(status: bytes) -> WorkTree:
    tree = WorkTree()
    records = iter(status.split(b"\0"))
    for record in records:
        kind, _, rest = record.partition(b" ")
        if kind == b"#":
            name, _, value = rest.decode(errors="replace").partition(" ")
            _read_header(tree, name, value)
        elif kind == b"?":
            tree.untracked.append(os.fsdecode(rest))
        elif kind == b"u":
            tree.changed += 1
            tree.conflicts.append(os.fsdecode(rest.split(b" ", 9)[-1]))
        elif kind in (b"1", b"2"):
            tree.changed += 1
            if kind == b"2":
                next(records, None)  # the old name
    return tree


def _read_header(tree: WorkTree, name: str, value: str) -> None:
    if name == "branch.head":
        tree.branch = None if value == "(detached)" else value
    elif name == "branch.oid":
        tree.head = None if value == "(initial)" else value
    elif name == "branch.upstream":
        tree.upstream = value
    elif name == "branch.ab":
        tree.unpushed = int(value.split()[0])  # `+ahead -behind`


def _count_lines(root: Path, names: list[str]) -> int:
    return sum(_lines_of(root / name) for name in names)


def _lines_of(path: Path) -> int:
    """Return the number of a text file's lines; 0 for a binary or too large file, or a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    with os.fdopen(descriptor, "rb") as file:
        try:
            data = file.read(COUNTED_FILE_BYTES + 1)
        except OSError:
            return 0
    if len(data) > COUNTED_FILE_BYTES or b"\0" in data[:8000]:
        return 0
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


async def read_commit(path: Path, name: str, environment: Mapping[str, str]) -> Commit:
    """Read a commit by any of its names.

    Raises:
        GitError: there is no such commit.
    """
    log = ("log", "-z", "--max-count=1", "--no-show-signature", f"--format={_COMMIT_FORMAT}")
    return _commit((await run_git(path, environment, *log, name, "--")).rstrip(b"\0"))


async def run_git(
    path: Path,
    environment: Mapping[str, str],
    *arguments: str,
    data: bytes = b"",
    most: int | None = None,
    hooks: bool = False,
    printed: bool = False,
    seconds: float | None = TIMEOUT_SECONDS,
) -> bytes:
    """Run git in a checkout, without prompts; return its output.

    Args:
        data: its standard input.
        most: stop after this many bytes of output, and return them.
        hooks: whether hooks of the repository are run.
        printed: its output goes to standard output, and nothing is returned.
        seconds: how long it may take; None: no limit.

    Raises:
        GitError: it refused, took too long, or would wait for what is in the place of a file.
    """
    if reason := await asyncio.to_thread(unreadable_file, path):
        raise GitError(reason)
    try:
        process = await asyncio.create_subprocess_exec(
            "git", *(_CHANGING if hooks else _FLAGS), *arguments,
            cwd=path,
            env={**environment, **_SAFE, "GIT_CEILING_DIRECTORIES": str(path.parent)},
            stdin=asyncio.subprocess.PIPE if data else asyncio.subprocess.DEVNULL,
            stdout=None if printed else asyncio.subprocess.PIPE,
            # A pipe that is not read could block git.
            stderr=asyncio.subprocess.PIPE if most is None else asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise GitError(str(error)) from error
    try:
        async with asyncio.timeout(seconds):
            head = b"" if most is None else await _first(process, most)
            if most is not None and len(head) == most:
                return head
            output, complaint = await process.communicate(data or None)
    except TimeoutError as error:
        raise GitError(f"git {arguments[0]} took longer than {seconds} s.") from error
    finally:
        await end_process(process)
    if process.returncode != 0:
        reason = _reason((complaint or b"").decode(errors="replace"))
        raise GitError(reason, process.returncode)
    return head + (output or b"")


def _reason(complaint: str) -> str:
    """Return the line that says why git refused, with the files that it lists, without advice."""
    lines = complaint.strip().splitlines() or ["It refused."]
    for mark in ("fatal: ", "error: "):
        for number, line in enumerate(lines):
            if line.startswith(mark):
                files = takewhile(lambda one: one.startswith("\t"), lines[number + 1 :])
                return " ".join([line, ", ".join(map(str.strip, files))]).strip()
    return lines[-1]


async def _first(process: asyncio.subprocess.Process, most: int) -> bytes:
    """Return this many bytes, or all of a shorter output."""
    assert process.stdout is not None
    try:
        return await process.stdout.readexactly(most)
    except asyncio.IncompleteReadError as error:
        return error.partial


logger = logging.getLogger(__name__)


async def rename_branches(
    repositories: Sequence[EngineRepository], branch: str, environment: Mapping[str, str]
) -> None:
    """Rename the current branch of each; one that cannot be renamed keeps its name."""
    for repository in repositories:
        try:
            await run_git(Path(repository.path), environment, "branch", "-M", branch)
        except GitError as error:
            logger.warning("the branch of %s keeps its name: %s", repository.name, error)


async def carry_origins(
    repositories: Sequence[EngineRepository], environment: Mapping[str, str]
) -> None:
    """Configure `origin` to use `git-remote-qd` in clones of older releases.

    A clone that names its repository has been configured, whatever an agent changed later.
    """
    name_key = "remote.origin.qdRepository"
    for repository in repositories:
        path = Path(repository.path)
        try:
            output = await run_git(path, environment, "config", "--local", "--list", "--name-only")
            keys = output.decode(errors="replace").lower().splitlines()
            if "remote.origin.url" in keys and name_key.lower() not in keys:
                await run_git(path, environment, "config", "remote.origin.vcs", "qd")
                await run_git(path, environment, "config", name_key, repository.name)
        except GitError as error:
            logger.warning("origin of %s cannot be configured: %s", repository.name, error)


_CO_AUTHOR_HOOK = f"""\
#!/bin/sh
# Names the agent that commits as co-author. What it replays or picks is not its own.
[ -n "${CO_AUTHOR_VARIABLE}" ] || exit 0
for replayed in rebase-merge rebase-apply CHERRY_PICK_HEAD; do
    [ ! -e "$(git rev-parse --git-path "$replayed")" ] || exit 0
done
exec git interpret-trailers --in-place --if-exists addIfDifferent \
    --trailer "Co-authored-by: ${CO_AUTHOR_VARIABLE}" "$1"
"""


async def name_co_authors(
    repositories: Sequence[EngineRepository], environment: Mapping[str, str]
) -> None:
    """Let commits of agents name their co-author, by a hook unless the repository has its own."""
    for repository in repositories:
        try:
            arguments = ("rev-parse", "--path-format=absolute", "--git-common-dir")
            output = await run_git(Path(repository.path), environment, *arguments)
            directory = Path(os.fsdecode(output).removesuffix("\n"))
            await asyncio.to_thread(_write_hook, directory / "hooks/prepare-commit-msg")
        except (GitError, OSError) as error:
            logger.warning("co-authors of %s cannot be named: %s", repository.name, error)


def _write_hook(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), path.open("x") as file:
        file.write(_CO_AUTHOR_HOOK)
        path.chmod(0o755)


async def read_repository(
    repository: EngineRepository, environment: Mapping[str, str], *, hooks_completed: bool
) -> EventRepository:
    """Read the state of a repository; parts that git cannot read are left out."""
    state = EventRepository(
        name=repository.name,
        path=repository.path,
        default_branch=repository.default_branch,
        base_branch=repository.base_branch or repository.default_branch,
        start_hooks_completed=hooks_completed,
    )
    try:
        checkout = await read_checkout(
            Path(repository.path),
            repository.base_commit,
            repository.base_branch or repository.default_branch,
            environment,
        )
    except GitError as error:
        logger.warning("the repository %s cannot be read: %s", repository.name, error)
        return state
    tree = checkout.tree
    state.current_branch, state.head, state.upstream = tree.branch, tree.head, tree.upstream
    state.git_diff = GitDiff(added=checkout.added, removed=checkout.removed)
    state.untracked = [_shown(name) for name in tree.untracked]
    state.conflicts = [_shown(name) for name in tree.conflicts]
    state.base_commit, state.base_head = checkout.base_commit, checkout.base_head
    state.ahead, state.behind = checkout.ahead, checkout.behind
    state.unpushed = tree.unpushed if tree.upstream and tree.unpushed is not None else state.ahead
    state.operation = checkout.operation
    state.uncommitted = UncommittedState(
        files=tree.changed + checkout.new_files,
        added=checkout.uncommitted_added,
        removed=checkout.uncommitted_removed,
    )
    state.commits = [
        RepositoryCommit(sha=commit.sha, title=commit.title, author=commit.author, at=commit.at)
        for commit in checkout.commits
    ]
    return state


def _shown(name: str) -> str:
    """Return a file's name as valid Unicode, for JSON."""
    return name.encode(errors="replace").decode()
