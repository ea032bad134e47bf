"""The lifecycle of an engine: started, watched, restarted.

Giving a forked workspace its files, before its engine is started for the first time.

The newest chat is copied if its agent's session can be exported from the other workspace. Otherwise
its transcript is, as a file `transcript-of-NAME.md` next to the repositories.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any

from sqlalchemy import Connection

from quarterdeck.engine.link import EngineError, EngineProtocolError, EngineRefusedError
from quarterdeck.sandboxes.errors import EngineAwayError, ProcessError, SandboxError
from quarterdeck.sandboxes.port import PROCESS, Concern, RepositorySource, SandboxDriver
from quarterdeck.service.chats.history import all_payloads, find_thread
from quarterdeck.service.chats.rows import change_chat, find_chat, list_chats, newest_message_chat
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.environments.setup import ComposedSetup, compose, way_out
from quarterdeck.service.environments.warm_pool_rows import note_failure
from quarterdeck.service.errors import DatabaseClosedError, UnknownWorkspaceError
from quarterdeck.service.event_log import EventLog, LogWriter
from quarterdeck.service.event_rows import NewEvent, git_operation
from quarterdeck.service.fleet.engine_session import EngineSession, OutdatedEngineError
from quarterdeck.service.fleet.permissions import effective_permissions
from quarterdeck.service.fleet.runtime import NotReadyError, WorkspaceRuntime, append_error
from quarterdeck.service.fleet.saving import save_now
from quarterdeck.service.fleet.transitions import enter_error
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.rows import (
    BUSY,
    WorkspaceRow,
    branch_of,
    change_workspace,
    drop_uncommitted,
    find_workspace,
    uncommitted_of,
)
from quarterdeck.wire.chats import Chat, EventChat
from quarterdeck.wire.engine import EngineConfig
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.history import AgentEventType, GitOperationPayload
from quarterdeck.wire.replicas import AUTO_STOP_MINUTES, WorkspaceStatus
from quarterdeck.wire.saves import SaveFork

_SWITCH = 'git branch -f "$1" HEAD 2>/dev/null; exec git symbolic-ref HEAD "refs/heads/$1"'
"""Changes neither the index nor a file, and continues a merge that is not finished."""
_WRITE = 'exec cat > "$1"'
SESSION_BYTES = 64 << 20
"""Largest session that is copied."""
MOST_EVENTS = 5_000
"""Newest events of a chat's history that are copied."""

log = logging.getLogger(__name__)


async def take_files(
    sandboxes: SandboxDriver,
    database: Database,
    event_log: EventLog,
    row: WorkspaceRow,
    sources: list[RepositorySource],
) -> None:
    """Copy the files, put every repository on its own branch, copy the chat.

    Where the files cannot be reached, the workspace starts from the other one's save. Safe to
    interrupt anywhere and repeat.

    Raises:
        SandboxError: the other workspace has no files, or they cannot be copied.
    """
    assert row.forked_from is not None
    source, texts = await retry_until_stored(
        lambda: database.read(lambda c: _read(c, row.forked_from))
    )
    pair = await retry_until_stored(lambda: database.read(lambda c: _chats(c, row)))
    if not await sandboxes.copy_files(row.forked_from, row.id):
        took_session = await _take_save(sandboxes, row, source, texts, pair)
    else:
        branch = branch_of(row.name)
        for repository in await sandboxes.provision(row.id, sources, branch, lambda _: None):
            await _run(sandboxes, row.id, repository.path, _SWITCH, branch)
        took_session = pair is not None and await _take_session(sandboxes, row, *pair)
        if source is not None and not (took_session and _all_of(pair, texts)):
            directory = (await sandboxes.layout(row.id)).workspace_dir
            name, data = f"{directory}/{_file_name(source)}", transcript(texts).encode()
            await _run(sandboxes, row.id, directory, _WRITE, name, data=data)

    def finish(writer: LogWriter) -> None:
        if pair is not None and took_session:
            _take_chat(writer, row, source, *pair)
        change_workspace(writer.connection, row.id, forked_from=None)

    await retry_until_stored(lambda: event_log.write(finish))


def _read(connection: Connection, source_id: str | None) -> tuple[WorkspaceRow | None, list[str]]:
    """Return the workspace that was forked, and its history."""
    row = find_workspace(connection, source_id or "")
    thread = row and find_thread(connection, row.id, None)
    return row, all_payloads(connection, thread, 0) if thread else []


