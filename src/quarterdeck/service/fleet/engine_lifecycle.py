"""The lifecycle of an engine: started, connected to, watched, restarted."""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from time import monotonic

from sqlalchemy import Connection

from quarterdeck.engine.link import EngineError, EngineLink, EngineProtocolError, EngineRefusedError
from quarterdeck.local.lookups import ORGANIZATION
from quarterdeck.sandboxes.errors import DiskFullError, EngineAwayError, SandboxError
from quarterdeck.sandboxes.port import PROCESS, Concern, RepositorySource, SandboxDriver
from quarterdeck.service.chats.delivery import open_chat
from quarterdeck.service.chats.rows import list_chats
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.environments.setup import ComposedSetup, bundle_for_start, compose, way_out
from quarterdeck.service.environments.warm_pool_rows import POOLED, mark_ready, note_failure
from quarterdeck.service.errors import (
    DatabaseClosedError,
    DatabaseFullError,
    SealedError,
    StorageError,
    UnknownWorkspaceError,
)
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.fleet.fork import take_files
from quarterdeck.service.fleet.permissions import effective_permissions, keep_permissions
from quarterdeck.service.fleet.reconcile import settle
from quarterdeck.service.fleet.runtime import (
    BootMonitor,
    NotReadyError,
    WorkspaceRuntime,
    append_error,
    feel_pulse,
    open_link,
)
from quarterdeck.service.fleet.saving import keep_saved, save_now
from quarterdeck.service.fleet.transitions import enter_active, enter_error
from quarterdeck.service.formats import moment_text
from quarterdeck.service.relay import relay
from quarterdeck.service.replicas.rows import (
    BUSY,
    WorkspaceRow,
    branch_of,
    change_workspace,
    drop_uncommitted,
    find_workspace,
    take_port_block,
    uncommitted_of,
)
from quarterdeck.wire.engine import EngineConfig, EngineHello, JournalEntry
from quarterdeck.wire.engine_versions import is_supported, supported_text
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.inside import FIRST_PORT, PORT_VARIABLE, PORTS_EACH
from quarterdeck.wire.replicas import AUTO_STOP_MINUTES, WorkspaceStatus
from quarterdeck.wire.setup import ClaimWorkspace, SetupPhase

log = logging.getLogger(__name__)


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
        environment=await _ports(site, row) | composed.variables | way_out(row, secret, layout),
        setup=composed.setup,
        agents=dict(site.tools.context.own_agents),
        permissions=await effective_permissions(site),
        hold_queues=True,
        auto_stop_seconds=60 * (row.auto_stop_minutes or AUTO_STOP_MINUTES),
        known_index=row.journal_index,
    )
    return config.model_dump_json(by_alias=True)


async def _ports(site: WorkspaceRuntime, row: WorkspaceRow) -> dict[str, str]:
    """Return the variable with the workspace's ports; none where all are assigned."""
    block = row.port_block if row.driver == PROCESS else 0  # a container has all ports
    if block is None:
        database = site.tools.context.database
        block = await retry_until_stored(
            lambda: database.write(lambda connection: take_port_block(connection, row.id))
        )
    return {} if block is None else {PORT_VARIABLE: str(FIRST_PORT + PORTS_EACH * block)}


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


