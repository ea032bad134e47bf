"""Agents, and the credentials that they use."""

# `list` in annotations is the type, also in classes with a method `list`.
from __future__ import annotations

from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.paths import segment
from quarterdeck.wire.agents import (
    Agent,
    AgentList,
    AgentModels,
    CredentialSet,
    CredentialStatus,
    SetCredential,
)
from quarterdeck.wire.base import Success


class AgentsApi:
    """`/v1/agents`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(self) -> list[Agent]:
        """Return every agent, usable or not."""
        return (await self._connection.call("GET", "/v1/agents", AgentList)).agents

    async def models(self, agent_id: str) -> AgentModels:
        """Return the known models of an agent."""
        path = f"/v1/agents/{segment(agent_id)}/models"
        return await self._connection.call("GET", path, AgentModels)


class CredentialsApi:
    """`/v1/{provider}/user/credentials`, and `/v1/{provider}/credentials` for the organization."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def get(self, provider: str, *, shared: bool = False) -> CredentialStatus:
        """Return whether there is a key, and its masked text.

        `shared` means the organization's, which is for its admins (`ForbiddenError`).
        """
        return await self._connection.call(
            "GET", _credentials_path(provider, shared), CredentialStatus
        )

    async def set(self, provider: str, key: str, *, shared: bool = False) -> CredentialSet:
        """Store a key, replacing the previous one; workspaces started from now on get it."""
        return await self._connection.call(
            "POST",
            _credentials_path(provider, shared),
            CredentialSet,
            body=SetCredential(api_key=key),
        )

    async def delete(self, provider: str, *, shared: bool = False) -> None:
        """Remove a key. Raises `NotFoundError` when there is none."""
        await self._connection.call("DELETE", _credentials_path(provider, shared), Success)


def _credentials_path(provider: str, shared: bool) -> str:
    return f"/v1/{segment(provider)}/{'credentials' if shared else 'user/credentials'}"