def _chats(connection: Connection, row: WorkspaceRow) -> tuple[Chat, Chat] | None:
    """Return the chat that is copied, and the fork's own that continues it."""
    own = list_chats(connection, row.id)
    others = [
        chat
        for chat in list_chats(connection, row.forked_from or "")
        if own and chat.provider == own[0].provider
    ]
    newest = newest_message_chat(others)
    return (newest, own[0]) if newest is not None else None


def _all_of(pair: tuple[Chat, Chat] | None, texts: Sequence[str]) -> bool:
    """Return whether a history is that of one chat, and short enough to be copied."""
    id = pair and str(pair[0].id)
    return len(texts) <= MOST_EVENTS and all(json.loads(text)["chatId"] == id for text in texts)


async def _take_session(sandboxes: SandboxDriver, row: WorkspaceRow, chat: Chat, own: Chat) -> bool:
    """Copy the session of a chat's agent; return whether that was possible."""
    assert row.forked_from is not None
    layout, other = await sandboxes.layout(row.id), await sandboxes.layout(row.forked_from)
    if (layout.workspace_dir, layout.home_dir) != (other.workspace_dir, other.home_dir):
        return False  # an agent's session depends on the directory that it started in
    tool = (*layout.interpreter, "-m", "quarterdeck.agents.session_files")
    places = (layout.home_dir, layout.state_dir)
    session = bytearray()
    take = (*tool, "take", *places, str(chat.id), chat.provider)
    try:
        output = sandboxes.stream_command(row.forked_from, take, directory=layout.home_dir)
        async with aclosing(output) as parts:
            async for part in parts:
                session += part
                if len(session) > SESSION_BYTES:
                    return False
        if not session:
            return False
        put = (*tool, "put", *places, str(own.id))
        done = sandboxes.stream_command(row.id, put, directory=layout.home_dir, data=bytes(session))
        async with aclosing(done) as parts:
            async for _ in parts:
                pass
    except (ProcessError, SandboxError) as error:  # the other workspace may be packed by now
        log.warning("the session of chat %s could not be copied: %s", chat.id, error)
        return False
    return True


def _file_name(source: WorkspaceRow) -> str:
    """Return the name of the file with a transcript."""
    return f"transcript-of-{source.name.replace('/', '-')}.md"


async def _take_save(
    sandboxes: SandboxDriver,
    row: WorkspaceRow,
    source: WorkspaceRow | None,
    texts: Sequence[str],
    pair: tuple[Chat, Chat] | None,
) -> bool:
    """Start from the other workspace's save; return whether a chat's session is in it.

    Raises:
        SandboxError: there is none, or it cannot be copied.
    """
    saves = sandboxes.saved_work
    assert row.forked_from is not None and saves is not None
    layout = await sandboxes.layout(row.id)
    home, agents = Path(layout.home_dir).name, f"{Path(layout.state_dir).name}/agents"
    places = {f"{home}/": f"{home}/"}
    took_session = False
    if pair is not None:
        session = f"{agents}/{pair[0].id}/"
        places[session] = f"{agents}/{pair[1].id}/"
        took_session = bool(await saves.files(row.forked_from, session))
    written: dict[str, str] = {}
    if source is not None and not (took_session and _all_of(pair, texts)):
        written[f"{Path(layout.workspace_dir).name}/{_file_name(source)}"] = transcript(texts)
    fork = SaveFork(branch=branch_of(row.name), places=places, texts=written)
    await saves.fork(row.forked_from, row.id, fork)
    return took_session


def _take_chat(
    writer: LogWriter, row: WorkspaceRow, source: WorkspaceRow | None, chat: Chat, own: Chat
) -> None:
    """Copy the history of the other chat to the fork's."""
    connection, id = writer.connection, str(own.id)
    thread = find_thread(connection, row.forked_from or "", str(chat.id))
    texts = all_payloads(connection, thread, max(0, thread.total - MOST_EVENTS)) if thread else []
    name = source.name if source else "a replica that was deleted"
    deltas = [json.loads(text) | {"chatId": id} for text in texts]
    writer.append(
        row.id,
        [
            *(NewEvent(EventType.CHAT_TURN_DELTA, delta) for delta in deltas),
            git_operation(id, GitOperationPayload(operation="fork", text=f"Forked from {name}")),
        ],
    )
    change_chat(connection, row.id, id, title=chat.title, last_message_text=chat.last_message_text)
    if (changed := find_chat(connection, row.id, id)) is not None:
        payload = EventChat.model_validate(changed.model_dump()).model_dump(mode="json")
        writer.append(row.id, [NewEvent(EventType.CHAT_UPDATED, {"chat": payload})])


