"""The shared state of a running workspace, and the connection to its engine."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from quarterdeck.engine.link import (
    EngineError,
    EngineGoneError,
    EngineLink,
    EngineProtocolError,
    EngineRefusedError,
)
from quarterdeck.sandboxes.port import SandboxDriver
from quarterdeck.service.chats.delivery import MessageDelivery
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.faults import log_storage_error, retry_until_stored
from quarterdeck.service.errors import ApiError, StorageError, UnknownWorkspaceError
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.replicas.rows import WorkspaceRow, find_workspace
from quarterdeck.wire.engine import EngineHello, EngineReport, JournalEntry
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.setup import SetupPhase, SetupState

T = TypeVar("T")


class EngineChannel:
    """Holds the link while there is one; callers without a link wait a little."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._link: EngineLink | None = None
        self._there = asyncio.Event()

    def put(self, link: EngineLink) -> None:
        """Note that the engine can be called."""
        self._link = link
        self._there.set()

    def clear(self) -> None:
        """Note that the engine cannot be called."""
        self._link = None
        self._there.clear()

    @property
    def link(self) -> EngineLink | None:
        """The link, if it is open now."""
        return None if self._link is None or self._link.closed else self._link

    async def call(self, request: Callable[[EngineLink], Awaitable[T]], limit: float) -> T:
        """Make a call on the link.

        Raises:
            ApiError: the engine's own refusal with its code; ENGINE_STARTING when it does not
                run yet, ENGINE_UNREACHABLE when it was lost or did not answer within `limit`.
        """
        link = await self._open_link()
        try:
            async with asyncio.timeout(limit):
                return await request(link)
        except EngineError as e:
            raise api_error(e) from e
        except TimeoutError as e:
            raise unreachable(f"The replica's engine does not answer. {NEXT_STEP}") from e

    async def _open_link(self) -> EngineLink:
        try:
            async with asyncio.timeout(self._wait):
                while (link := self.link) is None:
                    self._there.clear()
                    await self._there.wait()
                return link
        except TimeoutError as e:
            raise ApiError(
                ErrorCode.ENGINE_STARTING, "The replica's engine is starting. Try again shortly."
            ) from e


NEXT_STEP = "Try again. If that does not help, put the replica to sleep and wake it."


def unreachable(message: str) -> ApiError:
    """Return the error for an unreachable engine; whether a call was carried out is not known."""
    return ApiError(ErrorCode.ENGINE_UNREACHABLE, message)


def api_error(error: EngineError) -> ApiError:
    """Return an engine's error under the contract's code; one from a newer engine is an internal error."""
    if not isinstance(error, EngineRefusedError):
        return unreachable(error.message)
    try:
        code = ErrorCode(error.code)
    except ValueError:
        code = ErrorCode.INTERNAL_ERROR
    if code is ErrorCode.UNAUTHORIZED:  # between the engine and the service, not the caller's
        code = ErrorCode.ENGINE_UNREACHABLE
    return ApiError(code, error.message, error.details)


class JournalMark:
    """Follows the relay, so that callers can wait for a change in the engine to be stored."""

    def __init__(self) -> None:
        self._index = 0
        self._moved = asyncio.Event()
        self.failure: StorageError | None = None
        """Why the next entries could not be stored so far; they are tried again."""

    def fail(self, error: StorageError) -> None:
        """Keep the error of a write, for those who wait."""
        self.failure = error

    def put(self, index: int) -> None:
        """Note that everything up to this index is stored."""
        self._index = index
        self.failure = None
        self._moved.set()
        self._moved = asyncio.Event()

    async def reached(self, index: int) -> None:
        """Return once everything up to an index is stored."""
        while self._index < index:
            await self._moved.wait()


@dataclass(frozen=True)
class Dependencies:
    """Shared by all workspaces. `slots` bounds how many are prepared, `saves` how many saved at once."""

    context: ServiceContext
    settings: FleetSettings
    slots: asyncio.Semaphore
    saves: asyncio.Semaphore


