"""What environments carry: variables, files, skills, MCP servers.

`environment` is an id, or `global`.
"""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.client.environments import PATH
from quarterdeck.wire.base import Success
from quarterdeck.wire.environment_files import (
    ChangeFile,
    CreateFile,
    EnvironmentFile,
    EnvironmentFileAnswer,
    EnvironmentFileList,
)
from quarterdeck.wire.environment_mcps import (
    ChangeMcp,
    CreateMcp,
    EnvironmentMcp,
    EnvironmentMcpAnswer,
    EnvironmentMcpList,
)
from quarterdeck.wire.environment_skills import (
    CreateSkill,
    EnvironmentSkill,
    EnvironmentSkillAnswer,
    EnvironmentSkillList,
    FoundSkill,
    FoundSkills,
)
from quarterdeck.wire.environment_variables import (
    ChangeVariable,
    CreateVariable,
    EnvironmentVariable,
    EnvironmentVariableAnswer,
    EnvironmentVariableList,
)

Environment = UUID | str


class EnvironmentVariables:
    """`/v1/environments/{id}/variables`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, environment: Environment) -> list[EnvironmentVariable]:
        """The environment's own variables, with their values."""
        path = f"{PATH}/{environment}/variables"
        answer = await self._connection.call("GET", path, EnvironmentVariableList)
        return answer.environment_variables

    async def add(self, environment: Environment, variable: CreateVariable) -> EnvironmentVariable:
        """Adds one.

        Raises:
            Conflict: the key is there.
            Forbidden: it is inherited, and may not be overridden.
        """
        path = f"{PATH}/{environment}/variables"
        answer = await self._connection.call("POST", path, EnvironmentVariableAnswer, body=variable)
        return answer.environment_variable

    async def change(
        self, environment: Environment, id: UUID, change: ChangeVariable
    ) -> EnvironmentVariable:
        """Changes the fields that were set. Raises as `add`."""
        path = f"{PATH}/{environment}/variables/{id}"
        answer = await self._connection.call("PATCH", path, EnvironmentVariableAnswer, body=change)
        return answer.environment_variable

    async def delete(self, environment: Environment, id: UUID) -> None:
        """Removes one."""
        await self._connection.call("DELETE", f"{PATH}/{environment}/variables/{id}", Success)


class EnvironmentFiles:
    """`/v1/environments/{id}/files`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, environment: Environment) -> list[EnvironmentFile]:
        """The environment's own files."""
        path = f"{PATH}/{environment}/files"
        answer = await self._connection.call("GET", path, EnvironmentFileList)
        return answer.environment_files

    async def add(self, environment: Environment, file: CreateFile) -> EnvironmentFile:
        """Adds one. Raises `InvalidRequest` when another file has the path."""
        path = f"{PATH}/{environment}/files"
        answer = await self._connection.call("POST", path, EnvironmentFileAnswer, body=file)
        return answer.environment_file

    async def change(
        self, environment: Environment, id: UUID, change: ChangeFile
    ) -> EnvironmentFile:
        """Changes the fields that were set. Raises as `add`."""
        path = f"{PATH}/{environment}/files/{id}"
        answer = await self._connection.call("PATCH", path, EnvironmentFileAnswer, body=change)
        return answer.environment_file

    async def delete(self, environment: Environment, id: UUID) -> None:
        """Removes one."""
        await self._connection.call("DELETE", f"{PATH}/{environment}/files/{id}", Success)


class EnvironmentSkills:
    """`/v1/environments/{id}/skills`, and the search of registries."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def search(self, query: str) -> list[FoundSkill]:
        """Skills of the service's registries, best match first."""
        answer = await self._connection.call(
            "GET", "/v1/environment-skills/search", FoundSkills, query={"q": query}
        )
        return answer.skills

    async def list(self, environment: Environment) -> list[EnvironmentSkill]:
        """The skills that are enabled on the environment itself."""
        path = f"{PATH}/{environment}/skills"
        answer = await self._connection.call("GET", path, EnvironmentSkillList)
        return answer.environment_skills

    async def add(self, environment: Environment, skill: CreateSkill) -> EnvironmentSkill:
        """Enables one. Raises `Conflict` when its slug or source is enabled already."""
        path = f"{PATH}/{environment}/skills"
        answer = await self._connection.call("POST", path, EnvironmentSkillAnswer, body=skill)
        return answer.environment_skill

    async def delete(self, environment: Environment, id: UUID) -> None:
        """Takes one away."""
        await self._connection.call("DELETE", f"{PATH}/{environment}/skills/{id}", Success)


class EnvironmentMcps:
    """`/v1/environments/{id}/mcps`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, environment: Environment) -> list[EnvironmentMcp]:
        """The environment's own MCP servers, with their configuration."""
        path = f"{PATH}/{environment}/mcps"
        return (await self._connection.call("GET", path, EnvironmentMcpList)).environment_mcps

    async def add(self, environment: Environment, mcp: CreateMcp) -> EnvironmentMcp:
        """Adds one. Raises `Conflict` when the name is there."""
        path = f"{PATH}/{environment}/mcps"
        answer = await self._connection.call("POST", path, EnvironmentMcpAnswer, body=mcp)
        return answer.environment_mcp

    async def change(self, environment: Environment, id: UUID, change: ChangeMcp) -> EnvironmentMcp:
        """Changes the fields that were set; the configuration is replaced as a whole."""
        path = f"{PATH}/{environment}/mcps/{id}"
        answer = await self._connection.call("PATCH", path, EnvironmentMcpAnswer, body=change)
        return answer.environment_mcp

    async def delete(self, environment: Environment, id: UUID) -> None:
        """Removes one."""
        await self._connection.call("DELETE", f"{PATH}/{environment}/mcps/{id}", Success)
