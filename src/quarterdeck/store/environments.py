"""Environments and their parts.

The service sends no events for environments, so nothing here is followed: a page reads when it opens,
and applies the answers to its changes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

from quarterdeck.client.errors import ClientError, NotFoundError
from quarterdeck.transcript.text import clean_output, one_line
from quarterdeck.wire.environment_parts import (
    ChangeFile,
    ChangeMcp,
    ChangeVariable,
    CreateFile,
    CreateMcp,
    CreateSkill,
    CreateVariable,
    EnvironmentFile,
    EnvironmentHook,
    EnvironmentMcp,
    EnvironmentSkill,
    EnvironmentVariable,
    FoundSkill,
    HookTestEvent,
)
from quarterdeck.wire.environments import (
    ChangeEnvironment,
    CreateEnvironment,
    Environment,
    PooledWorkspace,
    WarmPool,
)
from quarterdeck.wire.repositories import ConnectRepository, Repository, RepositorySet
from quarterdeck.wire.setup import HookKind

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.app_state import AppState


AT_ONCE = 4
"""Pools that are read at the same time: each needs its own request."""


class Scope(StrEnum):
    """The owner of an environment."""

    GLOBAL = "global"
    ORGANIZATION = "organization"
    OWN = "own"


def scope_of(environment: Environment) -> Scope:
    """Return the scope of an environment."""
    if environment.is_global:
        return Scope.GLOBAL
    return Scope.OWN if environment.user_id is not None else Scope.ORGANIZATION


_PLACE = {scope: place for place, scope in enumerate(Scope)}


class EnvironmentBook:
    """Every environment visible to the person, and the repositories and sets to bind them to."""

    def __init__(self, owner: "AppState") -> None:
        self._owner = owner
        self._environments: dict[UUID, Environment] = {}
        self.repositories: list[Repository] = []
        self.sets: list[RepositorySet] = []
        self.pools: dict[UUID, WarmPool | None] = {}
        """Pools as they were read; a missing one was not read yet."""

    async def read(self) -> None:
        """Read the environments, repositories and sets.

        Raises:
            ClientError: refused or unreachable; the known state stays.
        """
        client = self._owner.client
        environments = await client.environments.list(scope="all")
        self.repositories = await client.repositories.list()
        self.sets = await client.repository_sets.list()
        self._environments = {environment.id: environment for environment in environments}

    async def read_pools(self) -> None:
        """Read the pool of each environment, a few at a time; one that cannot be read is left out.

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
        """Read the pool of one environment; None when it never had one.

        Raises:
            ClientError: refused or unreachable.
        """
        state = await self._owner.client.environment_hooks.warm(environment_id)
        self.pools[environment_id] = state.warm_pool
        return state.warm_pool

    def ordered(self) -> list[Environment]:
        """Return the global one, the organization's, the person's own; each by name."""
        return sorted(
            self._environments.values(),
            key=lambda one: (_PLACE[scope_of(one)], one.name.casefold(), str(one.id)),
        )

    def get(self, id: UUID) -> Environment | None:
        """Return an environment that was read."""
        return self._environments.get(id)

    def layers(self, environment: Environment) -> list[Environment]:
        """Return the layers of a workspace, lowest first: the global one, a source, and itself."""
        below = [known for known in self._environments.values() if known.is_global]
        source = self.get(environment.source_environment_id or environment.id)
        layers = [*below, *([source] if source else []), environment]
        return list({layer.id: layer for layer in layers}.values())

    def bound_to(self, environment: Environment) -> str:
        """Return the repositories that it puts into a workspace, as text."""
        source = environment.source_environment_id
        if source is not None and (below := self.get(source)) is not None:
            return self.bound_to(below)
        if environment.repository_set_id is not None:
            return self._set_label(environment.repository_set_id)
        named = (
            repository.name
            for repository in self.repositories
            if repository.id == environment.repository_id
        )
        return next(named, "no repository" if environment.repository_id is None else "unknown")

    def _set_label(self, id: UUID) -> str:
        names = {repository.id: repository.name for repository in self.repositories}
        for known in self.sets:
            if known.id == id:
                members = [names.get(each, "unknown") for each in known.repositories]
                return f"{known.name} ({', '.join(members)})"
        return "unknown set"

    async def connect(self, url: str) -> Repository:
        """Connect a git URL or a local path, so that environments can be bound to it.

        Raises:
            InvalidRequestError: it is not a repository.
            ClientError: refused or unreachable.
        """
        repository = await self._owner.client.repositories.connect(ConnectRepository(url=url))
        self.repositories = [known for known in self.repositories if known.id != repository.id] + [
            repository
        ]
        return repository

    async def create(self, wanted: CreateEnvironment) -> Environment:
        """Create one.

        Raises:
            ConflictError: the name is taken in its scope.
            ClientError: refused or unreachable.
        """
        environment = await self._owner.client.environments.create(wanted)
        self._environments[environment.id] = environment
        return environment

    async def change(self, id: UUID, change: ChangeEnvironment) -> Environment:
        """Change one.

        Raises:
            InvalidRequestError: the global one, or a field that comes from a source.
            ConflictError: the name is taken in its scope.
            ClientError: refused or unreachable.
        """
        changed = await self._owner.client.environments.change(id, change)
        self._environments[id] = changed
        return changed

    async def delete(self, id: UUID) -> None:
        """Delete one with its parts.

        Raises:
            ConflictError: it is used, or the global one.
            ClientError: refused or unreachable.
        """
        await self._owner.client.environments.delete(id)
        self._environments.pop(id, None)
        self.pools.pop(id, None)

    async def refresh(self, id: UUID) -> Environment | None:
        """Read one again after a change of its parts, which it counts.

        Raises:
            ClientError: refused or unreachable.
        """
        self._environments[id] = await self._owner.client.environments.get(id)
        return self._environments[id]

    async def switch_pool(self, id: UUID, enabled: bool) -> WarmPool:
        """Switch a pool; switching on makes a failed one try again at once.

        Raises:
            ClientError: refused or unreachable.
        """
        pool = self.pools[id] = await self._owner.client.warm_pools.switch(id, enabled)
        return pool

    async def pooled(self, pool: WarmPool) -> list[PooledWorkspace]:
        """Return the workspaces of a pool, oldest first.

        Raises:
            ClientError: refused or unreachable.
        """
        return await self._owner.client.warm_pools.workspaces(pool.id)


