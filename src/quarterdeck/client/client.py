"""The client: every resource over one connection."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from quarterdeck.client import _lean as _lean  # before the HTTP library, see there
from quarterdeck.client.connection import AsyncResource, HttpConnection

if TYPE_CHECKING:
    from quarterdeck.client.account import (
        AccountApi,
        AuthApi,
        ChatappApi,
        HealthApi,
        KeysApi,
        ServicesApi,
    )
    from quarterdeck.client.agents import AgentsApi, CredentialsApi
    from quarterdeck.client.automations import AutomationsApi
    from quarterdeck.client.chats import ChatsApi, HistoryApi, MessagesApi
    from quarterdeck.client.environments import (
        EnvironmentFilesApi,
        EnvironmentHooksApi,
        EnvironmentsApi,
        HookTestsApi,
        McpServersApi,
        SkillsApi,
        VariablesApi,
        WarmPoolsApi,
    )
    from quarterdeck.client.git import (
        GitApi,
        OriginApi,
        PullRequestsApi,
        RepositoriesApi,
        RepositorySetsApi,
    )
    from quarterdeck.client.inside import CanvasApi, ExecApi, FilesApi, HooksApi, PreviewsApi
    from quarterdeck.client.permissions import PermissionsApi
    from quarterdeck.client.replicas import ReplicasApi
    from quarterdeck.client.streams import ChangesApi, EventsApi
    from quarterdeck.client.terminals import TerminalsApi

_RESOURCES = {
    "health": ("account", "HealthApi"),
    "services": ("account", "ServicesApi"),
    "auth": ("account", "AuthApi"),
    "account": ("account", "AccountApi"),
    "api_keys": ("account", "KeysApi"),
    "organization_api_keys": ("account", "OrganizationKeysApi"),
    "chatapp": ("account", "ChatappApi"),
    "repositories": ("git", "RepositoriesApi"),
    "repository_sets": ("git", "RepositorySetsApi"),
    "environments": ("environments", "EnvironmentsApi"),
    "variables": ("environments", "VariablesApi"),
    "environment_files": ("environments", "EnvironmentFilesApi"),
    "skills": ("environments", "SkillsApi"),
    "mcps": ("environments", "McpServersApi"),
    "environment_hooks": ("environments", "EnvironmentHooksApi"),
    "hook_tests": ("environments", "HookTestsApi"),
    "warm_pools": ("environments", "WarmPoolsApi"),
    "credentials": ("agents", "CredentialsApi"),
    "agents": ("agents", "AgentsApi"),
    "automations": ("automations", "AutomationsApi"),
    "replicas": ("replicas", "ReplicasApi"),
    "permissions": ("permissions", "PermissionsApi"),
    "chats": ("chats", "ChatsApi"),
    "messages": ("chats", "MessagesApi"),
    "history": ("chats", "HistoryApi"),
    "hook_logs": ("inside", "HooksApi"),
    "exec": ("inside", "ExecApi"),
    "events": ("streams", "EventsApi"),
    "changes": ("streams", "ChangesApi"),
    "terminals": ("terminals", "TerminalsApi"),
    "canvas": ("inside", "CanvasApi"),
    "files": ("inside", "FilesApi"),
    "git": ("git", "GitApi"),
    "pull_requests": ("git", "PullRequestsApi"),
    "origin": ("git", "OriginApi"),
    "previews": ("inside", "PreviewsApi"),
}
"""Module and class of each resource. Their models take long to import, and a command needs few."""


class Client(AsyncResource):
    """Owns its connection: use as an async context manager, or call `aclose`.

    A resource is created on first use.
    """

    health: "HealthApi"
    services: "ServicesApi"
    auth: "AuthApi"
    account: "AccountApi"
    api_keys: "KeysApi"
    organization_api_keys: "KeysApi"
    chatapp: "ChatappApi"
    repositories: "RepositoriesApi"
    repository_sets: "RepositorySetsApi"
    environments: "EnvironmentsApi"
    variables: "VariablesApi"
    environment_files: "EnvironmentFilesApi"
    skills: "SkillsApi"
    mcps: "McpServersApi"
    environment_hooks: "EnvironmentHooksApi"
    hook_tests: "HookTestsApi"
    warm_pools: "WarmPoolsApi"
    credentials: "CredentialsApi"
    agents: "AgentsApi"
    automations: "AutomationsApi"
    replicas: "ReplicasApi"
    permissions: "PermissionsApi"
    chats: "ChatsApi"
    messages: "MessagesApi"
    history: "HistoryApi"
    hook_logs: "HooksApi"
    exec: "ExecApi"
    events: "EventsApi"
    changes: "ChangesApi"
    terminals: "TerminalsApi"
    canvas: "CanvasApi"
    files: "FilesApi"
    git: "GitApi"
    origin: "OriginApi"
    previews: "PreviewsApi"
    pull_requests: "PullRequestsApi"

    def __init__(self, connection: HttpConnection) -> None:
        self.connection = connection

    if not TYPE_CHECKING:  # the annotations above list the attributes

        def __getattr__(self, name: str) -> Any:
            if name not in _RESOURCES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            module, resource = _RESOURCES[name]
            api = getattr(import_module(f"quarterdeck.client.{module}"), resource)
            setattr(self, name, api(self.connection))
            return getattr(self, name)

    async def aclose(self) -> None:
        """Close the connection. Streams and keyboards must be closed before, by their owners."""
        await self.connection.aclose()
