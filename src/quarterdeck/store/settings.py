"""What a service keeps for the person: agents, providers' keys, API keys, where notifications go.

Each part is read by itself, so that what is refused leaves the others.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import ClientError
from quarterdeck.wire.agents import BUILTIN, Agent
from quarterdeck.wire.api_keys import ApiKey
from quarterdeck.wire.chatapp import ChatappConnection
from quarterdeck.wire.credentials import CredentialStatus

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

PARTS = ("agents", "credentials", "api_keys", "notifications")


@dataclass
class ServiceSettings:
    """What was read; `problems` says of a part why it could not be. None: not read yet."""

    client: "Callable[[], Client]"
    agents: list[Agent] | None = None
    credentials: dict[str, CredentialStatus] | None = None
    api_keys: list[ApiKey] | None = None
    notifications: ChatappConnection | None = None
    problems: dict[str, str] = field(default_factory=dict[str, str])
    progress: dict[str, str] = field(default_factory=dict[str, str])
    """The last line that the installation of an agent has printed."""

    async def read(self, *parts: str) -> None:
        """Reads parts anew, by default all of them."""
        for part in parts or PARTS:
            reader: Callable[[], Awaitable[None]] = getattr(self, f"_read_{part}")
            self.problems.pop(part, None)
            try:
                await reader()
            except ClientError as error:
                self.problems[part] = f"{error} {error.next_step}"

    async def _read_agents(self) -> None:
        self.agents = await self.client().agents.list()

    async def _read_credentials(self) -> None:
        client = self.client()
        agents = self.agents if self.agents is not None else await client.agents.list()
        # A provider has its agent's name; others that have a key are asked for by theirs.
        named = [agent.id for agent in agents if agent.id != BUILTIN]
        wanted = [*named, *(one for one in self.credentials or {} if one not in named)]
        self.credentials = {name: await client.credentials.get(name) for name in wanted}

    async def _read_api_keys(self) -> None:
        self.api_keys = [key async for key in self.client().api_keys.all()]

    async def _read_notifications(self) -> None:
        self.notifications = await self.client().chatapp.get()

    async def set_credential(self, provider: str, key: str) -> None:
        """Stores a provider's key in place of the one before."""
        await self.client().credentials.set(provider, key)
        self.credentials = {**(self.credentials or {})}
        self.credentials[provider] = await self.client().credentials.get(provider)

    async def remove_credential(self, provider: str) -> None:
        """Takes a provider's key away."""
        await self.client().credentials.delete(provider)
        await self.read("credentials")

    async def revoke(self, key_id: UUID) -> None:
        """Takes an API key away, at once."""
        await self.client().api_keys.delete(key_id)
        await self.read("api_keys")

    async def send_to(self, url: str) -> None:
        """Sends notifications to an address from now on."""
        await self.client().chatapp.connect(url)
        await self.read("notifications")

    async def send_nowhere(self) -> None:
        """Sends no notifications any more."""
        await self.client().chatapp.disconnect()
        await self.read("notifications")