def part_counts(environment: Environment) -> list[str]:
    """Return how many parts of each kind an environment has, as texts."""
    counted = [
        (environment.variable_count, "variable"),
        (environment.file_count, "file"),
        (environment.skill_count, "skill"),
        (environment.mcp_count, "MCP server"),
    ]
    return [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counted if count]


def parts_text(environment: Environment) -> str:
    """Return what a deletion removes, as text."""
    return ", ".join([*part_counts(environment), "its hooks with all their versions"])


T = TypeVar("T")


@dataclass(frozen=True)
class InheritedPart(Generic[T]):
    """One part of a workspace, and the environment that it comes from."""

    record: T
    of: "Environment"
    own: bool
    """Whether it belongs to the environment itself."""
    over: str = ""
    """Name of the environment whose entry of the same key it overrides."""


def merged(
    layers: "Sequence[tuple[Environment, Sequence[T]]]", key: Callable[[T], str]
) -> list[InheritedPart[T]]:
    """Return the parts of a workspace by key, upper layers over lower ones. The last layer is own."""
    parts: dict[str, InheritedPart[T]] = {}
    for place, (environment, records) in enumerate(layers):
        for record in records:
            below = parts.get(key(record))
            over = below.of.name if below is not None else ""
            parts[key(record)] = InheritedPart(record, environment, place == len(layers) - 1, over)
    return [parts[part] for part in sorted(parts, key=lambda one: (one.casefold(), one))]


