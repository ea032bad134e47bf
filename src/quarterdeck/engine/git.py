"""Reading the state of a checkout with git, without ever writing to it."""

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
TIMEOUT_SECONDS = 60.0
COUNTED_FILE_BYTES = 1 << 20
COUNTED_FILES = 2_000
UNTRACKED_SHOWN = 100

_FLAGS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*")
_SAFE = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
_STAT = re.compile(rb"(\d+) (insertion|deletion)")


class GitError(Exception):
    """git could not tell; the text holds its last line."""


@dataclass(frozen=True)
class Checkout:
    """Where a checkout stands. Untracked files count as added lines."""

    branch: str | None
    """None on a detached head."""
    added: int
    removed: int
    untracked: list[str]


async def read_checkout(path: Path, base: str | None, environment: Mapping[str, str]) -> Checkout:
    """Compares a checkout, uncommitted changes included, with the commit it started from.

    Raises:
        GitError: no repository there, an unknown base, or git took too long.
    """
    status = await run_git(
        path, environment, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"
    )
    branch, untracked = _read_status(status)
    stat = await run_git(
        path, environment, "diff", "--shortstat", "--no-ext-diff", "--no-textconv",
        "-M", base or EMPTY_TREE, "--",
    )  # fmt: skip
    counts = {kind: int(number) for number, kind in _STAT.findall(stat)}
    new_lines = await asyncio.to_thread(_count_lines, path, untracked[:COUNTED_FILES])
    return Checkout(
        branch=branch,
        added=counts.get(b"insertion", 0) + new_lines,
        removed=counts.get(b"deletion", 0),
        untracked=untracked[:UNTRACKED_SHOWN],
    )


def _read_status(status: bytes) -> tuple[str | None, list[str]]:
    branch = None
    untracked: list[str] = []
    for record in status.split(b"\0"):
        if record.startswith(b"# branch.head "):
            branch = record.removeprefix(b"# branch.head ").decode(errors="replace")
        elif record.startswith(b"? "):
            untracked.append(os.fsdecode(record[2:]))
    return None if branch == "(detached)" else branch, untracked


def _count_lines(root: Path, names: list[str]) -> int:
    return sum(_lines_of(root / name) for name in names)


def _lines_of(path: Path) -> int:
    """Lines of a text file; 0 for what git would call binary, a link or something too large."""
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


async def run_git(
    path: Path, environment: Mapping[str, str], *arguments: str, most: int | None = None
) -> bytes:
    """Runs git in a checkout, with no hooks and no questions; returns what it printed.

    With `most` it is stopped when it has printed as many bytes, which are returned.

    Raises:
        GitError: it refused, or took too long.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            "git", *_FLAGS, *arguments,
            cwd=path,
            env={**environment, **_SAFE, "GIT_CEILING_DIRECTORIES": str(path.parent)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # What nobody reads meanwhile could hold git up.
            stderr=asyncio.subprocess.PIPE if most is None else asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise GitError(str(error)) from error
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            begun = b"" if most is None else await _first(process, most)
            if most is not None and len(begun) == most:
                return begun
            output, complaint = await process.communicate()
    except TimeoutError as error:
        raise GitError(f"git {arguments[0]} took longer than {TIMEOUT_SECONDS:.0f} s.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise GitError(
            (complaint or b"It refused.").decode(errors="replace").strip().rsplit("\n", 1)[-1]
        )
    return begun + output


async def _first(process: asyncio.subprocess.Process, most: int) -> bytes:
    """As many bytes, or all of a shorter output."""
    assert process.stdout is not None
    try:
        return await process.stdout.readexactly(most)
    except asyncio.IncompleteReadError as error:
        return error.partial
