"""A turn of the built-in agent, and its report of changes."""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

from quarterdeck.agents.builtin.runner import (
    Parsed,
    Ran,
    Runner,
    ShellBlock,
    check_variables,
    parse,
)
from quarterdeck.agents.processes import Tree, new_mark

if TYPE_CHECKING:
    from quarterdeck.agents.port import AgentStatus
    from quarterdeck.wire.agents import KnownAgents


from pydantic import BaseModel, ValidationError

from quarterdeck.local.files import write_file

_HELP = """\
I am the built-in agent. I have no model, so I cannot answer questions or write code by myself. \
I run the shell blocks of a message in order, in the workspace, and stop at the first command \
that fails. Write one like this:

````
```sh
git status
```
````

In plan mode I list what I would run, and run it when you approve the plan.

"""


def help_text(parsed: Parsed) -> str:
    """Return the answer to a message without a shell block."""
    skipped = ""
    if parsed.skipped:
        languages = ", ".join(sorted(set(parsed.skipped)))
        skipped = f"I did not run the block in `{languages}`: I only run shell blocks.\n\n"
    return skipped + _HELP + _agents()


def planned(blocks: list[ShellBlock], directory: str) -> str:
    """Return the blocks that would be run."""
    steps = "\n\n".join(
        f"{_fence(block)}{block.shell}\n{block.script}{_fence(block)}" for block in blocks
    )
    return (
        f"I would run this in `{directory}`, and stop at the first command that fails:\n\n{steps}"
        "\n\nNothing was run. Approve the plan, or send the message without plan mode, to run it."
    )


def summary(blocks: list[ShellBlock], runs: list[Ran], skipped: list[str], changes: str) -> str:
    """Return the results of the blocks and the changes."""
    last = runs[-1]
    lines: list[str] = []
    if last.exit_code != 0:
        lines.append(f"`{blocks[len(runs) - 1].title}` failed with exit code {last.exit_code}.")
    if left := len(blocks) - len(runs):
        lines.append(f"{left} {_noun(left)} after it {'was' if left == 1 else 'were'} not run.")
    if skipped:
        lines.append(f"Not run: not a shell block: `{', '.join(sorted(set(skipped)))}`.")
    if last.exit_code == 0:
        lines.append(f"{len(runs)} {_noun(len(runs))} ran without an error.")
    return " ".join(lines) + "\n\n" + changes


def _agents() -> str:
    # Imported here: only this answer needs it, and every start would pay 0.15 s for it.
    from quarterdeck.agents.catalog import default_catalog

    agents = _known_agents()
    catalog = default_catalog(own=agents.own, keyed=agents.keyed)
    others = [status for status in catalog.statuses() if status.id != "builtin"]
    missing = [f"{status.name} (`{status.id}`)" for status in others if not status.installed]
    lines = [_agent(status) for status in others if status.installed]
    if missing:
        lines.append(
            f"- Not installed: {', '.join(missing)}. `qd agents` says how to install them."
        )
    return "Other agents here:\n\n" + "\n".join(lines)


def _known_agents() -> "KnownAgents":
    """Return the agents given by the engine; none when they cannot be read."""
    from pydantic import ValidationError

    from quarterdeck.wire.agents import AGENTS_VARIABLE, KnownAgents

    try:
        return KnownAgents.model_validate_json(os.environ.get(AGENTS_VARIABLE, "{}"))
    except ValidationError:
        return KnownAgents()


def _agent(status: "AgentStatus") -> str:
    version = f" {status.version}" if status.version else ""
    return f"- **{status.name}**{version} (`{status.id}`): {status.reason or 'available'}"


def _noun(count: int) -> str:
    return "block" if count == 1 else "blocks"


def _fence(block: ShellBlock) -> str:
    """Return a fence that does not occur in the script."""
    fence = "```"
    while fence in block.script:
        fence += "`"
    return fence


HISTORY_LIMIT = 300
"""Updates kept for a reload, counted from the end."""