class Contents:
    """Reads and changes the parts of environments. Every call raises the client's errors."""

    def __init__(self, owner: "AppState", book: EnvironmentBook) -> None:
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
    ) -> list[InheritedPart[T]]:
        layers = [(layer, await read(layer.id)) for layer in self._book.layers(environment)]
        return merged(layers, key)

    # variables

    async def variables(
        self, environment: "Environment"
    ) -> list[InheritedPart[EnvironmentVariable]]:
        """Return its variables over the inherited ones, by key."""
        return await self._read(environment, self._client.variables.list, lambda one: one.key)

    async def add_variable(
        self, environment: "Environment", body: CreateVariable
    ) -> EnvironmentVariable:
        """Add one; `ConflictError` when the key exists, `ForbiddenError` when it may not be overridden."""
        return await self._client.variables.add(environment.id, body)

    async def change_variable(
        self, environment: "Environment", id: UUID, body: ChangeVariable
    ) -> EnvironmentVariable:
        """Change the fields that were set."""
        return await self._client.variables.change(environment.id, id, body)

    async def delete_variable(self, environment: "Environment", id: UUID) -> None:
        """Remove one."""
        await self._client.variables.delete(environment.id, id)

    # files

    async def files(self, environment: "Environment") -> list[InheritedPart[EnvironmentFile]]:
        """Return its files over the inherited ones, by path."""
        return await self._read(
            environment, self._client.environment_files.list, lambda one: one.path
        )

    async def add_file(self, environment: "Environment", body: CreateFile) -> EnvironmentFile:
        """Add one; `InvalidRequestError` when another has the path."""
        return await self._client.environment_files.add(environment.id, body)

    async def change_file(
        self, environment: "Environment", id: UUID, body: ChangeFile
    ) -> EnvironmentFile:
        """Change the fields that were set."""
        return await self._client.environment_files.change(environment.id, id, body)

    async def delete_file(self, environment: "Environment", id: UUID) -> None:
        """Remove one."""
        await self._client.environment_files.delete(environment.id, id)

    # skills

    async def skills(self, environment: "Environment") -> list[InheritedPart[EnvironmentSkill]]:
        """Return its skills with the inherited ones, by slug."""
        return await self._read(environment, self._client.skills.list, lambda one: one.slug)

    async def search_skills(self, query: str) -> list[FoundSkill]:
        """Return the skills of the service's registries, best match first."""
        return await self._client.skills.search(query)

    async def add_skill(self, environment: "Environment", body: CreateSkill) -> EnvironmentSkill:
        """Install one; `ConflictError` when its slug or source exists."""
        return await self._client.skills.add(environment.id, body)

    async def delete_skill(self, environment: "Environment", id: UUID) -> None:
        """Remove one."""
        await self._client.skills.delete(environment.id, id)

    # MCP servers

    async def mcps(self, environment: "Environment") -> list[InheritedPart[EnvironmentMcp]]:
        """Return its MCP servers over the inherited ones, by name."""
        return await self._read(environment, self._client.mcps.list, lambda one: one.name)

    async def add_mcp(self, environment: "Environment", body: CreateMcp) -> EnvironmentMcp:
        """Add one; `ConflictError` when the name exists."""
        return await self._client.mcps.add(environment.id, body)

    async def change_mcp(
        self, environment: "Environment", id: UUID, body: ChangeMcp
    ) -> EnvironmentMcp:
        """Change the fields that were set; the configuration as a whole."""
        return await self._client.mcps.change(environment.id, id, body)

    async def delete_mcp(self, environment: "Environment", id: UUID) -> None:
        """Remove one."""
        await self._client.mcps.delete(environment.id, id)


KEPT_LINES = 20_000
"""Last lines of a test's output that are kept."""


