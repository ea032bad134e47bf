"""What an environment carries, with what it inherits: variables, files, skills, MCP servers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

from quarterdeck.store.environments import EnvironmentBook, HasClient
from quarterdeck.wire.environment_files import ChangeFile, CreateFile, EnvironmentFile
from quarterdeck.wire.environment_mcps import ChangeMcp, CreateMcp, EnvironmentMcp
from quarterdeck.wire.environment_skills import CreateSkill, EnvironmentSkill, FoundSkill
from quarterdeck.wire.environment_variables import (
    ChangeVariable,
    CreateVariable,
    EnvironmentVariable,
)

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.wire.environments import Environment

T = TypeVar("T")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """One thing that ends up in a workspace, and from which environment."""

    record: T
    of: "Environment"
    own: bool
    """Whether the environment itself carries it."""
    over: str = ""
    """Name of the environment whose entry of the same key it stands over."""


def merged(
    layers: "Sequence[tuple[Environment, Sequence[T]]]", key: Callable[[T], str]
) -> list[Entry[T]]:
    """What a workspace gets: by key, the upper layer over the lower ones. The last layer is own."""
    found: dict[str, Entry[T]] = {}
    for place, (environment, records) in enumerate(layers):
        for record in records:
            below = found.get(key(record))
            over = below.of.name if below is not None else ""
            found[key(record)] = Entry(record, environment, place == len(layers) - 1, over)
    return [found[one] for one in sorted(found, key=lambda one: (one.casefold(), one))]


class Contents:
    """Reads and changes what environments carry. Every call raises the client's errors."""

    def __init__(self, owner: HasClient, book: EnvironmentBook) -> None:
        self._owner = owner
        self._book = book

    @property
    def _client(self) -> "Client":
        return self._owner.client

    async def _read(
        self,
        environment: "Environment",
        read: Callable[[UUID | str], Awaitable[list[T]]],
        key: Callable[[T], str],
    ) -> list[Entry[T]]:
        layers = [(one, await read(one.id)) for one in self._book.layers(environment)]
        return merged(layers, key)

    # variables

    async def variables(self, environment: "Environment") -> list[Entry[EnvironmentVariable]]:
        """Its variables over those that it inherits, by key."""
        return await self._read(environment, self._client.variables.list, lambda one: one.key)

    async def add_variable(
        self, environment: "Environment", body: CreateVariable
    ) -> EnvironmentVariable:
        """Adds one; `Conflict` when the key is there, `Forbidden` when it may not be overridden."""
        return await self._client.variables.add(environment.id, body)

    async def change_variable(
        self, environment: "Environment", id: UUID, body: ChangeVariable
    ) -> EnvironmentVariable:
        """Changes the fields that were set."""
        return await self._client.variables.change(environment.id, id, body)

    async def delete_variable(self, environment: "Environment", id: UUID) -> None:
        """Removes one."""
        await self._client.variables.delete(environment.id, id)

    # files

    async def files(self, environment: "Environment") -> list[Entry[EnvironmentFile]]:
        """Its files over those that it inherits, by path."""
        return await self._read(
            environment, self._client.environment_files.list, lambda one: one.path
        )

    async def add_file(self, environment: "Environment", body: CreateFile) -> EnvironmentFile:
        """Adds one; `InvalidRequest` when another has the path."""
        return await self._client.environment_files.add(environment.id, body)

    async def change_file(
        self, environment: "Environment", id: UUID, body: ChangeFile
    ) -> EnvironmentFile:
        """Changes the fields that were set."""
        return await self._client.environment_files.change(environment.id, id, body)

    async def delete_file(self, environment: "Environment", id: UUID) -> None:
        """Removes one."""
        await self._client.environment_files.delete(environment.id, id)

    # skills

    async def skills(self, environment: "Environment") -> list[Entry[EnvironmentSkill]]:
        """Its skills with those that it inherits, by slug."""
        return await self._read(environment, self._client.skills.list, lambda one: one.slug)

    async def search_skills(self, query: str) -> list[FoundSkill]:
        """Skills of the service's registries, best match first."""
        return await self._client.skills.search(query)

    async def add_skill(self, environment: "Environment", body: CreateSkill) -> EnvironmentSkill:
        """Installs one; `Conflict` when its slug or source is there."""
        return await self._client.skills.add(environment.id, body)

    async def delete_skill(self, environment: "Environment", id: UUID) -> None:
        """Takes one away."""
        await self._client.skills.delete(environment.id, id)

    # MCP servers

    async def mcps(self, environment: "Environment") -> list[Entry[EnvironmentMcp]]:
        """Its MCP servers over those that it inherits, by name."""
        return await self._read(environment, self._client.mcps.list, lambda one: one.name)

    async def add_mcp(self, environment: "Environment", body: CreateMcp) -> EnvironmentMcp:
        """Adds one; `Conflict` when the name is there."""
        return await self._client.mcps.add(environment.id, body)

    async def change_mcp(
        self, environment: "Environment", id: UUID, body: ChangeMcp
    ) -> EnvironmentMcp:
        """Changes the fields that were set; the configuration as a whole."""
        return await self._client.mcps.change(environment.id, id, body)

    async def delete_mcp(self, environment: "Environment", id: UUID) -> None:
        """Removes one."""
        await self._client.mcps.delete(environment.id, id)
