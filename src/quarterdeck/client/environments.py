"""Environments and their parts, hooks, hook tests and warm pools.

Parts: variables, files, skills, MCP servers.

`environment` is an id, or `global`.
"""

# `list` in annotations is the type, also in classes with a method `list`.
from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Generic, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError

from quarterdeck.client.connection import HttpConnection, bounded_json
from quarterdeck.client.errors import ProtocolError
from quarterdeck.client.paths import segment
from quarterdeck.wire.base import Success
from quarterdeck.wire.environment_parts import (
    ChangeFile,
    ChangeMcp,
    ChangeVariable,
    CreateFile,
    CreateMcp,
    CreateSkill,
    CreateVariable,
    EnvironmentFile,
    EnvironmentFileAnswer,
    EnvironmentFileList,
    EnvironmentHook,
    EnvironmentMcp,
    EnvironmentMcpAnswer,
    EnvironmentMcpList,
    EnvironmentSkill,
    EnvironmentSkillAnswer,
    EnvironmentSkillList,
    EnvironmentVariable,
    EnvironmentVariableAnswer,
    EnvironmentVariableList,
    FoundSkill,
    FoundSkills,
    HookTest,
    HookTestAnswer,
    HookTestEvent,
    SavedHookTest,
    SaveHook,
    StartHookAnswer,
    TestHook,
    WarmHookAnswer,
    WarmHookState,
)
from quarterdeck.wire.environments import (
    ChangeEnvironment,
    ChangeWarmPool,
    CreateEnvironment,
    Environment,
    EnvironmentAnswer,
    EnvironmentList,
    PooledWorkspace,
    PooledWorkspaceList,
    WarmPool,
    WarmPoolAnswer,
)

PATH = "/v1/environments"


def _path(environment: UUID | str) -> str:
    return f"{PATH}/{segment(environment)}"


class EnvironmentsApi:
    """`/v1/environments`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(
        self, *, scope: Literal["org", "user", "all"] | None = None
    ) -> list[Environment]:
        """Return the environments of a scope, by default the service's default."""
        answer = await self._connection.call("GET", PATH, EnvironmentList, query={"scope": scope})
        return answer.environments

    async def create(self, environment: CreateEnvironment) -> Environment:
        """Create one. Raises `ConflictError` when the name is taken in its scope."""
        answer = await self._connection.call("POST", PATH, EnvironmentAnswer, body=environment)
        return answer.environment

    async def get(self, environment: UUID | str) -> Environment:
        """Return one environment by its id, or the global one by `global`."""
        return (await self.get_tagged(environment)).environment

    async def get_tagged(self, environment: UUID | str) -> EnvironmentAnswer:
        """Return the same with its entity tag, for `change`."""
        return await self._connection.call("GET", _path(environment), EnvironmentAnswer)

    async def change(
        self, environment: UUID, change: ChangeEnvironment, if_match: str | None = None
    ) -> Environment:
        """Change the fields that were set; null clears one.

        Raises:
            PreconditionFailedError: its entity tag is not `if_match` any more.
            InvalidRequestError: the global one, or a field that comes from a source.
            ConflictError: the name is taken in its scope.
        """
        answer = await self._connection.call(
            "PATCH", _path(environment), EnvironmentAnswer, body=change, if_match=if_match
        )
        return answer.environment

    async def delete(self, environment: UUID) -> None:
        """Delete one with its parts. Raises `ConflictError` while it is used, and for the global one."""
        await self._connection.call("DELETE", _path(environment), Success)


EnvironmentRef = UUID | str
_Part = TypeVar("_Part", bound=BaseModel)
_Create = TypeVar("_Create", bound=BaseModel)
_Change = TypeVar("_Change", bound=BaseModel)