class Ending(StrEnum):
    """The state of a test."""

    RUNS = "runs"
    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class HookPair:
    """The hooks in force, each None when there is none."""

    warm: EnvironmentHook | None
    start: EnvironmentHook | None

    def of(self, kind: HookKind) -> EnvironmentHook | None:
        """Return the hook of a kind."""
        return self.warm if kind is HookKind.WARM else self.start


class HookTestRun:
    """One test of a hook: its output, safe to show, and its result."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.ending = Ending.RUNS
        self.end = "Running."
        self._open = ""
        self._partial = False

    def note(self, text: str) -> None:
        """Add a line about the test itself."""
        self._close_line()
        self._add([f"· {one_line(text)}"])

    def output(self, text: str) -> None:
        """Add a piece of the hook's output; a line may be split between pieces."""
        *whole, rest = (self._open + text).split("\n")
        if self._partial:
            self.lines.pop()
        self._add([clean_output(line) for line in whole])
        self._open, self._partial = rest, bool(rest)
        if rest:
            self._add([clean_output(rest)])

    def finish(self, ending: Ending, text: str) -> None:
        """Note the result of the test."""
        self._close_line()
        self.ending, self.end = ending, one_line(text)

    def _close_line(self) -> None:
        self._open, self._partial = "", False

    def _add(self, lines: list[str]) -> None:
        self.lines += lines
        del self.lines[:-KEPT_LINES]

    def take(self, event: HookTestEvent) -> None:
        """Apply an event of the test."""
        match event.type:
            case "progress":
                self.note(event.message or "")
            case "output":
                self.output(event.output or "")
            case "error":
                self.finish(Ending.FAILED, event.message or "Could not be run.")
            case "complete":
                self.complete(event.exit_code, bool(event.timed_out))

    def complete(self, exit_code: int | None, timed_out: bool) -> None:
        """Note the end of the hook."""
        if timed_out:
            self.finish(Ending.FAILED, "Timed out.")
        elif exit_code == 0:
            self.finish(Ending.PASSED, "Succeeded (exit code 0).")
        else:
            self.finish(Ending.FAILED, f"Failed (exit code {exit_code}).")


class HookEditor:
    """Reads, saves and tests hooks. Every call raises the client's errors."""

    def __init__(self, owner: "AppState") -> None:
        self._owner = owner

    async def read(self, environment: "Environment") -> HookPair:
        """Return the hooks in force."""
        hooks = self._owner.client.environment_hooks
        state = await hooks.warm(environment.id)
        return HookPair(state.warm_hook, await hooks.start(environment.id))

    async def save(
        self, environment: "Environment", kind: HookKind, content: str
    ) -> EnvironmentHook | None:
        """Save a version and use it, without a test; an empty start hook leaves none in force."""
        hooks = self._owner.client.environment_hooks
        if kind is HookKind.WARM:
            return await hooks.save_warm(environment.id, content)
        return await hooks.save_start(environment.id, content)

    async def test(
        self,
        environment: "Environment",
        kind: HookKind,
        content: str,
        on_change: Callable[[HookTestRun], None],
    ) -> HookTestRun:
        """Run a hook in a separate workspace, calling `on_change` for each change of the test.

        Where the service does not stream warm hooks, their output is reported at the end.
        """
        run = HookTestRun()
        tests = self._owner.client.hook_tests
        try:
            stream = tests.stream_warm if kind is HookKind.WARM else tests.stream_start
            async with aclosing(stream(environment.id, content)) as events:
                async for event in events:
                    run.take(event)
                    on_change(run)
        except NotFoundError:
            if kind is not HookKind.WARM:
                raise
            run.note("Creating a replica. The output appears when the hook has ended.")
            on_change(run)
            result = await tests.warm(environment.id, content)
            run.output(result.output)
            run.complete(result.exit_code, result.timed_out)
            on_change(run)
        if run.ending is Ending.RUNS:
            run.finish(Ending.STOPPED, "Connection to the service lost; the result is unknown.")
        return run
