"""What routes and the service's long-lived parts share, and how a route gets at it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Protocol, cast

from fastapi import Depends, Path, Request

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import SandboxDriver
from quarterdeck.service.db.database import Database
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_log import EventLog
from quarterdeck.service.hosts.settings import NO_HOSTS, HostsSettings
from quarterdeck.service.identity.settings import NO_SETTINGS, IdentitySettings
from quarterdeck.service.records.turns import TurnPlaces
from quarterdeck.service.records.workspaces import WorkspaceRow, find_workspace
from quarterdeck.service.vault import Vault
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.base import GivenId, utc_now
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.own_agents import OwnAgent

if TYPE_CHECKING:
    from quarterdeck.service.auth import Caller


class FleetLife(Protocol):
    """The living replicas, as the application starts and ends them."""

    async def start(self) -> None:
        """Finds running engines again and takes up what was left; called before requests come."""
        ...

    async def close(self) -> None:
        """Lets go of every engine, which run on. Called after the last request was answered."""
        ...


class CheckTeller(Protocol):
    """Tells source hosts how checks stand."""

    def nudge(self) -> None:
        """A check may have changed."""
        ...

    async def tell(self, check_id: str) -> None:
        """Tells the host of a check now, and waits for it, but not for long."""
        ...

    async def head_of(self, host: str, repository: str, number: int) -> dict[str, str | None]:
        """Asks a host where the head of a pull request stands.

        Raises:
            HostError: it could not be asked.
        """
        ...


@dataclass
class ServiceContext:
    """Everything one service is made of. `fleet` is set before the application is built."""

    database: Database
    event_log: EventLog
    sandboxes: SandboxDriver
    agents: Callable[[], list[Agent]]
    home: Home
    vault: Vault
    home_id: str
    """Who it is among the services that share the database (`service.homes`)."""
    address: str | None = None
    """Where the other services reach this one; None while it does not listen."""
    clock: Callable[[], datetime] = utc_now
    fleet: FleetLife | None = None
    checks: CheckTeller | None = None
    identity: IdentitySettings = NO_SETTINGS
    hosts: HostsSettings = NO_HOSTS
    own_agents: Mapping[str, OwnAgent] = field(default_factory=dict[str, OwnAgent])
    """Agents of the configuration file: those of this home alone."""
    own_keys: Callable[[], Mapping[str, str]] = dict[str, str]
    """Keys in the service's own environment, by agent: for replicas of the installation's owner."""
    webhooks_stored: Callable[[], None] = lambda: None
    """Called after a webhook call was stored that no event of the log goes with."""
    pools_changed: Callable[[], None] = lambda: None
    """Called after what a warm pool holds has become stale."""
    turn_places: TurnPlaces = field(default_factory=TurnPlaces)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the service begins to stop; every `streams.StreamResponse` then ends."""


def context(request: Request) -> ServiceContext:
    """The service's context."""
    return cast("ServiceContext", request.app.state.context)


def caller(request: Request) -> "Caller":
    """Who asks. Every request that reaches a route but health was authenticated."""
    return cast("Caller", request.scope["state"]["caller"])


# The framework runs plain functions in a thread, at ten times the cost; so dependencies are async.
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
    row = await context(request).database.read(lambda c: find_workspace(c, str(id)))
    mine = row is not None and row.organization_id == caller(request).organization_id
    if row is None or not mine or row.warm_state is not None:  # in a pool it is nobody's
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.", f"id: {id}")
    return row


Context = Annotated[ServiceContext, Depends(provide_context)]
Workspace = Annotated[WorkspaceRow, Depends(workspace)]