@dataclass
class WorkspaceHealth:
    """When the engine last answered, and its last report."""

    last_seen: datetime | None = None
    hello: EngineHello | None = None
    report: EngineReport | None = None
    turn_ended: bool = False
    """A turn has ended since the workspace became active."""
    progress: str | None = None
    """The current step while the workspace is prepared."""


@dataclass
class WorkspaceRuntime:
    """One workspace: its parts, shared by its supervisor, its life and its sessions."""

    id: str
    tools: Dependencies
    line: EngineChannel
    courier: MessageDelivery
    pulse: WorkspaceHealth = field(default_factory=WorkspaceHealth)
    mark: JournalMark = field(default_factory=JournalMark)
    prepared: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it waits in a pool, prepared."""
    claimed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it left its pool."""
    permissions_changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when its permission policy may have changed in the rows."""
    giving_permissions: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the engine is given a permission policy."""
    unsaved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there may be work that is not saved (`saving`)."""
    saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is being saved."""

    def seen(self) -> None:
        """Note that the engine has just answered."""
        self.pulse.last_seen = self.tools.context.clock()

    async def driver(self) -> SandboxDriver:
        """Return the driver of its sandbox, as soon as the database answers.

        Raises:
            UnknownWorkspaceError: there is no such workspace.
        """
        return await retry_until_stored(lambda: self.tools.context.driver(self.id))

    async def row(self) -> WorkspaceRow:
        """Read its row, as soon as the database answers.

        Raises:
            UnknownWorkspaceError: there is none, or another service has it.
        """
        database, home = self.tools.context.database, self.tools.context.home_id
        row = await retry_until_stored(lambda: database.read(lambda c: find_workspace(c, self.id)))
        if row is None or not row.is_of(home):
            raise UnknownWorkspaceError(f"There is no workspace {self.id}.")
        return row


def new_site(workspace_id: str, tools: Dependencies) -> WorkspaceRuntime:
    """Return the parts of a workspace."""
    courier = MessageDelivery(
        tools.context.database,
        tools.context.event_log,
        workspace_id,
        pauses=tools.settings.redelivery,
        limit=tools.settings.call_limit,
        clock=lambda: tools.context.clock(),
    )
    return WorkspaceRuntime(workspace_id, tools, EngineChannel(tools.settings.link_wait), courier)


log = logging.getLogger(__name__)


async def feel_pulse(site: WorkspaceRuntime, calls: EngineLink) -> None:
    """Query the engine's status regularly, until the link is lost.

    Raises:
        EngineError: the link was lost.
        TimeoutError: the engine does not answer.
    """
    settings = site.tools.settings
    reported = False
    while True:
        async with asyncio.timeout(settings.call_limit):
            report = site.pulse.report = await calls.status()
        site.seen()
        if report.journal_fault is None:
            reported = False
        elif not reported:
            reported = await _append_fault(site, report.journal_fault)
        await asyncio.sleep(settings.heartbeat)


FAULT_LENGTH = 500
"""Characters of an engine's fault that are shown."""


async def _append_fault(site: WorkspaceRuntime, fault: str) -> bool:
    """Store an event about a journal that cannot be written; False when that failed too."""
    return await append_error(
        site,
        f"The replica's journal cannot be written: {fault[:FAULT_LENGTH]}. Its agents wait, and"
        " continue by themselves once it can. Free some space on the disk.",
    )


async def append_error(site: WorkspaceRuntime, message: str) -> bool:
    """Append an error to the log of a workspace; False when it cannot be stored now."""
    payload = {"code": ErrorCode.INTERNAL_ERROR, "message": message}
    try:
        await site.tools.context.event_log.append(site.id, [NewEvent(EventType.ERROR, payload)])
    except UnknownWorkspaceError:
        return True  # deleted in the meantime
    except StorageError as e:
        log_storage_error(log, f"An error of {site.id} could not be stored ({message})", e)
        return False
    return True


