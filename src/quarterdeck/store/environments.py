"""Environments as a person sees them: read when they ask, changed by what they do.

The service tells no events of environments, so nothing here is followed: a page that opens reads,
and what it changes it takes over from the answer.
"""

import asyncio
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from quarterdeck.client.errors import ClientError
from quarterdeck.wire.environments import ChangeEnvironment, CreateEnvironment, Environment
from quarterdeck.wire.repositories import ConnectRepository, Repository, RepositorySet
from quarterdeck.wire.warm_pools import PooledWorkspace, WarmPool

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

AT_ONCE = 4
"""Pools that are read at the same time: each is a request of its own."""


class HasClient(Protocol):
    """Whoever owns the client; asking before the service is there raises `NotConnected`."""

    @property
    def client(self) -> "Client": ...


class Scope(StrEnum):
    """Whose an environment is."""

    GLOBAL = "global"
    ORGANIZATION = "organization"
    OWN = "own"


def scope_of(environment: Environment) -> Scope:
    """Whose it is."""
    if environment.is_global:
        return Scope.GLOBAL
    return Scope.OWN if environment.user_id is not None else Scope.ORGANIZATION


_PLACE = {scope: place for place, scope in enumerate(Scope)}


class EnvironmentBook:
    """Every environment that the person may see, and what they can be bound to."""

    def __init__(self, owner: HasClient) -> None:
        self._owner = owner
        self._environments: dict[UUID, Environment] = {}
        self.repositories: list[Repository] = []
        self.sets: list[RepositorySet] = []
        self.pools: dict[UUID, WarmPool | None] = {}
        """Pools as they were read; one that is missing was not read yet."""

    async def read(self) -> None:
        """Reads the environments and what they can be bound to.

        Raises:
            ClientError: refused or unreachable; what was known before stays.
        """
        client = self._owner.client
        found = await client.environments.list(scope="all")
        self.repositories = await client.repositories.list()
        self.sets = await client.repository_sets.list()
        self._environments = {one.id: one for one in found}

    async def read_pools(self) -> None:
        """Reads the pool of each environment, a few at a time; one that cannot be read is left out.

        Raises:
            ClientError: none of them could be read.
        """
        room = asyncio.Semaphore(AT_ONCE)
        failed: list[ClientError] = []

        async def read(id: UUID) -> None:
            async with room:
                try:
                    await self.read_pool(id)
                except ClientError as error:
                    failed.append(error)

        async with asyncio.TaskGroup() as group:
            for id in self._environments:
                group.create_task(read(id))
        if failed and len(failed) == len(self._environments):
            raise failed[0]

    async def read_pool(self, environment_id: UUID) -> WarmPool | None:
        """Reads the pool of one environment; None when it never had one.

        Raises:
            ClientError: refused or unreachable.
        """
        state = await self._owner.client.environment_hooks.warm(environment_id)
        self.pools[environment_id] = state.warm_pool
        return state.warm_pool

    def ordered(self) -> list[Environment]:
        """The global one, the organization's, the person's own; each by name."""
        return sorted(
            self._environments.values(),
            key=lambda one: (_PLACE[scope_of(one)], one.name.casefold(), str(one.id)),
        )

    def get(self, id: UUID) -> Environment | None:
        """One that was read."""
        return self._environments.get(id)

    def layers(self, environment: Environment) -> list[Environment]:
        """What ends up in a workspace, lowest first: the global one, a source, and itself."""
        below = [one for one in self._environments.values() if one.is_global]
        source = self.get(environment.source_environment_id or environment.id)
        layers = [*below, *([source] if source else []), environment]
        return list({one.id: one for one in layers}.values())

    def bound_to(self, environment: Environment) -> str:
        """The repositories that it puts into a workspace, in words."""
        source = environment.source_environment_id
        if source is not None and (below := self.get(source)) is not None:
            return self.bound_to(below)
        if environment.repository_set_id is not None:
            return _set_words(self.sets, environment.repository_set_id)
        named = (one.name for one in self.repositories if one.id == environment.repository_id)
        return next(named, "no repository" if environment.repository_id is None else "unknown")

    async def connect(self, url: str) -> Repository:
        """Connects a git URL or a local path, so that environments can be bound to it.

        Raises:
            InvalidRequest: it is no repository.
            ClientError: refused or unreachable.
        """
        made = await self._owner.client.repositories.connect(ConnectRepository(url=url))
        self.repositories = [one for one in self.repositories if one.id != made.id] + [made]
        return made

    async def create(self, wanted: CreateEnvironment) -> Environment:
        """Makes one.

        Raises:
            Conflict: the name is taken in its scope.
            ClientError: refused or unreachable.
        """
        made = await self._owner.client.environments.create(wanted)
        self._environments[made.id] = made
        return made

    async def change(self, id: UUID, change: ChangeEnvironment) -> Environment:
        """Changes one.

        Raises:
            InvalidRequest: the global one, or a field that is taken from a source.
            Conflict: the name is taken in its scope.
            ClientError: refused or unreachable.
        """
        changed = await self._owner.client.environments.change(id, change)
        self._environments[id] = changed
        return changed

    async def delete(self, id: UUID) -> None:
        """Removes one with all that it carries.

        Raises:
            Conflict: it is used, or the global one.
            ClientError: refused or unreachable.
        """
        await self._owner.client.environments.delete(id)
        self._environments.pop(id, None)
        self.pools.pop(id, None)

    async def refresh(self, id: UUID) -> Environment | None:
        """Reads one again, whose parts were changed: it counts them.

        Raises:
            ClientError: refused or unreachable.
        """
        self._environments[id] = await self._owner.client.environments.get(id)
        return self._environments[id]

    async def switch_pool(self, id: UUID, enabled: bool) -> WarmPool:
        """Switches a pool; on lets one that failed try again at once.

        Raises:
            ClientError: refused or unreachable.
        """
        pool = self.pools[id] = await self._owner.client.warm_pools.switch(id, enabled)
        return pool

    async def pooled(self, pool: WarmPool) -> list[PooledWorkspace]:
        """What waits in a pool, oldest first.

        Raises:
            ClientError: refused or unreachable.
        """
        return await self._owner.client.warm_pools.workspaces(pool.id)


def _set_words(sets: Iterable[RepositorySet], id: UUID) -> str:
    for one in sets:
        if one.id == id:
            return f"{one.name} ({', '.join(each.name for each in one.repositories)})"
    return "unknown set"


def what_goes(environment: Environment) -> str:
    """What a deletion takes with it, in words."""
    counted = [
        (environment.variable_count, "variable"),
        (environment.file_count, "file"),
        (environment.skill_count, "skill"),
        (environment.mcp_count, "MCP server"),
    ]
    named = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counted if count]
    return ", ".join([*named, "its hooks with all their versions"])
