"""The engine's interface to agent drivers, independent of the agent's protocol.

A driver runs one agent process for one chat. The agent's output reaches the engine as
`AgentEvent`s through the sink given at `open`, in order; the driver awaits the sink, so an engine
that cannot store an event (a full disk) slows the agent down instead of losing it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from quarterdeck.wire.chats import ChatSettings, GoalStatus, Image
from quarterdeck.wire.history import AgentEvent
from quarterdeck.wire.permissions import Permissions
from quarterdeck.wire.setup import McpServer

SESSION_FILE = "session"
"""Name of the file in a chat's directory that holds the id of its session."""

AgentSink = Callable[[AgentEvent], Awaitable[None]]
"""Receives one event, of the running turn or between turns. Must not call back into the session."""


class AgentError(Exception):
    """An agent could not do what was requested. The text is for a person and says what to do."""


class AgentUnavailableError(AgentError):
    """The agent is not installed, has no key, or did not start."""


class AgentDiedError(AgentError):
    """The agent's process ended in the middle of something."""


@dataclass(frozen=True)
class SessionSpec:
    """The parameters of an agent's session.

    `session_id` is an earlier `AgentSession.id`, so that the agent continues that session; None
    for a new one. `environment` is the whole environment of the process except for `key`, which
    only this agent's process receives, in its key variable.
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
    """Whether the agent runs in a sandbox."""
    permissions: Callable[[], Permissions] = field(default=Permissions, repr=False, compare=False)
    """Returns the permission policy that applies at the moment."""
    workspace: str | None = None
    """The directory of all repositories, in which the policy may allow edits; None: the working
    directory."""
    on_own_turn: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)
    """Called when the agent begins to work by itself between turns; see `SelfStartingSession`."""


@dataclass(frozen=True)
class GoalWish:
    """The goal as the engine has it, for an agent with native goals.

    `fresh`: it was newly set, so the agent's counts start again.
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

    `goal` is set only for an agent with native goals. With `continuation` there is no message: the
    engine requests the next turn towards the goal, which the agent may have started already. With
    `own_turn` there is no message either: the agent began to work by itself, and nothing is sent.
    """

    message_id: str
    text: str
    images: list[Image] = field(default_factory=list[Image])
    plan_mode: bool = False
    model: str | None = None
    fast_mode: bool = False
    thinking_level: str | None = None
    permission_mode: str | None = None
    """Mode to work in unless `plan_mode`; None: the agent's own. One that it no longer offers is
    left out."""
    goal: GoalWish | None = None
    continuation: bool = False
    own_turn: bool = False


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

    `goal_status` is the agent's own status of its goal, if its protocol has one; otherwise the
    engine reads the end of the agent's message. `goal` is the report of an agent with native goals.
    `asked` is false when the agent did not receive the prompt. `planned` is whether a turn in plan mode
    left a plan to review; None when the agent does not mark its plans, so its message is the plan.
    """

    stop_reason: str
    error: str | None = None
    usage: dict[str, Any] | None = None
    goal_status: GoalStatus | None = None
    goal: GoalReport | None = None
    asked: bool = True
    planned: bool | None = None


class AgentSession(Protocol):
    """An open session with a running agent process."""

    @property
    def id(self) -> str:
        """The agent's own session id; kept by the engine to reopen the session.

        Read it after each turn: an agent that lost its session gets a new one.
        """
        ...

    async def prompt(self, prompt: Prompt) -> TurnOutcome:
        """Run one turn to its end. Never two at once.

        Raises:
            AgentDiedError: the process ended. The next prompt opens the session again.
            AgentUnavailableError: the session had to be opened again, and could not be.
            Exception: what the sink raised.
        """
        ...

    async def interrupt(self) -> None:
        """Stop the running turn and everything it started; `prompt` then returns CANCELLED."""
        ...

    async def respond(self, request_id: str, option_id: str | None, text: str | None) -> bool:
        """Answer a permission request or question; False when it is closed.

        The sink has received the outcome when this returns.

        Raises:
            AgentError: the option is unknown; the question stays open.
        """
        ...

    async def close(self) -> None:
        """End the process and everything it started. Safe to call twice."""
        ...


