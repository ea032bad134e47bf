"""Which terminal input is typed, which waits and which is dropped (docs/interface.md 6, input order)."""

import asyncio
from enum import Enum, auto

GAP_SECONDS = 5.0


class InputFate(Enum):
    """The outcome of one numbered input."""

    APPLY = auto()
    DROP = auto()
    """It was typed before, or belongs to an older generation."""
    GAP = auto()
    """Earlier input did not arrive in time."""


class InputOrder:
    """Puts numbered inputs into their order. A higher generation starts again at sequence 0."""

    def __init__(self, gap_seconds: float = GAP_SECONDS) -> None:
        self._gap_seconds = gap_seconds
        self._generation = 0
        self._expected = 0
        self._moved = asyncio.Event()

    async def turn(self, generation: int, sequence: int) -> InputFate:
        """Wait for an input's turn. On APPLY the caller types it before it waits for anything."""
        if generation > self._generation:
            self._move(generation, 0)
        try:
            async with asyncio.timeout(self._gap_seconds):
                while (fate := self._look(generation, sequence)) is None:
                    await self._moved.wait()
        except TimeoutError:
            return InputFate.GAP
        if fate is InputFate.APPLY:
            self._move(generation, sequence + 1)
        return fate

    def _look(self, generation: int, sequence: int) -> InputFate | None:
        if generation < self._generation or sequence < self._expected:
            return InputFate.DROP
        return InputFate.APPLY if sequence == self._expected else None

    def _move(self, generation: int, expected: int) -> None:
        self._generation, self._expected = generation, expected
        self._moved.set()
        self._moved = asyncio.Event()
