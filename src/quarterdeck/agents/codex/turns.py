"""The turns of a thread as codex tells of them: some are asked for, some it begins by itself."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from quarterdeck.agents.port import GoalReport
from quarterdeck.agents.session.link import LinkLostError

Params = dict[str, Any]

_USAGE = {
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "totalTokens": "totalTokens",
    "cachedInputTokens": "cachedReadTokens",
    "reasoningOutputTokens": "thoughtTokens",
}
"""Codex's names of what a model used, and the protocol's."""


@dataclass(eq=False)
class NativeTurn:
    """One turn. `ended` gets codex's own record of it."""

    id: str
    used: Counter[str] = field(default_factory=Counter[str])
    goal: GoalReport | None = None
    """The goal when the turn ended: the next turn may be counted before anybody asks."""
    ended: asyncio.Future[Params] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def usage(self) -> dict[str, int] | None:
        return dict(self.used) or None


class ThreadTurns:
    """Which turn runs, and which of those that codex began by itself nobody has asked for yet."""

    def __init__(self) -> None:
        self._turns: dict[str, NativeTurn] = {}
        self._unasked: deque[NativeTurn] = deque()
        self._wanted: asyncio.Future[NativeTurn] | None = None
        self.running: NativeTurn | None = None
        self.ours: NativeTurn | None = None
        """The one that the engine's turn is about."""

    def started(self, turn_id: str) -> None:
        """Codex began a turn."""
        turn = self.running = self._turn(turn_id)
        if turn is self.ours:
            return
        self._unasked.append(turn)
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(self._take(turn))

    def completed(self, record: Params) -> NativeTurn:
        """Codex ended a turn."""
        turn = self._turn(str(record.get("id")))
        self._turns.pop(turn.id, None)
        if turn is self.running:
            self.running = None
        if not turn.ended.done():
            turn.ended.set_result(record)
        return turn

    def used(self, turn_id: str, usage: Params) -> None:
        """Codex told what one request to the model used."""
        if turn_id not in self._turns:
            return  # of a turn before the thread was reopened
        counts = {name: usage.get(native) for native, name in _USAGE.items()}
        told = {name: count for name, count in counts.items() if isinstance(count, int)}
        self._turns[turn_id].used.update(told)

    def adopt(self, turn_id: str) -> NativeTurn:
        """This turn is the one that was asked for."""
        return self._take(self._turn(turn_id))

    def take_unasked(self) -> NativeTurn | None:
        """The oldest turn that codex began by itself."""
        return self._take(self._unasked[0]) if self._unasked else None

    def next_one(self) -> asyncio.Future[NativeTurn]:
        """The next turn that codex begins is ours."""
        self._wanted = asyncio.get_running_loop().create_future()
        return self._wanted

    @property
    def unasked(self) -> bool:
        """Whether codex began turns that nobody has asked for yet."""
        return bool(self._unasked)

    def forget_unasked(self) -> None:
        """They are over, and told."""
        self._unasked.clear()

    def release(self) -> None:
        """The engine's turn is over."""
        self.ours = self._wanted = None

    def lost(self) -> None:
        """Codex is gone, and with it every turn."""
        waiting = [turn.ended for turn in self._turns.values()]
        for one in [*waiting, *([self._wanted] if self._wanted else [])]:
            if not one.done():
                one.set_exception(LinkLostError())
                one.exception()  # nobody may be waiting for it
        self._turns.clear()
        self._unasked.clear()
        self.running = None

    def _take(self, turn: NativeTurn) -> NativeTurn:
        if turn in self._unasked:
            self._unasked.remove(turn)
        self.ours = turn
        return turn

    def _turn(self, turn_id: str) -> NativeTurn:
        if turn_id not in self._turns:
            self._turns[turn_id] = NativeTurn(turn_id)
        return self._turns[turn_id]
