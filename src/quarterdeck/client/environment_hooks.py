"""Hooks of environments: reading and saving. `environment` is an id, or `global`."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.client.environments import PATH
from quarterdeck.wire.environment_hooks import (
    EnvironmentHook,
    SaveHook,
    StartHookAnswer,
    WarmHookAnswer,
    WarmHookState,
)


class EnvironmentHooks:
    """`/v1/environments/{id}/warm-hooks` and `/start-hooks`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def warm(self, environment: UUID | str) -> WarmHookState:
        """The warm hook in force and the pool, each null when there is none."""
        return await self._connection.call("GET", f"{PATH}/{environment}/warm-hooks", WarmHookState)

    async def save_warm(self, environment: UUID | str, content: str) -> EnvironmentHook:
        """Saves a version and puts it in force, without testing it."""
        path = f"{PATH}/{environment}/warm-hooks/save"
        answer = await self._connection.call(
            "POST", path, WarmHookAnswer, body=SaveHook(content=content)
        )
        return answer.warm_hook

    async def start(self, environment: UUID | str) -> EnvironmentHook | None:
        """The start hook in force."""
        path = f"{PATH}/{environment}/start-hooks"
        return (await self._connection.call("GET", path, StartHookAnswer)).start_hook

    async def save_start(self, environment: UUID | str, content: str) -> EnvironmentHook | None:
        """Saves a version and puts it in force; blank content leaves none in force."""
        path = f"{PATH}/{environment}/start-hooks/save"
        answer = await self._connection.call(
            "POST", path, StartHookAnswer, body=SaveHook(content=content)
        )
        return answer.start_hook
