"""Agents, the ones that a person adds, and the credentials of their providers."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from quarterdeck.wire.base import NO_NUL, Body, CamelRecord, Id, Record, Timestamp

BUILTIN = "builtin"
"""The agent that needs no model and no account."""
RELEASED = frozenset({BUILTIN, "claude", "codex", "copilot", "gemini", "opencode"})
"""The agents of this release. The configuration file can add others, but not change the names of these."""


class AgentModel(CamelRecord):
    """A model that an agent offers."""

    id: str
    """Identifier to send as `model`."""
    display_name: str
    """Name to show."""


class Agent(Record):
    """One agent as the service offers it. The identifier is an open string for clients."""

    id: str
    """Identifier to send as `coding_agent` or `provider`."""
    name: str
    """Name to show."""
    available: bool
    """Whether a chat can use it now."""
    auth_method: str | None = None
    """How it is authenticated, such as `api_key`; null when it needs nothing."""
    supports_goal: bool = False
    """Whether its chats can have a goal."""
    supports_plan: bool = False
    """Whether its chats have a plan mode."""
    supports_steer: bool = False
    """Whether it takes messages in a running turn; otherwise steering interrupts it (own field)."""
    configured: bool = False
    """Whether it is one of the configuration file's, and not of this release (own field)."""
    reason: str | None = None
    """Why it is not available, and what to do (own field)."""
    installed: bool = False
    """Whether its program is on the service's machine (own field, like those that follow)."""
    version: str | None = None
    """The installed version, where it is known."""
    install: str | None = None
    """The command that installs it."""
    login_found: bool = False
    """Whether the user who runs the service is logged in with it; replicas do not see that login."""
    models: Annotated[list[AgentModel], Field(exclude=True)] = []
    """The models it is known to offer; asked for separately."""
    default_model: Annotated[str | None, Field(exclude=True)] = None
    missing_keys: Annotated[list[str], Field(exclude=True)] = []
    """Set when only a key is missing: the variables of which one would do."""
    logins: Annotated[list[str], Field(exclude=True)] = []
    """Files below a replica's home directory of which one would do as well."""
    own_key: Annotated[str | None, Field(exclude=True)] = None
    """The variable of the service's own environment that holds its key, for the owner's replicas."""


class AgentList(Record):
    """Answer of `GET /v1/agents`."""

    agents: list[Agent]
    """All agents, available or not."""


class AgentModels(CamelRecord):
    """Answer of `GET /v1/agents/{agent}/models`; without a default the agent chooses itself."""

    models: list[AgentModel]
    """Models to choose from."""
    default_model: str | None = None
    """Model that is used when none is given; null when the agent chooses."""
    announced: bool | None = None
    """Whether the agent announced them in a replica of the organization; false: they are those that
    it had when this release was made (own field)."""


AGENTS_VARIABLE = "QUARTERDECK_AGENTS"
"""For the built-in agent: `KnownAgents` as JSON."""

Text = Annotated[str, Field(min_length=1)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class OwnAgent(BaseModel):
    """An agent that speaks the Agent Client Protocol on its standard streams."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: Text
    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Program, by name or absolute path, and its arguments."""
    keys: tuple[Variable, ...] = ()
    """Variables that hold its key: one of them is enough, the first is given the stored one."""
    environment: dict[Variable, str] = {}
    """Variables it is started with. Everything in a replica can read them: no place for secrets."""
    model_variable: Variable | None = None
    model_arguments: tuple[str, ...] = ()
    auth_method: Text | None = None
    supports_plan: bool = False
    models: dict[Text, Text] = {}
    default_model: Text | None = None
    install: Text | None = None
    """How a person gets it."""
    logins: tuple[Text, ...] = ()
    version_arguments: tuple[str, ...] = ()
    permission_mode: Text | None = None
    plan_mode: Text | None = None
    traps: dict[str, Any] = {}
    """Where it deviates from the protocol; `Quirks` of the drivers says what each means."""
    instructions: Text | None = None
    """File below the home directory from which it reads instructions. Without one, those of the
    environment precede the first message of a session."""
    shown: tuple[str, ...] = ()
    """Further paths of the machine that replicas see, read-only, because it needs them."""


class KnownAgents(BaseModel, defer_build=True):
    """What the engine knows of agents beyond what lies in the sandbox; no secret is in it."""

    own: dict[str, OwnAgent] = {}
    keyed: list[str] = []
    """Agents whose process is given a key by the service."""


PROVIDER_PATTERN = r"^[a-z0-9][a-z0-9-]{0,99}$"
NO_PROVIDERS = frozenset(
    (
        "agents",
        "auth",
        "automations",
        "chatapp",
        "environment-skills",
        "environments",
        "health",
        "host-a",
        "host-b",
        "organization",
        "origin",
        "organizations",
        "mcp",
        "previews",
        "replica",
        "search",
        "services",
        "user",
        "warm-pools",
        "workspaces",
    )
)
"""First words of other routes: no provider, and so no agent, has such a name."""
KEY_LIMIT = 65_536


class CredentialStatus(CamelRecord):
    """Whether there is a key. `api_key` is masked: its first and last four characters at most."""

    has_credentials: bool
    """Whether a key is stored."""
    credential_id: Id | None = None
    """Id of the stored key."""
    api_key: str | None = None
    """The key, masked."""
    last_fetched_at: Timestamp | None = None
    """When a workspace last received it."""


class CredentialSet(CamelRecord):
    """Answer of setting a key."""

    success: bool = True
    """Always true: a failure is answered with an Error object."""
    credential_id: Id
    """Id of the stored key."""


class SetCredential(Body):
    """Body of setting a key."""

    api_key: Annotated[str, Field(min_length=1, max_length=KEY_LIMIT, repr=False), NO_NUL]
    """The key. It is stored encrypted."""