async def _run(
    sandboxes: SandboxDriver,
    workspace_id: str,
    directory: str,
    script: str,
    *arguments: str,
    data: bytes = b"",
) -> None:
    command = ("/bin/sh", "-c", script, "sh", *arguments)
    running = sandboxes.stream_command(workspace_id, command, directory=directory, data=data)
    try:
        async with aclosing(running) as parts:
            async for _ in parts:
                pass
    except ProcessError as error:
        raise SandboxError("The fork could not be prepared.", str(error)) from error


def transcript(texts: Sequence[str]) -> str:
    """Return the history of a workspace as Markdown.

    Args:
        texts: payloads of its history in order, as JSON.
    """
    parts: list[str] = []
    speaking = ""
    for text in texts:
        who, said = _speech(json.loads(text)["event"])
        if not said:
            continue
        if who == speaking == "Agent":
            parts[-1] += said
        else:
            parts.append(said if who == "Tool" else f"## {who}\n\n{said}")
        speaking = who
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _speech(event: dict[str, Any]) -> tuple[str, str]:
    """Return the speaker and the text of an event."""
    payload: dict[str, Any] = event.get("payload") or {}
    match event.get("type"), payload.get("sessionUpdate"):
        case AgentEventType.USER_MESSAGE, _:
            return "Person", str(payload.get("text") or "")
        case AgentEventType.SESSION_UPDATE, "agent_message_chunk":
            content: dict[str, Any] = payload.get("content") or {}
            return "Agent", str(content.get("text") or "")
        case AgentEventType.SESSION_UPDATE, "tool_call":
            title = str(payload.get("title") or "").strip()
            return "Tool", f"    {title}".replace("\n", "\n    ") if title else ""
        case AgentEventType.GIT_OPERATION, _:
            return "Tool", f"    {payload.get('text') or ''}"
        case _:
            return "", ""


async def bring_up(site: WorkspaceRuntime, row: WorkspaceRow) -> None:
    """Start the workspace's engine, unless it runs.

    Safe to interrupt anywhere and repeat.

    Raises:
        SandboxError: the files cannot be made, or the engine does not start.
    """
    sandboxes = await site.driver()
    if await sandboxes.alive(site.id):
        return
    async with site.tools.slots:
        await _restore(site, sandboxes, row)
        sources = [
            RepositorySource.from_json(repository)
            for repository in json.loads(row.repositories_json)
        ]
        concerns: list[Concern] = []

        def report(line: str) -> None:
            _report(site, line)
            if isinstance(line, Concern):
                concerns.append(line)

        database = site.tools.context.database
        if row.forked_from is not None:
            _report(site, "Copying the files")
            await take_files(sandboxes, database, site.tools.context.event_log, row, sources)
        changes = await retry_until_stored(
            lambda: database.read(lambda c: uncommitted_of(c, site.id))
        )
        branch = branch_of(row.name)
        repositories = await sandboxes.provision(site.id, sources, branch, report, changes)
        await _append_concerns(site, concerns)
        composed = await _compose(site, row)
        await sandboxes.write_config(site.id, await _config(site, row, repositories, composed))
        await _note_start(site, row, composed, repositories)
        await sandboxes.start(site.id, "large" if row.size == "large" else "small")
        if changes:  # they are in the files now
            await retry_until_stored(lambda: database.write(lambda c: drop_uncommitted(c, site.id)))
    site.pulse.progress = None


async def _append_concerns(site: WorkspaceRuntime, concerns: list[Concern]) -> None:
    events = [
        NewEvent(EventType.ERROR, {"code": ErrorCode.CONFLICT, "message": concern})
        for concern in concerns
    ]
    event_log = site.tools.context.event_log
    if events:
        await retry_until_stored(lambda: event_log.append(site.id, events))


