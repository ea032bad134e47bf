"""Brings what an agent says into the engine's sink: in order, one at a time, inside turns only."""

import asyncio
from collections import deque
from typing import Any

from quarterdeck.agents.port import AgentSink
from quarterdeck.agents.session.activity import Activity
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.history import AgentEvent, AgentEventType

HELD_LIMIT = 1000
"""Events kept for the next turn; with more, the agent is not read until that turn begins."""


class Recorder:
    """Between an agent and the sink. What comes between turns is held for the next one."""

    def __init__(self, sink: AgentSink) -> None:
        self._sink = sink
        self._lock = asyncio.Lock()
        self._turn = asyncio.Event()
        self._held: deque[AgentEvent] = deque()
        self.activity = Activity()
        """Of the agent whose events these are."""

    async def open_turn(self) -> None:
        """Lets events through, those that were held first."""
        self._turn.set()
        async with self._lock:
            await self._release()

    @property
    def open(self) -> bool:
        """Whether a turn is under way."""
        return self._turn.is_set()

    def close_turn(self) -> None:
        """Holds events from here on. Whatever tools were left open count no more."""
        self._turn.clear()
        self.activity.rest()

    async def record(self, kind: str, payload: dict[str, Any]) -> None:
        """Returns when the sink has the event, or when it is held."""
        self.activity.touch()
        if kind == AgentEventType.SESSION_UPDATE:
            self.activity.follow(payload)
        # model_construct: the payload is the agent's own and must not be copied or judged.
        event = AgentEvent.model_construct(timestamp=utc_now(), type=kind, payload=payload)
        if len(self._held) >= HELD_LIMIT:
            await self._turn.wait()
        async with self._lock:
            await self._take(event)

    async def _take(self, event: AgentEvent) -> None:
        if not self._turn.is_set():
            self._held.append(event)
            return
        await self._release()
        await self._sink(event)

    async def _release(self) -> None:
        while self._held:
            await self._sink(self._held[0])
            self._held.popleft()
