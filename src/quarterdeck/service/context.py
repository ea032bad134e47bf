"""The data that routes and the long-lived parts of a service share, and the dependencies for it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, cast

from cachetools import LRUCache
from fastapi import Depends, Path, Request

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import PROCESS, SandboxDriver
from quarterdeck.sandboxes.source_port import Sources
from quarterdeck.sandboxes.switchboard import Switchboard
from quarterdeck.service.automations.changes import ChangeStreams
from quarterdeck.service.caches import Remembered
from quarterdeck.service.chats.rows import TurnPlaces
from quarterdeck.service.db.database import Database
from quarterdeck.service.errors import ApiError, UnknownWorkspaceError
from quarterdeck.service.event_log import EventLog
from quarterdeck.service.hosts.settings import NO_HOSTS, HostsSettings
from quarterdeck.service.identity.tokens import NO_SETTINGS, IdentitySettings
from quarterdeck.service.replicas.rows import WorkspaceRow, find_workspace
from quarterdeck.service.vault import Vault
from quarterdeck.wire.agents import Agent, OwnAgent
from quarterdeck.wire.base import GivenId, utc_now
from quarterdeck.wire.errors import ErrorCode

if TYPE_CHECKING:
    from quarterdeck.service.identity.service import Caller
    from quarterdeck.service.start import ServiceParts


@dataclass(frozen=True)
class Drivers:
    """The sandbox drivers of a service, by the names in workspaces' rows.

    `chosen` makes new workspaces. A workspace keeps the driver that made it.
    """

    known: Mapping[str, SandboxDriver]
    chosen: str = PROCESS

    def is_local(self, driver: SandboxDriver) -> bool:
        """Return whether its sandboxes share the ports of this machine."""
        return driver is self.known.get(PROCESS)

    def unreachable(self, row: WorkspaceRow) -> dict[str, datetime | str | None]:
        """Return the fields of a record that say why a replica of this home cannot be reached."""
        driver = self.known.get(row.driver)
        absence = driver.absence(row.id) if driver else None
        if absence is None:
            return {}
        return {"unreachable_since": absence.since, "unreachable_reason": absence.reason}

    def named(self, name: str) -> SandboxDriver:
        """Return a driver.

        Raises:
            SandboxError: it is not configured.
        """
        try:
            return self.known[name]
        except KeyError as e:
            raise SandboxError(
                f"This replica runs on {name}, which is not configured here. Set "
                f'driver = "{name}" in [sandboxes] of the configuration file, and start the '
                "service again."
            ) from e


NAMES = 10_000
"""Workspaces whose drivers are remembered; they never change."""


@dataclass
class ServiceContext:
    """The data that all parts of a service share (`start.ServiceParts`). None changes it."""

    database: Database
    event_log: EventLog
    sources: Sources
    drivers: Drivers
    agents: Callable[[], list[Agent]]
    home: Home
    vault: Vault
    home_id: str
    """Its id among the services that share the database (`service.ownership`)."""
    address: str | None = None
    """The URL at which other services reach this one; set by `serve`, which opens the sockets."""
    clock: Callable[[], datetime] = utc_now
    identity: IdentitySettings = NO_SETTINGS
    hosts: HostsSettings = NO_HOSTS
    outgoing_private: bool | None = None
    """Whether calls whose destination a user chose may reach private addresses; None: those of the
    installation's owner."""
    outgoing_proxy: bool = False
    """Whether these calls go through the proxies of the environment, which resolve names themselves."""
    own_agents: Mapping[str, OwnAgent] = field(default_factory=dict[str, OwnAgent])
    """Agents of the configuration file of this home."""
    own_keys: Callable[[], Mapping[str, str]] = dict[str, str]
    """Keys in the service's own environment, by agent: for replicas of the installation's owner."""
    webhooks_stored: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after a webhook call was stored; wakes `notifications.sender.WebhookSender`."""
    checks_changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after a check may have changed; wakes `checks.sync_worker.CheckSender`."""
    pools_changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after something about a warm pool has changed; wakes `environments.warm_pools.PoolKeeper`."""
    switchboard: Switchboard | None = None
    """Takes the connections of engines in containers, where there are any."""
    turn_places: TurnPlaces = field(default_factory=TurnPlaces)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the service begins to stop; every `streams.StreamResponse` then ends."""

    def __post_init__(self) -> None:
        self._workspaces: Remembered[str, WorkspaceRow] = Remembered(
            seconds=0, lost=lambda: self.database.lost
        )
        self.changes = ChangeStreams(self.database)
        self._driver_names: LRUCache[str, str] = LRUCache(NAMES)

    async def workspace(self, id: str) -> WorkspaceRow | None:
        """Read the row of a workspace; while the database is unreachable, the one read recently.

        Raises:
            StorageError: the database cannot be read.
        """
        return await self._workspaces.get(
            id, lambda: self.database.read(lambda c: find_workspace(c, id))
        )

    async def driver(self, workspace_id: str) -> SandboxDriver:
        """Return the driver of a workspace.

        Raises:
            UnknownWorkspaceError: there is no such workspace.
            SandboxError: its driver is not configured.
            StorageError: the database cannot be read.
        """
        if (name := self._driver_names.get(workspace_id)) is None:
            row = await self.workspace(workspace_id)
            if row is None:
                raise UnknownWorkspaceError(f"There is no workspace {workspace_id}.")
            name = self._driver_names[workspace_id] = row.driver
        return self.drivers.named(name)


def parts(request: Request) -> "ServiceParts":
    """Return the parts of the service."""
    return cast("ServiceParts", request.app.state.service)


def context(request: Request) -> ServiceContext:
    """Return the service's context."""
    return parts(request).context


def caller(request: Request) -> "Caller":
    """Return the caller. Every request that reaches a route, except health, was authenticated."""
    return cast("Caller", request.scope["state"]["caller"])


# The framework runs sync functions in a thread, at ten times the cost; so dependencies are async.
async def provide_context(request: Request) -> ServiceContext:
    """Dependency: `context`."""
    return context(request)


async def provide_caller(request: Request) -> "Caller":
    """Dependency: `caller`."""
    return caller(request)


async def workspace(request: Request, id: Annotated[GivenId, Path()]) -> WorkspaceRow:
    """Dependency: the workspace named by `{id}` in the path, read for this request.

    Raises:
        ApiError: NOT_FOUND when there is none in the caller's organization.
    """
    row = await context(request).workspace(str(id))
    mine = row is not None and row.organization_id == caller(request).organization_id
    if row is None or not mine or row.warm_state is not None:  # in a pool it has no owner
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.", f"id: {id}")
    return row


Context = Annotated[ServiceContext, Depends(provide_context)]
Workspace = Annotated[WorkspaceRow, Depends(workspace)]