async def _restore(site: WorkspaceRuntime, sandboxes: SandboxDriver, row: WorkspaceRow) -> None:
    if row.packed_at is not None:
        _report(site, "Restoring the files from their archive")
    await sandboxes.unpack(site.id, packed=row.packed_at is not None)


async def _compose(site: WorkspaceRuntime, row: WorkspaceRow) -> ComposedSetup:
    context = site.tools.context
    return await retry_until_stored(lambda: compose(context, row, lambda line: _report(site, line)))


async def _config(
    site: WorkspaceRuntime,
    row: WorkspaceRow,
    repositories: list[EngineRepository],
    composed: ComposedSetup,
) -> str:
    sandboxes = await site.driver()
    layout = await sandboxes.layout(site.id)
    isolation = await sandboxes.isolation()
    secret = site.tools.context.vault.unseal(row.id, row.engine_secret_sealed)
    config = EngineConfig(
        workspace_id=row.id,  # pyright: ignore[reportArgumentType] - text is read as an id
        secret=secret,
        workspace_dir=layout.workspace_dir,
        state_dir=layout.state_dir,
        run_dir=layout.run_dir,
        isolation=isolation.mode,
        repositories=repositories,
        environment=composed.variables | way_out(row, secret, layout),
        setup=composed.setup,
        agents=dict(site.tools.context.own_agents),
        permissions=await effective_permissions(site),
        hold_queues=True,
        auto_stop_seconds=60 * (row.auto_stop_minutes or AUTO_STOP_MINUTES),
        known_index=row.journal_index,
    )
    return config.model_dump_json(by_alias=True)


async def _note_start(
    site: WorkspaceRuntime,
    row: WorkspaceRow,
    composed: ComposedSetup,
    repositories: list[EngineRepository],
) -> None:
    """Note the start, and the boot of the machine if the engine runs on this one.

    Raises:
        UnknownWorkspaceError: another service has the workspace now.
    """
    columns: dict[str, str | None] = {
        "boot_id": site.tools.settings.boot_id if row.driver == PROCESS else None,
        "packed_at": None,
        "clones_json": None if row.driver == PROCESS else _as_json(repositories),
        "setup_json": composed.summary_json(moment_text(site.tools.context.clock())),
    }
    if row.status == WorkspaceStatus.PREPARING:
        columns["engine_version"] = None  # set again by the engine's `engine.ready`
    database = site.tools.context.database

    def note(connection: Connection) -> None:
        found = find_workspace(connection, row.id)
        if found is None or not found.is_of(site.tools.context.home_id):
            raise UnknownWorkspaceError(f"There is no workspace {row.id}.")
        change_workspace(connection, row.id, **columns)

    await retry_until_stored(lambda: database.write(note))


def _as_json(repositories: list[EngineRepository]) -> str:
    return json.dumps([one.model_dump(mode="json", by_alias=True) for one in repositories])


def _report(site: WorkspaceRuntime, line: str) -> None:
    site.pulse.progress = line
    log.debug("%s: %s", site.id, line)


