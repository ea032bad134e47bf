"""The client: every resource over one connection."""

from types import TracebackType
from typing import Self

from quarterdeck.client import _lean as _lean  # before the HTTP library, see there
from quarterdeck.client.account import Account
from quarterdeck.client.agents import Agents
from quarterdeck.client.api_keys import SHARED, ApiKeys
from quarterdeck.client.auth import Auth
from quarterdeck.client.automations import Automations
from quarterdeck.client.canvas import Canvas
from quarterdeck.client.chatapp import Chatapp
from quarterdeck.client.chats import Chats
from quarterdeck.client.connection import Connection
from quarterdeck.client.credentials import Credentials
from quarterdeck.client.environment_hooks import EnvironmentHooks
from quarterdeck.client.environment_parts import (
    EnvironmentFiles,
    EnvironmentMcps,
    EnvironmentSkills,
    EnvironmentVariables,
)
from quarterdeck.client.environments import Environments
from quarterdeck.client.events import Events
from quarterdeck.client.exec import Exec
from quarterdeck.client.files import Files
from quarterdeck.client.health import HealthCheck
from quarterdeck.client.history import HistoryPages
from quarterdeck.client.hook_logs import HookLogs
from quarterdeck.client.hook_tests import HookTests
from quarterdeck.client.messages import Messages
from quarterdeck.client.previews import Previews
from quarterdeck.client.replicas import Replicas
from quarterdeck.client.repositories import Repositories, RepositorySets
from quarterdeck.client.services import Services
from quarterdeck.client.terminals import Terminals
from quarterdeck.client.warm_pools import WarmPools


class Client:
    """Owns its connection: use as an async context manager, or call `aclose`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.health = HealthCheck(connection)
        self.services = Services(connection)
        self.auth = Auth(connection)
        self.account = Account(connection)
        self.api_keys = ApiKeys(connection)
        self.organization_api_keys = ApiKeys(connection, SHARED)
        self.chatapp = Chatapp(connection)
        self.repositories = Repositories(connection)
        self.repository_sets = RepositorySets(connection)
        self.environments = Environments(connection)
        self.variables = EnvironmentVariables(connection)
        self.environment_files = EnvironmentFiles(connection)
        self.skills = EnvironmentSkills(connection)
        self.mcps = EnvironmentMcps(connection)
        self.environment_hooks = EnvironmentHooks(connection)
        self.hook_tests = HookTests(connection)
        self.warm_pools = WarmPools(connection)
        self.credentials = Credentials(connection)
        self.agents = Agents(connection)
        self.automations = Automations(connection)
        self.replicas = Replicas(connection)
        self.chats = Chats(connection)
        self.messages = Messages(connection)
        self.history = HistoryPages(connection)
        self.hook_logs = HookLogs(connection)
        self.exec = Exec(connection)
        self.events = Events(connection)
        self.terminals = Terminals(connection)
        self.canvas = Canvas(connection)
        self.files = Files(connection)
        self.previews = Previews(connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connection. Streams and keyboards are closed by who opened them, before."""
        await self.connection.aclose()
