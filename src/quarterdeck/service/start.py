"""Open the database of a service, and build its parts."""

import asyncio
import fcntl
import logging
import os
import re
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fastapi import Request, Response

from quarterdeck.local.files import reason_of
from quarterdeck.local.home import Home
from quarterdeck.local.processes import find
from quarterdeck.local.sockets import socket_address
from quarterdeck.local.trust import make_private, why_untrusted
from quarterdeck.sandboxes.port import PROCESS, SandboxDriver
from quarterdeck.sandboxes.source_port import LocalDriver
from quarterdeck.sandboxes.switchboard import Switchboard
from quarterdeck.service.automations.run_follower import follow_events
from quarterdeck.service.automations.runner import AutomationRunner, RunnerSettings
from quarterdeck.service.checks.sync_worker import CheckSender
from quarterdeck.service.context import Drivers, ServiceContext
from quarterdeck.service.db.database import SQLITE, Database, parse_url, sqlite_url
from quarterdeck.service.errors import HomeInUseError, HomeUnusableError
from quarterdeck.service.event_log import EventLog
from quarterdeck.service.first_start import ensure_installation
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.leases import Leases
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.forwarding import Upstreams
from quarterdeck.service.hosts.api import HostApis
from quarterdeck.service.hosts.settings import NO_HOSTS, HostsSettings
from quarterdeck.service.identity.authentication import Authenticator
from quarterdeck.service.identity.sign_in import DeviceRequests
from quarterdeck.service.identity.tokens import NO_SETTINGS, IdentitySettings
from quarterdeck.service.notifications.rows import store_calls
from quarterdeck.service.notifications.sender import NotificationService
from quarterdeck.service.ownership import ServiceHeartbeat, adopt, home_id
from quarterdeck.service.previews.service import PreviewService
from quarterdeck.service.replicas.file_search import FileSearch
from quarterdeck.service.replicas.rows import recorded
from quarterdeck.service.search.indexer import SearchIndexer
from quarterdeck.service.vault import claim, open_vault, seal_all
from quarterdeck.wire.agents import Agent, OwnAgent

log = logging.getLogger(__name__)

PRIVATE = 0o700
PASSABLE = 0o711
"""Mode of the root directory when root runs the service: sandboxes run as another user and must
reach their own directories below it, but may not list it. Also of the directory of their socket."""


