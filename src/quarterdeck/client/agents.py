"""The coding agents that the service knows."""

from quarterdeck.client.connection import Connection
from quarterdeck.wire.agents import Agent, AgentList


class Agents:
    """`/v1/agents`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> list[Agent]:
        """Every agent, usable or not."""
        return (await self._connection.call("GET", "/v1/agents", AgentList)).agents
