"""A turn of the built-in agent, and its report of changes."""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from quarterdeck.agents.builtin import replies
from quarterdeck.agents.builtin.runner import (
    Parsed,
    Ran,
    Runner,
    ShellBlock,
    check_variables,
    parse,
)
from quarterdeck.agents.builtin.sessions import SessionStore, StoredSession
from quarterdeck.agents.processes import Tree, new_mark

_DEPTHS = (".git", "*/.git", "*/*/.git")
_REPOSITORIES = 20
_FILES = 20
_COMMITS = 10
_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True)
class RepositorySnapshot:
    """The state of one repository: each path that differs from HEAD, with its status and stamp."""

    head: str
    files: dict[str, tuple[str, int, int]]


State = dict[Path, RepositorySnapshot]


async def take_snapshots(directory: str) -> State:
    """Return snapshots of the repositories under a directory; none without git."""
    repositories = await asyncio.to_thread(_find, Path(directory))
    snapshots = await asyncio.gather(*map(_snapshot, repositories))
    return dict(zip(repositories, snapshots, strict=True))


async def describe(directory: str, before: State, after: State) -> str:
    """Return what changed, as Markdown."""
    if not after:
        return "There is no git repository here, so I cannot tell what changed."
    reports = [await _report(directory, repo, before.get(repo), now) for repo, now in after.items()]
    return "\n\n".join(filter(None, reports)) or "No files changed."


def _find(directory: Path) -> list[Path]:
    repositories = [marker.parent for depth in _DEPTHS for marker in directory.glob(depth)]
    return sorted(repositories)[:_REPOSITORIES]


async def _snapshot(repository: Path) -> RepositorySnapshot:
    head, status = await asyncio.gather(
        _git(repository, "rev-parse", "--verify", "-q", "HEAD"),
        _git(repository, "status", "--porcelain", "-z", "--no-renames"),
    )
    entries = [entry for entry in status.split("\0") if len(entry) > 3]
    return RepositorySnapshot(head.strip(), await asyncio.to_thread(_stamps, repository, entries))


def _stamps(repository: Path, entries: list[str]) -> dict[str, tuple[str, int, int]]:
    return {entry[3:]: (entry[:2], *_stamp(repository / entry[3:])) for entry in entries}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.lstat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


async def _report(
    directory: str, repository: Path, before: RepositorySnapshot | None, now: RepositorySnapshot
) -> str:
    old = before or RepositorySnapshot("", {})
    changed = sorted(p for p in old.files.keys() | now.files.keys() if _differs(p, old, now))
    commits = await _commits(repository, old.head, now.head)
    if not changed and not commits:
        return ""
    counts = await _counts(repository)
    lines = [_line(path, now, counts) for path in changed[:_FILES]]
    more = len(changed) - len(lines)
    omitted = [f"- and {more} more"] if more > 0 else []
    name = repository.name if str(repository) != directory else Path(directory).name
    return "\n".join([f"Changed in **{name}**:", "", *commits, *lines, *omitted])


def _differs(path: str, old: RepositorySnapshot, now: RepositorySnapshot) -> bool:
    return old.files.get(path) != now.files.get(path)


def _line(path: str, now: RepositorySnapshot, counts: dict[str, str]) -> str:
    if path not in now.files:
        return f"- `{path}` is as in the last commit"
    status = now.files[path][0]
    if status == "??":
        return f"- `{path}` new"
    if "D" in status:
        return f"- `{path}` deleted"
    return f"- `{path}` {counts.get(path, 'changed')}"


async def _counts(repository: Path) -> dict[str, str]:
    """Return the numbers of added and removed lines against HEAD by path."""
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
    """Return the output of a git command; empty when it fails or takes too long."""
    command = ["git", "--no-optional-locks", "-c", "core.quotePath=false", *arguments]
    try:
        tree = await Tree.start(
            command, str(repository), os.environ, new_mark("QUARTERDECK_GIT"),
            stdin=DEVNULL, stderr=DEVNULL,
        )  # fmt: skip
    except OSError:
        return ""
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            output = await tree.stdout.read()
            await tree.exited()
    except TimeoutError:
        return ""
    finally:
        if tree.exit_status is None:
            await tree.end(0)
        tree.release()
    return output.decode(errors="replace") if tree.exit_status == 0 else ""


Update = dict[str, Any]


def user_message(text: str) -> Update:
    """Return the user's message, for a reload."""
    return {"sessionUpdate": "user_message_chunk", "content": _text(text)}