class HomeLock:
    """The home's lock, held until `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Release the home for another service. Safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def take_home(home: Home) -> HomeLock:
    """Create the home's directories and take its lock.

    Raises:
        HomeInUseError: another service holds it.
        HomeUnusableError: a directory or the lock file cannot be created, or others could have written there.
    """
    for directory in (home.root, home.service):
        if why := why_untrusted(directory):
            raise HomeUnusableError(
                f"{directory} {why}, and the service would act by what is in it. "
                f"{make_private(directory)}"
            )
    try:
        passable = PASSABLE if os.geteuid() == 0 else PRIVATE
        _make(home.root, passable)
        _make(home.service, PRIVATE)
        _make(home.inside_sockets, passable)
        descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise HomeUnusableError(f"{e.filename or home.root} cannot be used: {reason_of(e)}.") from e
    return _lock(home, descriptor)


def _make(directory: Path, mode: int) -> None:
    directory.mkdir(mode=mode, parents=True, exist_ok=True)
    directory.chmod(mode)


def _lock(home: Home, descriptor: int) -> HomeLock:
    lock = _hold(descriptor, home.lock, f"A service of {home.root} runs already")
    try:
        home.stopped.unlink(missing_ok=True)
    except OSError as e:
        lock.release()
        raise HomeUnusableError(f"{home.stopped} cannot be written: {reason_of(e)}.") from e
    return lock


def _take_database(text: str) -> HomeLock | None:
    """Take the lock of a SQLite file, which several homes may name; None for a server.

    Raises:
        HomeInUseError: a service of another home uses it.
        HomeUnusableError: the lock cannot be taken.
        StorageError: the URL cannot be used.
    """
    url = parse_url(text)
    if url.get_backend_name() != SQLITE:
        return None
    database = Path(url.database or "").resolve()
    path = database.with_name(f"{database.name}.lock")
    if not path.parent.is_dir():
        return None  # opening the database says so
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise HomeUnusableError(f"{path} cannot be used: {reason_of(e)}.") from e
    return _hold(
        descriptor,
        path,
        f"The database {database} is used by a service of another home. Stop that one, or give this "
        "home a database of its own; several can share one on PostgreSQL. The other service",
    )


def _hold(descriptor: int, path: Path, held: str) -> HomeLock:
    """Take the lock of an open file; `held` begins the sentence that names who has it.

    Raises:
        HomeInUseError: a process has it.
        HomeUnusableError: the file cannot be written.
    """
    try:
        _wait_for(descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as e:
        pid = _holder(descriptor)
        os.close(descriptor)
        who = "another process" if pid is None else f"process {pid}"
        raise HomeInUseError(f"{held}: {who}.", pid) from e
    except OSError as e:
        os.close(descriptor)
        raise HomeUnusableError(f"{path} cannot be written: {reason_of(e)}.") from e
    return HomeLock(descriptor)


def _wait_for(descriptor: int) -> None:
    """Take the lock, also when a service that was killed left a child that has not begun its program.

    Raises:
        BlockingIOError: a running service holds it.
    """
    for _ in range(_LEFT_TRIES):
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _holder(descriptor)
            if pid is None or find(pid) is not None:
                raise
        time.sleep(_LEFT_STEP)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


_LEFT_TRIES = 100
_LEFT_STEP = 0.02
"""Seconds between two tries while the recorded holder has ended: a child closes the lock soon."""


def _holder(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None


_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _replicas_here(home: Home) -> dict[str, Path]:
    """Return where the files of each replica are, also of those that the database does not know."""
    packed = [*home.saves.glob("*.git"), *home.archives.glob("*.tar.gz")]
    paths = [*packed, *(path for path in home.workspaces.glob("*") if path.is_dir())]
    found = {path.name.partition(".")[0]: path for path in paths}
    return {id: path for id, path in found.items() if _ID.fullmatch(id)}


def _check_records(home: Home) -> None:
    """Refuse to start without a database if the home has replicas. The files are left as they are.

    Raises:
        HomeUnusableError: there are replicas, and no record of anything, or what is in the place of a
            file of the database is none.
    """
    for suffix in ("-wal", "-shm", "-journal"):
        path = home.database.with_name(home.database.name + suffix)
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise HomeUnusableError(
                f"{path} is in the place of a file of the database. Move it away and start again."
            )
    if not _replicas_here(home):
        return
    try:
        if home.database.is_file():  # a pipe would be waited for
            address = f"{home.database.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as connection:
                connection.execute("SELECT 1 FROM organizations LIMIT 1")
            return
    except sqlite3.DatabaseError as e:
        if "no such table" not in str(e):
            return  # opening it says what is wrong
    raise HomeUnusableError(
        f"The database {home.database} is missing or empty, and this home has replicas. Restore it from a "
        "backup, with the file whose name ends in -wal if there is one, and start again. If the home uses a "
        "database on a server, name it by --database-url or QUARTERDECK_DATABASE_URL. If it is lost, "
        "move the directories workspaces, archives and saves elsewhere: the service then starts without "
        "replicas. Their repositories are in workspaces/ID/files."
    )


START_BYTES = 1 << 20
"""Room that a start needs on the disk of its database: a stopped service leaves no log of it."""


def _make_room(home: Home) -> None:
    """Release the reserve of a disk that is too full for a start, so that replicas can be deleted."""
    disk = os.statvfs(home.service)
    if disk.f_bavail * disk.f_frsize < START_BYTES and home.reserve.exists():
        home.reserve.unlink()
        log.warning("The disk is full: the reserve of %s is released", home.root)


async def _tell_unrecorded(database: Database, home: Home) -> None:
    """Log which replicas a database that was damaged, or is an older copy, does not know."""
    here = await asyncio.to_thread(_replicas_here, home)
    if here:
        known = await database.read(recorded)
        for id in sorted(here.keys() - known):
            log.warning(
                "The database has no record of replica %s, whose files are %s", id, here[id]
            )


EVENT_FOLLOWERS = (store_calls, follow_events)
"""Called in the transaction that stores events, in this order: store calls of webhooks, update runs
of automations. (Entries of journals change rows before that, in `relay.project`.)"""


@asynccontextmanager
async def open_service(
    home: Home,
    local: LocalDriver,
    agents: Callable[[], list[Agent]],
    database_url: str | None = None,
    identity: IdentitySettings = NO_SETTINGS,
    hosts: HostsSettings = NO_HOSTS,
    own_agents: Mapping[str, OwnAgent] | None = None,
    own_keys: Callable[[], Mapping[str, str]] = dict[str, str],
    outgoing_private: bool | None = None,
    outgoing_proxy: bool = False,
    new_key: bool = False,
    others: Mapping[str, SandboxDriver] = MappingProxyType({}),
    switchboard: Switchboard | None = None,
) -> AsyncGenerator[ServiceContext]:
    """Take the home, open the database, create the rows of a first start.

    `agents` is called in a thread; `own_agents` are those that a person added, `own_keys` returns
    keys for the owner's replicas where no other is stored. The default database is the home's own
    SQLite file. `new_key` starts without the values of a master key that was lost. `local` has the
    sources, and the replicas of this machine; the first of `others` makes new replicas, by its name.
    `switchboard` takes the connections of engines in containers.

    Raises:
        StartError: the home is in use or cannot be used, its key is missing, or the database belongs to
            another master key.
        StorageError: the database cannot be opened, or a newer version wrote it.
    """
    locks = [take_home(home)]
    try:
        if database_url is None:
            await asyncio.to_thread(_make_room, home)
            await asyncio.to_thread(_check_records, home)
        own = await asyncio.to_thread(home_id, home)
        url = database_url or sqlite_url(home.database)
        if (file_lock := await asyncio.to_thread(_take_database, url)) is not None:
            locks.append(file_lock)
        database = await Database.open(url, own)
        try:
            vault = await open_vault(database, home.master_key, new_key)
            await claim(database, vault, home.master_key)
            await seal_all(database, vault)
            await database.write(lambda c: adopt(c, own, alone=database_url is None))
            await ensure_installation(database, home)
            await _tell_unrecorded(database, home)
            yield ServiceContext(
                database,
                EventLog(database, followers=EVENT_FOLLOWERS, home_id=own),
                local,
                Drivers({PROCESS: local, **others}, next(iter(others), PROCESS)),
                agents,
                home,
                vault,
                own,
                identity=identity,
                hosts=hosts,
                outgoing_private=outgoing_private,
                outgoing_proxy=outgoing_proxy,
                own_agents=own_agents or {},
                own_keys=own_keys,
                switchboard=switchboard,
            )
        finally:
            await database.close()
    finally:
        for lock in reversed(locks):
            lock.release()


ToolServer = Callable[[Request], Coroutine[Any, Any, Response]]
"""Answers a message of the Model Context Protocol with the rights of the request's caller.