class EnvironmentParts(Generic[_Part, _Create]):
    """Parts of one kind that belong to an environment itself, without inherited ones.

    `_kind` is the last segment of the path, `_name` the name of a part in the service's answers.
    """

    _kind: str
    _name: str
    _list_model: type[BaseModel]
    _answer_model: type[BaseModel]

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(self, environment: EnvironmentRef) -> list[_Part]:
        """Return all parts."""
        path = f"{_path(environment)}/{self._kind}"
        answer = await self._connection.call("GET", path, self._list_model)
        return getattr(answer, f"{self._name}s")

    async def add(self, environment: EnvironmentRef, part: _Create) -> _Part:
        """Add one. Raises `ConflictError` when the environment has the same one."""
        path = f"{_path(environment)}/{self._kind}"
        answer = await self._connection.call("POST", path, self._answer_model, body=part)
        return getattr(answer, self._name)

    async def delete(self, environment: EnvironmentRef, id: UUID) -> None:
        """Remove one."""
        await self._connection.call("DELETE", f"{_path(environment)}/{self._kind}/{id}", Success)


class ChangeableParts(EnvironmentParts[_Part, _Create], Generic[_Part, _Create, _Change]):
    """Parts whose fields can be changed."""

    async def change(self, environment: EnvironmentRef, id: UUID, change: _Change) -> _Part:
        """Change the fields that were set. Raises as `add`."""
        path = f"{_path(environment)}/{self._kind}/{id}"
        answer = await self._connection.call("PATCH", path, self._answer_model, body=change)
        return getattr(answer, self._name)


class VariablesApi(ChangeableParts[EnvironmentVariable, CreateVariable, ChangeVariable]):
    """`/v1/environments/{id}/variables`, with their values.

    `add` and `change` also raise `ForbiddenError`, when one is inherited and may not be overridden.
    """

    _kind = "variables"
    _name = "environment_variable"
    _list_model = EnvironmentVariableList
    _answer_model = EnvironmentVariableAnswer


class EnvironmentFilesApi(ChangeableParts[EnvironmentFile, CreateFile, ChangeFile]):
    """`/v1/environments/{id}/files`; `InvalidRequestError` when another file has the path."""

    _kind = "files"
    _name = "environment_file"
    _list_model = EnvironmentFileList
    _answer_model = EnvironmentFileAnswer


class SkillsApi(EnvironmentParts[EnvironmentSkill, CreateSkill]):
    """`/v1/environments/{id}/skills`, and the search of registries."""

    _kind = "skills"
    _name = "environment_skill"
    _list_model = EnvironmentSkillList
    _answer_model = EnvironmentSkillAnswer

    async def search(self, query: str) -> list[FoundSkill]:
        """Return the skills of the service's registries, best match first."""
        answer = await self._connection.call(
            "GET", "/v1/environment-skills/search", FoundSkills, query={"q": query}
        )
        return answer.skills


class McpServersApi(ChangeableParts[EnvironmentMcp, CreateMcp, ChangeMcp]):
    """`/v1/environments/{id}/mcps`; a changed configuration is replaced as a whole."""

    _kind = "mcps"
    _name = "environment_mcp"
    _list_model = EnvironmentMcpList
    _answer_model = EnvironmentMcpAnswer