class StoredSession(BaseModel):
    """A session as it is stored. `history` holds the protocol's update objects."""

    id: str
    directory: str
    mode: str = "default"
    planned: str | None = None
    """The last message if it was planned, not run."""
    history: list[dict[str, Any]] = []


class UnknownSessionError(Exception):
    """No session has this id, or its file cannot be read."""


class SessionStore:
    """The session files of one state directory. Blocking: call it from a thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def create(self, working_directory: str) -> StoredSession:
        """Create and store a new session."""
        session = StoredSession(id=str(uuid.uuid4()), directory=working_directory)
        self.save(session)
        return session

    def load(self, session_id: str) -> StoredSession:
        """Read a session back.

        Raises:
            UnknownSessionError: there is none.
        """
        try:
            text = self._path(session_id).read_text("utf-8")
            return StoredSession.model_validate_json(text)
        except (OSError, ValidationError, ValueError) as error:
            raise UnknownSessionError(session_id) from error

    def save(self, session: StoredSession) -> None:
        """Store a session in one step.

        Raises:
            OSError: the disk is full, or the directory cannot be written.
        """
        del session.history[:-HISTORY_LIMIT]
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(self._path(session.id), session.model_dump_json())

    def script(self, session: StoredSession) -> Path:
        """Return the file for the session's running block."""
        return self._directory / f"{session.id}.block"

    def _path(self, session_id: str) -> Path:
        # Through UUID: an id from outside must not become a path.
        return self._directory / f"{uuid.UUID(session_id)}.json"


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
        return "There is no git repository here, so I cannot report changes."
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
    options = ["-c", "core.quotePath=false", "-c", "diff.autoRefreshIndex=false"]
    command = ["git", "--no-optional-locks", *options, *arguments]
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


def plan(blocks: list[ShellBlock], completed: int = 0) -> Update:
    """Return a plan with one entry for each block, the first of which are completed."""
    entries = [
        {
            "content": block.title,
            "priority": "medium",
            "status": "completed" if number < completed else "pending",
        }
        for number, block in enumerate(blocks)
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
        self._approved = False

    async def run(self, message: str) -> BlockFailure | None:
        """Run or plan the message's blocks; return the one that failed.

        Return early when the runner is canceled.
        """
        self._session.history.append(user_message(message))
        planned, self._session.planned = self._session.planned, None
        self._approved = planned is not None and self._approves(message)
        if planned is not None and self._approved:
            message = planned
        await self._save()
        self._runner.variables = check_variables(message)
        try:
            return await self._answer(message)
        finally:
            await self._save()

    def _approves(self, message: str) -> bool:
        """Return whether a message approves the plan before it; notices may precede its text."""
        # Imported here: every start would pay for it.
        from quarterdeck.wire.chats import PLAN_APPROVED

        return self._session.mode != "plan" and message.endswith(PLAN_APPROVED)

    async def _answer(self, message: str) -> BlockFailure | None:
        parsed = parse(message)
        if not parsed.blocks:
            await self._emit(agent_message(await asyncio.to_thread(help_text, parsed)))
        elif self._session.mode == "plan":
            self._session.planned = message
            await self._plan(parsed.blocks)
        else:
            return await self._work(parsed)
        return None

    async def _plan(self, blocks: list[ShellBlock]) -> None:
        await self._emit(plan(blocks))
        await self._emit(agent_message(planned(blocks, self._session.directory)))

    async def _work(self, parsed: Parsed) -> BlockFailure | None:
        before = await take_snapshots(self._session.directory)
        runs = await self._run_all(parsed.blocks)
        if self._runner.cancelled:
            return None
        after = await take_snapshots(self._session.directory)
        changed = await describe(self._session.directory, before, after)
        text = summary(parsed.blocks, runs, parsed.skipped, changed)
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
            if self._approved:
                await self._emit(plan(blocks, len(runs)))
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
