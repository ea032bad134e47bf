"""Whether an agent still does something: a turn in which nothing happens any more is given up."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

_AT_WORK = ("pending", "in_progress")


class Activity:
    """When the agent was last heard, and which of its tools run: those may be silent for long."""

    def __init__(self) -> None:
        self._heard = monotonic()
        self._running: set[str] = set()

    def rest(self) -> None:
        """A turn is over; what it left open will not be closed."""
        self._running.clear()

    def touch(self) -> None:
        """Something came from the agent, or went to it."""
        self._heard = monotonic()

    def follow(self, update: dict[str, Any]) -> None:
        """Takes what the agent says of its tools."""
        if update.get("sessionUpdate") not in ("tool_call", "tool_call_update"):
            return
        call, status = str(update.get("toolCallId")), update.get("status")
        if status in _AT_WORK or (update["sessionUpdate"] == "tool_call" and status is None):
            self._running.add(call)
        elif status is not None:
            self._running.discard(call)

    async def quiet(self, seconds: float) -> None:
        """Returns when nothing was heard for so long, whatever runs."""
        while (left := seconds - (monotonic() - self._heard)) > 0:  # noqa: ASYNC110 (as below)
            await asyncio.sleep(left)

    @property
    def silence(self) -> float:
        """Seconds since anything came from the agent; none while a tool runs."""
        return 0.0 if self._running else monotonic() - self._heard


async def silence(activity: Activity, limit: float, waits: Callable[[], bool]) -> None:
    """Returns when nothing happened for `limit` seconds, and no one is waited for."""
    while (left := limit - activity.silence) > 0 or waits():  # noqa: ASYNC110 (no event tells it)
        await asyncio.sleep(left if left > 0 else limit)
