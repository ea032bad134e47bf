"""Settings of a service: agents, providers' keys, API keys, the target of notifications.

Each part is read separately, so that a refusal of one does not affect the others.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import ClientError
from quarterdeck.wire.account import ApiKey, ChatappConnection
from quarterdeck.wire.agents import BUILTIN, Agent, CredentialStatus

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

PARTS = ("agents", "credentials", "api_keys", "notifications")


@dataclass
class ServiceSettings:
    """The settings; `problems` says why a part could not be read. None: not read yet."""

    client: "Callable[[], Client]"
    agents: list[Agent] | None = None
    credentials: dict[str, CredentialStatus] | None = None
    api_keys: list[ApiKey] | None = None
    notifications: ChatappConnection | None = None
    problems: dict[str, str] = field(default_factory=dict[str, str])
    progress: dict[str, str] = field(default_factory=dict[str, str])
    """The last line of output of an agent's installation, by agent."""

    async def read(self, *parts: str) -> None:
        """Read parts again, by default all of them."""
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
        # A provider has its agent's name; others with a key are read by their own.
        named = [agent.id for agent in agents if agent.id != BUILTIN]
        wanted = [
            *named,
            *(credential for credential in self.credentials or {} if credential not in named),
        ]
        self.credentials = {name: await client.credentials.get(name) for name in wanted}

    async def _read_api_keys(self) -> None:
        self.api_keys = [key async for key in self.client().api_keys.all()]

    async def _read_notifications(self) -> None:
        self.notifications = await self.client().chatapp.get()

    async def set_credential(self, provider: str, key: str) -> None:
        """Store a provider's key, replacing the previous one."""
        await self.client().credentials.set(provider, key)
        self.credentials = {**(self.credentials or {})}
        self.credentials[provider] = await self.client().credentials.get(provider)

    async def remove_credential(self, provider: str) -> None:
        """Remove a provider's key."""
        await self.client().credentials.delete(provider)
        await self.read("credentials")

    async def revoke(self, key_id: UUID) -> None:
        """Revoke an API key."""
        await self.client().api_keys.delete(key_id)
        await self.read("api_keys")

    async def send_to(self, url: str) -> None:
        """Send notifications to an address from now on."""
        await self.client().chatapp.connect(url)
        await self.read("notifications")

    async def send_nowhere(self) -> None:
        """Stop sending notifications."""
        await self.client().chatapp.disconnect()
        await self.read("notifications")