_TELLING = (EventType.HOOKS_STATUS, EventType.ERROR)
"""Entries after which the engine's progress is queried; a boot that fails ends with an error."""
_HOOKS = (SetupPhase.WARM_HOOKS, SetupPhase.START_HOOKS)
"""Phases that end by themselves: every hook has its own time limit."""


class NotReadyError(Exception):
    """The engine runs, but did not become ready. The text becomes the replica's error."""


class BootMonitor:
    """One connection's view of a boot. `limit` is how many seconds may pass without any progress."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._phase: SetupPhase | None = None
        self._failure_stored = False
        self._moved = asyncio.Event()
        self._news = asyncio.Event()

    def ready(self) -> None:
        """Note that the engine is ready."""
        self._move(SetupPhase.READY)

    def hear(self, entries: Sequence[JournalEntry]) -> None:
        """Note that entries of the journal were stored."""
        for entry in entries:
            if entry.type == EventType.ENGINE_READY:
                self.ready()
            elif entry.type in _TELLING:
                self._failure_stored = self._failure_stored or entry.type == EventType.ERROR
                self._news.set()

    def catch_up(self, state: SetupState | None) -> None:
        """Note that everything up to the report of this state is stored."""
        if state is not None and state.phase == SetupPhase.FAILED:
            self._failure_stored = True
        self._news.set()

    def learn(self, state: SetupState | None) -> None:
        """Note the progress that the engine reported. A failure counts after all earlier events.

        Raises:
            NotReadyError: its boot failed.
        """
        if state is None:
            return
        if state.phase == SetupPhase.FAILED:
            if not self._failure_stored:
                return
            raise NotReadyError(state.failure or "Setting the replica up failed.")
        if state.phase != SetupPhase.READY:  # that is reported by the journal, in order
            self._move(state.phase)

    async def follow(self, calls: EngineLink) -> None:
        """Query the engine after each step of its boot, until the link is lost.

        Raises:
            EngineError: the link was lost.
            NotReadyError: the boot failed.
        """
        while True:
            await self._news.wait()
            self._news.clear()
            self.learn((await calls.status()).setup)

    async def reached(self, *phases: SetupPhase) -> SetupPhase:
        """Wait until it is held or ready, or in one of the given phases.

        Raises:
            NotReadyError: there is no more progress.
        """
        wanted = phases or (SetupPhase.HELD, SetupPhase.READY)
        while self._phase not in wanted:
            self._moved.clear()
            try:
                async with asyncio.timeout(self._limit):
                    await self._moved.wait()
            except TimeoutError as e:
                if self._phase not in _HOOKS:
                    raise NotReadyError("The replica's engine did not become ready in time.") from e
        assert self._phase is not None  # it is one of the expected ones
        return self._phase

    def _move(self, phase: SetupPhase) -> None:
        if self._phase != SetupPhase.READY:
            self._phase = phase
        self._moved.set()


async def open_link(
    site: WorkspaceRuntime, row: WorkspaceRow, after: int | None = None
) -> EngineLink:
    """Open a link; `after` requests the journal.

    Raises:
        EngineGoneError: no engine listens, or it does not answer in time.
        EngineRefusedError: it has another secret, or another service has it.
        EngineProtocolError: it is the engine of another workspace, or no engine.
    """
    secret = site.tools.context.vault.unseal(row.id, row.engine_secret_sealed)
    driver = await site.driver()
    try:
        async with asyncio.timeout(site.tools.settings.link_limit):
            reader, writer = await driver.connect(site.id)
            link = await EngineLink.open(reader, writer, secret, after, row.lease)
    except OSError as e:  # includes a time-out
        raise EngineGoneError("The replica's engine cannot be reached.") from e
    if str(link.hello.workspace_id) != site.id:
        await link.close()
        raise EngineProtocolError("The engine is that of another replica.")
    return link