It is a client of the service, so it comes from outside (`cli`)."""


@dataclass(frozen=True)
class ServiceParts:
    """The long-lived parts of one service, built by `build_service`.

    A part gets the parts that it calls. A part that only wakes another uses an event of the
    context.
    """

    context: ServiceContext
    authenticator: Authenticator
    devices: DeviceRequests
    upstreams: Upstreams
    heartbeat: ServiceHeartbeat
    fleet: Fleet
    leases: Leases | None
    """Of workspaces in containers, where there are any."""
    file_search: FileSearch
    previews: PreviewService
    host_apis: HostApis
    checks: CheckSender
    automations: AutomationRunner
    notifications: NotificationService
    search_indexer: SearchIndexer
    tools: ToolServer | None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the background tasks during the block; engines continue to run afterwards.

        Raises:
            StorageError: the database cannot be read or written.
        """
        await self.fleet.start()
        await self.previews.start()
        await self.heartbeat.start()
        if self.leases is not None:
            self.leases.start()
        self.notifications.start()
        self.automations.start()
        self.checks.start()
        self.search_indexer.start()
        storing_uses = asyncio.create_task(self.authenticator.uses.run())
        try:
            yield
        finally:
            self.context.stopping.set()
            self.context.event_log.end_streams()
            await self.heartbeat.close()
            if self.leases is not None:
                await self.leases.close()
            await self.upstreams.close()
            await self.file_search.close()
            await self.previews.close()
            await self.automations.close()
            await self.checks.close()
            await self.search_indexer.close()
            await self.fleet.close()
            await self.notifications.close()
            await self.host_apis.close()
            storing_uses.cancel()
            await asyncio.gather(storing_uses, return_exceptions=True)


def build_service(
    context: ServiceContext,
    fleet_settings: FleetSettings | None = None,
    runner_settings: RunnerSettings | None = None,
    tools: ToolServer | None = None,
) -> ServiceParts:
    """Return the parts of a service on an open home and database; none of them runs yet.

    Without `tools` there are none for agents.

    Raises:
        StartError: the URL of an outside issuer's keys is not safe.
    """
    fleet = Fleet(context, fleet_settings)
    host_apis = HostApis(context)
    checks = CheckSender(context)
    automations = AutomationRunner(context, fleet, checks, host_apis, runner_settings)
    notifications = NotificationService(context)
    search_indexer = SearchIndexer(context)
    previews = PreviewService(context)
    for observer in (notifications.hear, automations.hear, search_indexer.hear, previews.hear):
        context.event_log.observe(observer)
    context.event_log.observe_ends(previews.forget)
    return ServiceParts(
        context=context,
        authenticator=Authenticator(context),
        devices=DeviceRequests(),
        upstreams=Upstreams(context.home_id, context.stopping),
        heartbeat=ServiceHeartbeat(context),
        fleet=fleet,
        leases=Leases(context, switchboard, fleet)
        if (switchboard := context.switchboard)
        else None,
        file_search=FileSearch(context, fleet),
        previews=previews,
        host_apis=host_apis,
        checks=checks,
        automations=automations,
        notifications=notifications,
        search_indexer=search_indexer,
        tools=tools,
    )


REQUEST = b"GET /v1/health HTTP/1.1\r\nHost: quarterdeck\r\nConnection: close\r\n\r\n"
PROBE_SECONDS = 5.0


async def answers_health(address: Path | tuple[str, int]) -> bool:
    """Return whether `GET /v1/health` answers with 200 at a unix socket or TCP address."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await _connect(address)
            try:
                writer.write(REQUEST)
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
                await writer.wait_closed()
    except (OSError, TimeoutError):
        return False


async def _connect(
    address: Path | tuple[str, int],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(address, Path):
        with socket_address(address) as name:
            return await asyncio.open_unix_connection(name)
    return await asyncio.open_connection(*address)
