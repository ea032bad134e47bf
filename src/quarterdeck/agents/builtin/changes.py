"""What changed in the repositories under a directory between two moments."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL

from quarterdeck.agents.processes import Tree, new_mark

_DEPTHS = (".git", "*/.git", "*/*/.git")
_REPOSITORIES = 20
_FILES = 20
_COMMITS = 10
_PATIENCE = 20.0


@dataclass(frozen=True)
class Snapshot:
    """One repository at a moment: each path that differs from HEAD, with what tells its state."""

    head: str
    files: dict[str, tuple[str, int, int]]


State = dict[Path, Snapshot]


async def look(directory: str) -> State:
    """The repositories under a directory as they are now; none without git."""
    repositories = await asyncio.to_thread(_find, Path(directory))
    snapshots = await asyncio.gather(*map(_snapshot, repositories))
    return dict(zip(repositories, snapshots, strict=True))


async def describe(directory: str, before: State, after: State) -> str:
    """What changed, as Markdown."""
    if not after:
        return "There is no git repository here, so I cannot tell what changed."
    told = [await _tell(directory, repo, before.get(repo), now) for repo, now in after.items()]
    return "\n\n".join(filter(None, told)) or "No files changed."


def _find(directory: Path) -> list[Path]:
    found = [marker.parent for depth in _DEPTHS for marker in directory.glob(depth)]
    return sorted(found)[:_REPOSITORIES]


async def _snapshot(repository: Path) -> Snapshot:
    head, status = await asyncio.gather(
        _git(repository, "rev-parse", "--verify", "-q", "HEAD"),
        _git(repository, "status", "--porcelain", "-z", "--no-renames"),
    )
    entries = [entry for entry in status.split("\0") if len(entry) > 3]
    return Snapshot(head.strip(), await asyncio.to_thread(_stamps, repository, entries))


def _stamps(repository: Path, entries: list[str]) -> dict[str, tuple[str, int, int]]:
    return {entry[3:]: (entry[:2], *_stamp(repository / entry[3:])) for entry in entries}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.lstat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


async def _tell(directory: str, repository: Path, before: Snapshot | None, now: Snapshot) -> str:
    old = before or Snapshot("", {})
    changed = sorted(p for p in old.files.keys() | now.files.keys() if _differs(p, old, now))
    commits = await _commits(repository, old.head, now.head)
    if not changed and not commits:
        return ""
    counts = await _counts(repository)
    lines = [_line(path, now, counts) for path in changed[:_FILES]]
    more = len(changed) - len(lines)
    rest = [f"- and {more} more"] if more > 0 else []
    name = repository.name if str(repository) != directory else Path(directory).name
    return "\n".join([f"Changed in **{name}**:", "", *commits, *lines, *rest])


def _differs(path: str, old: Snapshot, now: Snapshot) -> bool:
    return old.files.get(path) != now.files.get(path)


def _line(path: str, now: Snapshot, counts: dict[str, str]) -> str:
    if path not in now.files:
        return f"- `{path}` is as in the last commit"
    status = now.files[path][0]
    if status == "??":
        return f"- `{path}` new"
    if "D" in status:
        return f"- `{path}` deleted"
    return f"- `{path}` {counts.get(path, 'changed')}"


async def _counts(repository: Path) -> dict[str, str]:
    """Added and removed lines against HEAD by path."""
    text = await _git(repository, "diff", "--numstat", "-z", "--no-renames", "HEAD", "--")
    rows = [row.split("\t", 2) for row in text.split("\0") if row.count("\t") >= 2]
    return {path: "binary" if a == "-" else f"+{a} -{d}" for a, d, path in rows}


async def _commits(repository: Path, old: str, new: str) -> list[str]:
    if old == new or not new:
        return []
    span = f"{old}..{new}" if old else new
    limit = f"--max-count={_COMMITS}"
    text = await _git(repository, "log", "--format=- commit %h %s", limit, span, "--")
    return text.splitlines() or [f"- HEAD is now at {new[:10]}"]


async def _git(repository: Path, *arguments: str) -> str:
    """Output of a git command; empty when it fails or takes too long."""
    command = ["git", "--no-optional-locks", "-c", "core.quotePath=false", *arguments]
    try:
        tree = await Tree.start(
            command, str(repository), os.environ, new_mark("QUARTERDECK_GIT"),
            stdin=DEVNULL, stderr=DEVNULL,
        )  # fmt: skip
    except OSError:
        return ""
    try:
        async with asyncio.timeout(_PATIENCE):
            output = await tree.stdout.read()
            await tree.exited()
    except TimeoutError:
        return ""
    finally:
        if tree.exit_status is None:
            await tree.end(0)
        tree.release()
    return output.decode(errors="replace") if tree.exit_status == 0 else ""
