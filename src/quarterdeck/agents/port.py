"""What the engine asks of an agent driver, whatever protocol the agent speaks.

A driver runs one agent process for one chat. What the agent says reaches the engine as
`AgentEvent`s through the sink given at `open`, in order; the driver awaits the sink, so an engine
that cannot keep an event (a full disk) holds the agent back instead of losing it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from quarterdeck.wire.goals import GoalStatus
from quarterdeck.wire.history import AgentEvent
from quarterdeck.wire.messages import Image, ThinkingLevel
from quarterdeck.wire.setup import McpServer

AgentSink = Callable[[AgentEvent], Awaitable[None]]
"""Takes one event of the running turn. Must not call back into the session."""


class AgentError(Exception):
    """An agent could not do what was asked. The text is for a person and says what to do."""


class AgentUnavailableError(AgentError):
    """The agent is not installed, has no key, or did not start."""


class AgentDiedError(AgentError):
    """The agent's process ended in the middle of something."""


@dataclass(frozen=True)
class SessionSpec:
    """What an agent's session is opened with.

    `session_id` is what the driver returned before (`AgentSession.id`), so that the agent goes on
    where it was; None for a new one. `environment` is the whole environment of the process but for
    `key`, which only this agent's process is given, in the variable where it looks for one.
    """

    chat_id: str
    working_directory: str
    state_directory: str
    environment: Mapping[str, str]
    session_id: str | None = None
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    mcp_servers: tuple[McpServer, ...] = field(default=(), repr=False)
    isolated: bool = True
    """Whether a sandbox is around the agent already."""


@dataclass(frozen=True)
class GoalWish:
    """The goal as the engine has it, for an agent that works towards goals by itself.

    `fresh`: it was set anew, so whatever the agent counted for another one is over.
    """

    objective: str
    active: bool = True
    token_budget: int | None = None
    fresh: bool = False


@dataclass(frozen=True)
class GoalReport:
    """The goal as the agent has it. Its counts win over those of the engine."""

    status: GoalStatus
    tokens_used: int
    time_used_seconds: int


@dataclass(frozen=True)
class Prompt:
    """One user message for the agent.

    `goal` is told only to an agent with goals of its own. With `continuation` there is no message:
    what is asked for is the next turn towards the goal, which the agent may have begun already.
    """

    message_id: str
    text: str
    images: list[Image] = field(default_factory=list[Image])
    plan_mode: bool = False
    model: str | None = None
    fast_mode: bool = False
    thinking_level: ThinkingLevel | None = None
    goal: GoalWish | None = None
    continuation: bool = False


class StopReason(StrEnum):
    """How a turn ended: the Agent Client Protocol's reasons and our `failed`."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True)
class TurnOutcome:
    """The end of a turn. `error` is set when `stop_reason` is FAILED.

    `goal_status` is the agent's own word on its goal, where its protocol has one; the engine reads
    the end of the agent's message otherwise. `goal` is all that an agent with goals of its own has
    to say of it. `asked` is false when the agent was not given the prompt.
    """

    stop_reason: str
    error: str | None = None
    usage: dict[str, Any] | None = None
    goal_status: GoalStatus | None = None
    goal: GoalReport | None = None
    asked: bool = True


class AgentSession(Protocol):
    """An open session with a running agent process."""

    @property
    def id(self) -> str:
        """The agent's own session id; kept by the engine to reopen the session.

        Ask again after each turn: an agent that forgot its session gets a new one.
        """
        ...

    async def prompt(self, prompt: Prompt) -> TurnOutcome:
        """Runs one turn to its end. Never two at once.

        Raises:
            AgentDiedError: the process ended. The next prompt opens the session again.
            AgentUnavailableError: the session had to be opened again, and could not be.
            Exception: what the sink raised.
        """
        ...

    async def interrupt(self) -> None:
        """Stops the running turn and everything it started; `prompt` then returns CANCELLED."""
        ...

    async def respond(self, request_id: str, option_id: str | None, text: str | None) -> bool:
        """Answers a permission request or question; False when it is no longer awaited.

        Raises:
            AgentError: there is no such option. Still awaited.
        """
        ...

    async def close(self) -> None:
        """Ends the process and everything it started. Safe to call twice."""
        ...


@runtime_checkable
class GoalSession(AgentSession, Protocol):
    """A session of an agent that works towards goals by itself."""

    async def change_goal(self, wish: GoalWish) -> None:
        """Brings the agent's goal in line with the engine's, also in the middle of a turn.

        Raises:
            AgentError: the agent did not take it.
        """
        ...


class AgentDriver(Protocol):
    """Opens sessions of one kind of agent."""

    async def open(self, spec: SessionSpec, sink: AgentSink) -> AgentSession:
        """Starts the agent and opens, or reopens, a session.

        Raises:
            AgentUnavailableError: not installed, no key, wrong version, or it did not start.
        """
        ...


@dataclass(frozen=True)
class AgentStatus:
    """One agent as found on this machine."""

    id: str
    name: str
    available: bool
    reason: str | None = None
    auth_method: str | None = None
    supports_goal: bool = False
    supports_plan: bool = False
    models: tuple[tuple[str, str], ...] = ()
    """The models it is known to offer: id and name."""
    default_model: str | None = None
    missing_keys: tuple[str, ...] = ()
    """Set when only a key is missing: the variables of which one would do."""
    logins: tuple[str, ...] = ()
    """Files below a home directory of which one would do as well."""
    installed: bool = False
    version: str | None = None
    install: str | None = None
    """What installs it."""
    login_found: bool = False
    """Whether whoever runs this logged in with it here."""
    own_key: str | None = None
    """The variable, set here, that holds the key which its process is given."""


class AgentCatalog(Protocol):
    """The agents that can be asked for."""

    def statuses(self) -> list[AgentStatus]:
        """Every known agent, usable or not, with the reason. Looks at the disk: blocking."""
        ...

    def driver(self, agent_id: str) -> AgentDriver:
        """The driver of an agent.

        Raises:
            AgentUnavailableError: no agent has this id.
        """
        ...

    def supports_goal(self, agent_id: str) -> bool:
        """Whether chats of this agent can have a goal. Looks at nothing on the disk."""
        ...

    def native_goals(self, agent_id: str) -> bool:
        """Whether this agent works towards goals by itself: its sessions are `GoalSession`s."""
        ...