NotStored = Callable[[StorageError], None]
"""Called each time a failure could not be stored."""


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
        ended = await self._attempt()
        while not ended:
            await asyncio.sleep(self._site.tools.settings.backoff[-1])
            ended = await self._attempt()

    async def _attempt(self) -> bool:
        """Do what `run` does; False if the disk has no room for the engine nor for its failure."""
        try:
            await self._run()
        except (UnknownWorkspaceError, DatabaseClosedError):
            pass
        except DiskFullError as e:
            try:
                await self._fail(_reason(e), _raise_full)
            except DatabaseFullError:
                return False
        except SandboxError as e:
            await self._fail(_reason(e))
        except (NotReadyError, SealedError) as e:
            await self._fail(str(e)[:REASON_LENGTH])
        except Exception:
            log.exception("The life of workspace %s failed", self._site.id)
            await self._fail("The service failed while running this replica; see its log.")
        return True

    async def _run(self) -> None:
        row = await self._site.row()
        ORGANIZATION.set(row.organization_id)
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
                log.warning("The engine of workspace %s was not started: %s", self._site.id, e)
                failure = e
        raise failure

    async def _fail(self, reason: str, not_stored: NotStored | None = None) -> None:
        with suppress(UnknownWorkspaceError):  # deleted, or another service has it now
            await self._site.row()
            await self._give_up(reason, not_stored)

    async def _give_up(self, reason: str, not_stored: NotStored | None) -> None:
        log.error("Workspace %s failed: %s", self._site.id, reason)
        try:
            await (await self._site.driver()).stop(self._site.id)
        except SandboxError as e:
            log.error("The sandbox of %s could not be stopped: %s", self._site.id, e)
        event_log = self._site.tools.context.event_log
        now = self._site.tools.context.clock()
        await retry_until_stored(
            lambda: event_log.write(lambda w: self._store_failure(w, reason, now)), not_stored
        )

    def _store_failure(self, writer: LogWriter, reason: str, now: datetime) -> None:
        row = find_workspace(writer.connection, self._site.id)
        if enter_error(writer, self._site.id, reason) and row is not None and row.warm_state:
            pool, generation = row.warm_pool_id, row.warm_generation
            note_failure(writer.connection, pool, generation, reason, now)


def _raise_full(error: StorageError) -> None:
    """Store no failure later that is over by then: there is room for both or for none."""
    if isinstance(error, DatabaseFullError):
        raise error


def _reason(error: SandboxError) -> str:
    text = str(error)
    if error.details and error.details.strip() not in text:
        text = f"{text}\n{error.details.strip()}"
    return text if len(text) <= REASON_LENGTH else f"{text[: REASON_LENGTH - 1]}…"


async def claim(site: WorkspaceRuntime, row: WorkspaceRow, calls: EngineLink) -> None:
    """Send a held engine its claim: its branch, and the keys of its owner's agents.

    Raises:
        EngineError: the engine was lost, or refused.
        TimeoutError: it does not answer.
    """
    context = site.tools.context
    bundle = await retry_until_stored(
        lambda: bundle_for_start(context, row.organization_id, row.user_id, row.environment_id)
    )
    request = ClaimWorkspace(branch=branch_of(row.name), credentials=bundle.credentials)
    async with asyncio.timeout(site.tools.settings.call_limit):
        await calls.claim(request)


