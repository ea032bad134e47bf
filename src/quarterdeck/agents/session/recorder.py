"""Records an agent's events, and its activity."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from quarterdeck.agents.objects import as_object
from quarterdeck.agents.output import MOST_CALLS
from quarterdeck.agents.port import AgentSink
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.history import STATE_UPDATES, AgentEvent, AgentEventType

_AT_WORK = ("pending", "in_progress")


class Activity:
    """The time of the agent's last message, and its running tools: those may be silent for long."""

    def __init__(self) -> None:
        self._last_message_at = monotonic()
        self._running: set[str] = set()

    def rest(self) -> None:
        """Note that a turn has ended; tools left open will not be closed."""
        self._running.clear()

    def touch(self) -> None:
        """Note that something came from the agent, or went to it."""
        self._last_message_at = monotonic()

    def follow(self, update: dict[str, Any]) -> None:
        """Follow the agent's updates of its tools."""
        if update.get("sessionUpdate") not in ("tool_call", "tool_call_update"):
            return
        call, status = str(update.get("toolCallId")), update.get("status")
        if status in _AT_WORK or (update["sessionUpdate"] == "tool_call" and status is None):
            if len(self._running) < MOST_CALLS:
                self._running.add(call)
        elif status is not None:
            self._running.discard(call)

    async def quiet(self, seconds: float) -> None:
        """Wait until there was no message for this long, even while tools run."""
        while (remaining := seconds - (monotonic() - self._last_message_at)) > 0:  # noqa: ASYNC110
            await asyncio.sleep(remaining)

    @property
    def last_message_at(self) -> float:
        """The time of the last message, by the monotonic clock."""
        return self._last_message_at

    @property
    def since_message(self) -> float:
        """Seconds since anything came from the agent, even while tools run."""
        return monotonic() - self._last_message_at

    @property
    def silence(self) -> float:
        """Seconds since anything came from the agent; none while a tool runs."""
        return 0.0 if self._running else monotonic() - self._last_message_at


async def wait_for_silence(activity: Activity, limit: float, waits: Callable[[], bool]) -> None:
    """Wait until nothing happened for `limit` seconds while no question was open."""
    while (remaining := limit - activity.silence) > 0 or waits():  # noqa: ASYNC110 (no event)
        await asyncio.sleep(remaining if remaining > 0 else limit)


HELD_LIMIT = 1000
"""Events kept for the next turn; with more, the agent is not read until that turn starts."""


_NO_WORK = frozenset({*STATE_UPDATES, "tool_call_update", "user_message_chunk"})
"""Session updates that do not show that the agent began to work: calls of the last turn end late."""


class Recorder:
    """Passes an agent's events to the sink, and notices when it works between turns.

    Work between turns is held for the next turn, which `on_own_turn` requests. Other events pass
    at once, unless work is held before them. Before the first turn everything is held for it.
    """

    def __init__(self, sink: AgentSink, on_own_turn: Callable[[], None] = lambda: None) -> None:
        self._sink = sink
        self._on_own_turn = on_own_turn
        self.takes_own_turns = False
        """Whether work between turns is a turn of its own: set once the agent had a prompt."""
        self.own_turn_waits = False
        """Whether the agent began to work between turns; the turn that waits for its end clears it."""
        self._lock = asyncio.Lock()
        self._turn = asyncio.Event()
        self._held: deque[AgentEvent] = deque()
        self.activity = Activity()
        """Of the agent whose events these are."""

    async def open_turn(self) -> None:
        """Let events through, starting with those that were held."""
        self._turn.set()
        async with self._lock:
            await self._release()

    @property
    def open(self) -> bool:
        """Whether a turn is running."""
        return self._turn.is_set()

    def close_turn(self) -> None:
        """Hold events from here on. Tools left open no longer count."""
        self._turn.clear()
        self.activity.rest()

    async def record(self, kind: str, payload: dict[str, Any]) -> None:
        """Return when the sink has the event, or when it is held."""
        if kind != AgentEventType.NOTICE:  # that one is ours
            self.activity.touch()
        if kind == AgentEventType.SESSION_UPDATE:
            self.activity.follow(payload)
        # model_construct: the agent's payload must not be copied or validated.
        event = AgentEvent.model_construct(timestamp=utc_now(), type=kind, payload=payload)
        self._notice_own_turn(event)
        if len(self._held) >= HELD_LIMIT:
            await self._turn.wait()
        async with self._lock:
            await self._take(event)

    def _notice_own_turn(self, event: AgentEvent) -> None:
        if self.open or self.own_turn_waits or not self.takes_own_turns or not _is_work(event):
            return
        self.own_turn_waits = True
        self._on_own_turn()

    async def _take(self, event: AgentEvent) -> None:
        passes = self.open or (self.takes_own_turns and not self._held and not _is_work(event))
        if not passes:
            self._held.append(event)
            return
        await self._release()
        await self._sink(event)

    async def _release(self) -> None:
        while self._held:
            await self._sink(self._held[0])
            self._held.popleft()


def _is_work(event: AgentEvent) -> bool:
    if event.type != AgentEventType.SESSION_UPDATE:
        return event.type in (AgentEventType.PERMISSION_REQUEST, AgentEventType.POLICY_ANSWER)
    # An empty text carries the usage of the turn before it.
    empty = as_object(event.payload.get("content")).get("text") == ""
    return event.payload.get("sessionUpdate") not in _NO_WORK and not empty


@dataclass(frozen=True)
class Timeouts:
    """How long a driver waits for an agent, in seconds."""

    start: float = 60.0
    """For the handshake and for the session together."""
    choose: float = 20.0
    """For a change of mode, model or goal."""
    cancel: float = 5.0
    """From a cancel to the end of the turn; then the agent and its descendants are killed."""
    notice: float = 300.0
    """Without any message from an agent that asks nothing: then the chat says so. Not only agents
    that hang are silent: a tool may run for long, or wait for something that nobody sees."""
    silence: float = 1800.0
    """Of an agent that runs no tool and asks nothing during a turn: it hangs, and is killed."""
    rest: float = 10.0
    """Of an agent that works by itself, without a running tool or an open question: it has ended.
    The protocol does not report this end. Too short, and one turn is shown as several; too long,
    and the next message waits for nothing."""
    leave: float = 1.0
    """From the end of its input, or a SIGTERM, to the agent's end; then SIGKILL."""