@runtime_checkable
class GoalSession(AgentSession, Protocol):
    """A session of an agent with native goals."""

    async def change_goal(self, wish: GoalWish) -> None:
        """Set the agent's goal to the engine's, also during a turn.

        Raises:
            AgentError: the agent did not accept it.
        """
        ...


@runtime_checkable
class SteerableSession(AgentSession, Protocol):
    """A session of an agent that takes messages in a running turn."""

    async def steer(self, prompt: Prompt, taken: Callable[[], None]) -> None:
        """Put a message into the running turn; `taken` is called before any event that follows it.

        Raises:
            AgentDiedError: the process ended, and may have had the message.
            AgentError: the agent did not take it.
        """
        ...


@runtime_checkable
class SelfStartingSession(AgentSession, Protocol):
    """A session of an agent that may continue by itself after the end of a turn.

    What it does then is held until the next prompt. The engine prompts with `own_turn`, and that
    prompt lasts until the agent rests.
    """

    @property
    def own_turn_waits(self) -> bool:
        """Whether the agent began to work by itself, and no prompt has shown it yet."""
        ...


@dataclass(frozen=True)
class ModelOffer:
    """The models that an agent announced: id and name. `default`: its own choice."""

    models: tuple[tuple[str, str], ...]
    default: str | None = None


@runtime_checkable
class ModelSession(AgentSession, Protocol):
    """A session of an agent that may announce its models."""

    @property
    def models(self) -> ModelOffer | None:
        """The announced models; None when it announced none."""
        ...


@runtime_checkable
class AdjustableSession(AgentSession, Protocol):
    """A session of an agent that may announce settings."""

    @property
    def settings(self) -> ChatSettings:
        """The settings as the agent has them now."""
        ...

    async def set_permission_mode(self, mode: str) -> None:
        """Change the permission mode, also during a turn; without a process the next prompt does.

        Raises:
            AgentError: the agent does not offer it, or did not accept it.
        """
        ...


@runtime_checkable
class PolicySession(AgentSession, Protocol):
    """A session whose permission requests the policy of `SessionSpec` may answer."""

    async def review_questions(self) -> None:
        """Answer open permission requests that the policy decides now: it has changed."""
        ...


class AgentDriver(Protocol):
    """Opens sessions of one kind of agent."""

    async def open(self, spec: SessionSpec, sink: AgentSink) -> AgentSession:
        """Start the agent and open, or reopen, a session.

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
    supports_steer: bool = False
    configured: bool = False
    """Whether it is one of the configuration file's."""
    models: tuple[tuple[str, str], ...] = ()
    """The models it is known to offer: id and name."""
    default_model: str | None = None
    missing_keys: tuple[str, ...] = ()
    """Set when only a key is missing: the variables, of which one is enough."""
    logins: tuple[str, ...] = ()
    """Files below a home directory, of which one is enough instead."""
    installed: bool = False
    version: str | None = None
    install: str | None = None
    """The command that installs it."""
    login_found: bool = False
    """Whether the current user is logged in with it here."""
    own_key: str | None = None
    """The variable, set here, with the key for its process."""


class AgentCatalog(Protocol):
    """The known agents."""

    def statuses(self) -> list[AgentStatus]:
        """Return every known agent, usable or not, with the reason. Reads the disk: blocking."""
        ...

    def driver(self, agent_id: str) -> AgentDriver:
        """Return the driver of an agent.

        Raises:
            AgentUnavailableError: no agent has this id.
        """
        ...

    def supports_goal(self, agent_id: str) -> bool:
        """Return whether chats of this agent can have a goal. Does not read the disk."""
        ...

    def native_goals(self, agent_id: str) -> bool:
        """Return whether this agent has native goals: its sessions are `GoalSession`s."""
        ...