class OutdatedEngineError(Exception):
    """The engine is of a version that this service does not work with."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"The replica's engine is of version {version}, and this service works with "
            f"{supported_text()}. Wake the replica: it is then started with another engine, and its "
            "files are kept."
        )


LAST_ENTRIES_SECONDS = 5.0
"""When a call's link is lost, the journal's may still bring entries for this long."""


class EngineSession:
    """Created for one connection."""

    def __init__(self, site: WorkspaceRuntime) -> None:
        self._site = site
        self._hello: EngineHello | None = None
        self._progress = BootMonitor(site.tools.settings.ready_limit)

    async def run(self) -> None:
        """Serve until the link is lost; all entries that it brought are stored then.

        Raises:
            EngineGoneError: no link could be opened.
            EngineRefusedError: the engine has another secret.
            EngineProtocolError: it sent something that is not of the protocol.
            NotReadyError: setting it up failed, or took too long.
            OutdatedEngineError: it is of a version that is not supported.
            UnknownWorkspaceError: the workspace was deleted.
        """
        row = await self._site.row()
        self._site.mark.put(row.journal_index)
        journal = await open_link(self._site, row, row.journal_index)
        try:
            calls = await open_link(self._site, row)
            try:
                self._site.pulse.hello = calls.hello
                await self._serve(row, journal, calls)
            finally:
                self._site.line.clear()
                await calls.close()
        finally:
            await journal.close()

    async def _serve(self, row: WorkspaceRow, journal: EngineLink, calls: EngineLink) -> None:
        if row.engine_version is not None:
            self._progress.ready()
        self._hello = calls.hello
        if not is_supported(calls.hello.version):
            raise OutdatedEngineError(calls.hello.version)
        self._progress.learn(calls.hello.setup)
        if row.journal_index >= calls.hello.last_index:
            self._progress.catch_up(calls.hello.setup)
        try:
            async with asyncio.TaskGroup() as group:
                companions = [
                    group.create_task(self._aside(journal, partial(self._start, row, calls))),
                    group.create_task(self._aside(journal, partial(feel_pulse, self._site, calls))),
                    group.create_task(self._aside(journal, partial(self._progress.follow, calls))),
                    group.create_task(
                        self._aside(journal, partial(keep_permissions, self._site, calls))
                    ),
                    group.create_task(self._aside(journal, partial(keep_saved, self._site))),
                ]
                context = self._site.tools.context
                await relay(journal, context.event_log, row.id, self._stored, self._site.mark.fail)
                for task in companions:
                    task.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures

    async def _aside(self, journal: EngineLink, work: Callable[[], Awaitable[None]]) -> None:
        """Run alongside the relay, which still stores received entries when the engine is lost."""
        try:
            await work()
        except (EngineError, TimeoutError) as e:
            log.info("A link to an engine was lost: %s", e)
            self._site.line.clear()
            if isinstance(e, EngineProtocolError):
                await journal.close(e)  # the relay stores what has arrived, then raises it
                return
            try:
                async with asyncio.timeout(LAST_ENTRIES_SECONDS):
                    await journal.wait_closed()
            except TimeoutError:
                await journal.close()

    async def _start(self, row: WorkspaceRow, calls: EngineLink) -> None:
        if row.status == WorkspaceStatus.PREPARING:
            await self._become_active(row, calls)
        # After that, because chats are also made while it is prepared.
        await self._open_chats(calls)
        held_back = await settle(self._site, calls)
        self._site.line.put(calls)
        self._site.unsaved.set()
        await self._site.courier.run(calls, calls.queue_release if held_back else None)

    async def _open_chats(self, calls: EngineLink) -> None:
        database = self._site.tools.context.database
        chats = await retry_until_stored(
            lambda: database.read(lambda c: list_chats(c, self._site.id))
        )
        for chat in chats:
            try:
                async with asyncio.timeout(self._site.tools.settings.call_limit):
                    await open_chat(calls, chat)
            except EngineRefusedError as e:
                # Not a reason to fail: the courier opens it again with the first message.
                log.warning("A chat could not be opened: %s", e.message)

    async def _become_active(self, row: WorkspaceRow, calls: EngineLink) -> None:
        if row.warm_state in POOLED:
            row = await self._wait_in_pool(row)
        if await self._progress.reached() == SetupPhase.HELD:
            await claim(self._site, row, calls)
            await self._note_claimed()
            await self._progress.reached(SetupPhase.READY)
        event_log = self._site.tools.context.event_log
        await retry_until_stored(lambda: event_log.write(lambda w: enter_active(w, self._site.id)))
        self._site.pulse.turn_ended = False

    async def _note_claimed(self) -> None:
        """Note that it has left its pool: no later engine is to be claimed again."""
        database = self._site.tools.context.database
        await retry_until_stored(
            lambda: database.write(lambda c: change_workspace(c, self._site.id, warm_pool_id=None))
        )

    async def _wait_in_pool(self, row: WorkspaceRow) -> WorkspaceRow:
        await self._progress.reached()
        database = self._site.tools.context.database
        await retry_until_stored(lambda: database.write(lambda c: mark_ready(c, row.id)))
        self._site.pulse.progress = None
        self._site.prepared.set()
        await self._site.claimed.wait()
        return await self._site.row()

    def _stored(self, entries: Sequence[JournalEntry]) -> None:
        self._site.seen()
        self._site.mark.put(entries[-1].index)
        self._progress.hear(entries)
        if self._hello and entries[0].index <= self._hello.last_index <= entries[-1].index:
            self._progress.catch_up(self._hello.setup)
        if any(entry.type == EventType.CHAT_TURN_COMPLETED for entry in entries):
            self._site.pulse.turn_ended = True
            self._site.unsaved.set()