class Restarts:
    """At most `most` within `window` seconds."""

    def __init__(self, most: int, window: float, now: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._window = window
        self._now = now
        self._times: deque[float] = deque()

    def allowed(self) -> bool:
        """Count one more, unless the limit is reached."""
        now = self._now()
        while self._times and now - self._times[0] >= self._window:
            self._times.popleft()
        if len(self._times) >= self._most:
            return False
        self._times.append(now)
        return True


REASON_LENGTH = 4000
STEADY_SECONDS = 10.0
"""A connection that is lost sooner counts as a failed attempt."""
NOT_UNDERSTOOD = (
    "The replica's engine sent something that the service cannot read. The service connects to it"
    " again and again, with pauses. If the replica does not go on, put it to sleep and wake it."
)


class EngineLifecycle:
    """Runs while the workspace is preparing or active. Canceling it does not stop the engine."""

    def __init__(self, site: WorkspaceRuntime) -> None:
        settings = site.tools.settings
        self._site = site
        self._restarts = Restarts(settings.restarts, settings.restart_window)
        self._reported = False
        """An error about what the engine sends is in the log."""
        self.ending = False
        """Set when the engine is being stopped: a lost link is then the end, not an accident."""

    async def run(self) -> None:
        """Return once the engine was stopped, the workspace deleted, or it failed for good."""
        try:
            await self._run()
        except (UnknownWorkspaceError, DatabaseClosedError):
            return
        except SandboxError as e:
            await self._fail(_reason(e))
        except NotReadyError as e:
            await self._fail(str(e)[:REASON_LENGTH])
        except Exception:
            log.exception("The life of workspace %s failed", self._site.id)
            await self._fail("The service failed while running this replica; see its log.")

    async def _run(self) -> None:
        row = await self._site.row()
        if row.status not in BUSY:
            return  # it was put to sleep, or failed, in the meantime
        await self._bring_up(row)
        pauses = self._site.tools.settings.backoff
        failures = 0
        while True:
            linked = await self._follow()
            if self.ending:
                return
            failures = 0 if linked else failures + 1
            if not await self._is_alive():
                await self._start_again()
            elif failures:
                await asyncio.sleep(pauses[min(failures, len(pauses)) - 1])

    async def _is_alive(self) -> bool:
        """Return whether the engine runs, as soon as that can be known."""
        while True:
            try:
                return await (await self._site.driver()).alive(self._site.id)
            except EngineAwayError:
                await asyncio.sleep(self._site.tools.settings.backoff[-1])

    async def _bring_up(self, row: WorkspaceRow) -> None:
        """Start the engine, as soon as the program that runs its container answers.

        Raises:
            SandboxError: as `bring_up`.
        """
        while True:
            try:
                return await bring_up(self._site, row)
            except EngineAwayError as e:
                self._site.pulse.progress = str(e)
                await asyncio.sleep(self._site.tools.settings.backoff[-1])
                row = await self._site.row()

    async def _follow(self) -> bool:
        """Serve one connection to its end; False when there was none, or only for a moment.

        Raises:
            NotReadyError: the engine cannot be used.
        """
        start = monotonic()
        try:
            await EngineSession(self._site).run()
            return monotonic() - start >= STEADY_SECONDS
        except EngineRefusedError as e:
            await self._site.row()  # raises if another service has it now
            log.error("Workspace %s runs an engine that is not ours: %s", self._site.id, e)
            await (await self._site.driver()).stop(self._site.id)
        except EngineError as e:
            log.info("Workspace %s: %s", self._site.id, e)
            if isinstance(e, EngineProtocolError) and not self._reported:
                self._reported = await append_error(self._site, NOT_UNDERSTOOD)
        except OutdatedEngineError as e:
            limit = self._site.tools.settings.save_limit
            failure = await save_now(self._site, limit, followed=False)
            lost = (
                f" Before it was ended, its work could not be saved: {failure}" if failure else ""
            )
            raise NotReadyError(f"{e}{lost}") from e
        return False

    async def _start_again(self) -> None:
        """Start an engine that died.

        Raises:
            SandboxError: it died, or did not start, too often.
        """
        failure = SandboxError("The replica's engine ended again and again.")
        while self._restarts.allowed():
            log.warning("The engine of workspace %s died; starting it again", self._site.id)
            try:
                await self._bring_up(await self._site.row())
                return
            except SandboxError as e:
                failure = e
        raise failure

    async def _fail(self, reason: str) -> None:
        with suppress(UnknownWorkspaceError):  # deleted, or another service has it now
            await self._site.row()
            await self._give_up(reason)

    async def _give_up(self, reason: str) -> None:
        log.error("Workspace %s failed: %s", self._site.id, reason)
        try:
            await (await self._site.driver()).stop(self._site.id)
        except SandboxError as e:
            log.error("The sandbox of %s could not be stopped: %s", self._site.id, e)
        event_log = self._site.tools.context.event_log
        now = self._site.tools.context.clock()
        await retry_until_stored(
            lambda: event_log.write(lambda w: self._store_failure(w, reason, now))
        )

    def _store_failure(self, writer: LogWriter, reason: str, now: datetime) -> None:
        row = find_workspace(writer.connection, self._site.id)
        if enter_error(writer, self._site.id, reason) and row is not None and row.warm_state:
            pool, generation = row.warm_pool_id, row.warm_generation
            note_failure(writer.connection, pool, generation, reason, now)


def _reason(error: SandboxError) -> str:
    text = str(error)
    if error.details and error.details.strip() not in text:
        text = f"{text}\n{error.details.strip()}"
    return text if len(text) <= REASON_LENGTH else f"{text[: REASON_LENGTH - 1]}…"