class EnvironmentHooksApi:
    """`/v1/environments/{id}/warm-hooks` and `/start-hooks`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def warm(self, environment: UUID | str) -> WarmHookState:
        """Return the warm hook in force and the pool, each null when there is none."""
        return await self._connection.call("GET", f"{_path(environment)}/warm-hooks", WarmHookState)

    async def save_warm(self, environment: UUID | str, content: str) -> EnvironmentHook:
        """Save a version and use it, without testing it."""
        path = f"{_path(environment)}/warm-hooks/save"
        answer = await self._connection.call(
            "POST", path, WarmHookAnswer, body=SaveHook(content=content)
        )
        return answer.warm_hook

    async def start(self, environment: UUID | str) -> EnvironmentHook | None:
        """Return the start hook in force."""
        path = f"{_path(environment)}/start-hooks"
        return (await self._connection.call("GET", path, StartHookAnswer)).start_hook

    async def save_start(self, environment: UUID | str, content: str) -> EnvironmentHook | None:
        """Save a version and use it; blank content leaves no hook in force."""
        path = f"{_path(environment)}/start-hooks/save"
        answer = await self._connection.call(
            "POST", path, StartHookAnswer, body=SaveHook(content=content)
        )
        return answer.start_hook


TEST_SECONDS = 2000.0
"""A test takes the time of its hooks, and of creating a workspace."""


class HookTestsApi:
    """`/v1/environments/{id}/warm-hooks/test` and similar.

    Without content the version in force is tested. Each call raises `ConflictError` when the
    workspace of the test could not be set up.
    """

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def warm(self, environment: UUID | str, content: str | None = None) -> HookTest:
        """Run a warm hook in a separate workspace."""
        return await self._test(f"{_path(environment)}/warm-hooks/test", content)

    async def start(self, environment: UUID | str, content: str | None = None) -> HookTest:
        """Run a start hook, after the warm ones, in a separate workspace."""
        return await self._test(f"{_path(environment)}/start-hooks/test", content)

    async def save_warm(self, environment: UUID | str, content: str) -> SavedHookTest:
        """Test a warm hook and save it; it is in force only when it ended with 0."""
        return await self._connection.call(
            "POST",
            f"{_path(environment)}/warm-hooks/save-test",
            SavedHookTest,
            body=SaveHook(content=content),
            timeout=TEST_SECONDS,
        )

    def stream_warm(
        self, environment: UUID | str, content: str | None = None
    ) -> AsyncGenerator[HookTestEvent]:
        """Run a warm hook and yield its events; closing the generator ends the test.

        Not every service supports it: `NotFoundError` may mean that.
        """
        return self._stream(f"{_path(environment)}/warm-hooks/test/stream", content)

    def stream_start(
        self, environment: UUID | str, content: str | None = None
    ) -> AsyncGenerator[HookTestEvent]:
        """Run a start hook and yield its events; closing the generator ends the test."""
        return self._stream(f"{_path(environment)}/start-hooks/test/stream", content)

    async def _stream(self, path: str, content: str | None) -> AsyncGenerator[HookTestEvent]:
        async with self._connection.listen(path, body=_body(content)) as messages:
            async for message in messages:
                if message.data:
                    yield _read(message.data)

    async def _test(self, path: str, content: str | None) -> HookTest:
        answer = await self._connection.call(
            "POST", path, HookTestAnswer, body=_body(content), timeout=TEST_SECONDS
        )
        return answer.test


def _read(data: str) -> HookTestEvent:
    try:
        content = bounded_json(data.encode(errors="replace"), "A message of the test")
        return HookTestEvent.model_validate_json(content)
    except ValidationError as error:
        raise ProtocolError(
            "A message of the test could not be read.", next_step="Test it without the stream."
        ) from error


def _body(content: str | None) -> TestHook:
    return TestHook() if content is None else TestHook(content=content)


class WarmPoolsApi:
    """`/v1/environments/{id}/warm-pools` and `/v1/warm-pools`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def switch(self, environment: UUID | str, enabled: bool) -> WarmPool:
        """Switch a pool on or off; switching on makes a failed one try again at once."""
        answer = await self._connection.call(
            "PUT",
            f"{_path(environment)}/warm-pools",
            WarmPoolAnswer,
            body=ChangeWarmPool(enabled=enabled),
            repeatable=True,
        )
        return answer.warm_pool

    async def workspaces(self, pool_id: UUID) -> list[PooledWorkspace]:
        """Return the workspaces of a pool, oldest first."""
        answer = await self._connection.call(
            "GET", f"/v1/warm-pools/{pool_id}/workspaces", PooledWorkspaceList
        )
        return answer.workspaces