def agent_message(text: str) -> Update:
    """Return a message of the agent."""
    return {"sessionUpdate": "agent_message_chunk", "content": _text(text)}


def plan(blocks: list[ShellBlock]) -> Update:
    """Return a plan with one entry for each block."""
    entries = [
        {"content": block.title, "priority": "medium", "status": "pending"} for block in blocks
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def announcement(call_id: str, block: ShellBlock) -> Update:
    """Return the update that announces a block before it runs."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call_id,
        "title": block.title,
        "kind": "execute",
        "status": "pending",
        "rawInput": {"command": block.script, "shell": block.shell},
    }


def started(call_id: str) -> Update:
    """Return the update for a block that has started to run."""
    return _progress(call_id, {"status": "in_progress"})


def printed(call_id: str, text: str) -> Update:
    """Return the running block's output so far."""
    return _progress(call_id, {"content": _output(text)})


def ended(call_id: str, ran: Ran, text: str) -> Update:
    """Return the update for a block that has ended; `text` is its output."""
    result: dict[str, Any] = {"exitCode": ran.exit_code, "durationMs": ran.duration_ms}
    if ran.truncated:
        result["truncated"] = True
    fields: dict[str, Any] = {
        "status": "completed" if ran.exit_code == 0 else "failed",
        "rawOutput": result,
    }
    return _progress(call_id, {**fields, "content": _output(text)} if text else fields)


def _progress(call_id: str, fields: dict[str, Any]) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


def _output(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": _text(text)}]


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


Send = Callable[[Update], Awaitable[None]]

_STORED_OUTPUT = 8 << 10


@dataclass(frozen=True)
class BlockFailure:
    """The failed block of a turn."""

    title: str
    exit_code: int | None


class BuiltinTurn:
    """Answers one message; updates go to `send` and into the session's history."""

    def __init__(
        self, session: StoredSession, store: SessionStore, runner: Runner, send: Send
    ) -> None:
        self._session = session
        self._store = store
        self._runner = runner
        self._send = send

    async def run(self, message: str) -> BlockFailure | None:
        """Run or plan the message's blocks; return the one that failed.

        Return early when the runner is canceled.
        """
        self._session.history.append(user_message(message))
        await self._save()
        self._runner.variables = check_variables(message)
        try:
            return await self._answer(parse(message))
        finally:
            await self._save()

    async def _answer(self, parsed: Parsed) -> BlockFailure | None:
        if not parsed.blocks:
            await self._emit(agent_message(await asyncio.to_thread(replies.help_text, parsed)))
        elif self._session.mode == "plan":
            await self._plan(parsed.blocks)
        else:
            return await self._work(parsed)
        return None

    async def _plan(self, blocks: list[ShellBlock]) -> None:
        await self._emit(plan(blocks))
        await self._emit(agent_message(replies.planned(blocks, self._session.directory)))

    async def _work(self, parsed: Parsed) -> BlockFailure | None:
        before = await take_snapshots(self._session.directory)
        runs = await self._run_all(parsed.blocks)
        if self._runner.cancelled:
            return None
        after = await take_snapshots(self._session.directory)
        changed = await describe(self._session.directory, before, after)
        text = replies.summary(parsed.blocks, runs, parsed.skipped, changed)
        await self._emit(agent_message(text))
        if runs[-1].exit_code == 0:
            return None
        return BlockFailure(parsed.blocks[len(runs) - 1].title, runs[-1].exit_code)

    async def _run_all(self, blocks: list[ShellBlock]) -> list[Ran]:
        runs: list[Ran] = []
        for block in blocks:
            if self._runner.cancelled:
                break
            runs.append(await self._run(block))
            if runs[-1].exit_code != 0:
                break
        return runs

    async def _run(self, block: ShellBlock) -> Ran:
        call_id = str(uuid.uuid4())
        announced = announcement(call_id, block)
        await self._send(announced)
        await self._send(started(call_id))

        async def show(text: str) -> None:
            await self._send(printed(call_id, text))

        try:
            ran = await self._runner.run(block, show)
        except OSError as error:
            ran = Ran(127, 0, f"{error.strerror}: {error.filename}", False)
        await self._send(ended(call_id, ran, ran.text))
        stored = ended(call_id, ran, ran.text[-_STORED_OUTPUT:])
        self._session.history.append({**announced, **stored, "sessionUpdate": "tool_call"})
        return ran

    async def _emit(self, update: Update) -> None:
        await self._send(update)
        self._session.history.append(update)

    async def _save(self) -> None:
        await asyncio.to_thread(self._store.save, self._session)
