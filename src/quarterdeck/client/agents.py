"""The coding agents that the service knows."""

from urllib.parse import quote

from quarterdeck.client.connection import Connection
from quarterdeck.wire.agents import Agent, AgentList, AgentModels


class Agents:
    """`/v1/agents`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> list[Agent]:
        """Every agent, usable or not."""
        return (await self._connection.call("GET", "/v1/agents", AgentList)).agents

    async def models(self, agent_id: str) -> AgentModels:
        """The models that an agent is known to offer."""
        path = f"/v1/agents/{quote(agent_id, safe='')}/models"
        return await self._connection.call("GET", path, AgentModels)
