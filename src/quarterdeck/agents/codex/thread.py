"""What is asked of codex about an open thread beside its messages: its goal, and its end."""

import asyncio
from contextlib import suppress
from typing import Any

from quarterdeck.agents.codex.hearing import Hearing
from quarterdeck.agents.codex.link import CodexLink
from quarterdeck.agents.codex.turns import NativeTurn
from quarterdeck.agents.port import GoalWish
from quarterdeck.agents.session.link import LinkLostError, RefusedError
from quarterdeck.agents.session.patience import Patience

Params = dict[str, Any]

_TIDY_SECONDS = 2.0
"""For codex to tell how commands ended that it was made to stop."""


class Thread:
    """One thread on one link; every method may raise what the link's requests raise."""

    def __init__(self, link: CodexLink, id: str, hearing: Hearing, patience: Patience) -> None:
        self.id = id
        self._link = link
        self._hearing = hearing
        self._patience = patience

    async def learn_goal(self) -> None:
        """Asks what the goal is."""
        told = await self._link.request("thread/goal/get", {"threadId": self.id})
        self._hearing.goal.follow(told.get("goal"))

    async def align(self, wish: GoalWish) -> None:
        """Brings the goal in line with the wish."""
        goal = self._hearing.goal
        change = goal.change(wish)
        if change is not None:
            await self._set_goal(change, anew=not goal.is_that_of(wish))

    async def pause_goal(self) -> None:
        """Stops codex from beginning another turn."""
        if self._hearing.goal.active:
            await self._set_goal({"status": "paused"}, anew=False)

    async def work_on(self, wish: GoalWish) -> None:
        """Makes codex go on towards the goal, also where it has stopped at it."""
        goal = self._hearing.goal
        change = goal.change(wish) or {"status": "active"}
        await self._set_goal(change, anew=not goal.is_that_of(wish))

    async def _set_goal(self, change: Params, anew: bool) -> None:
        goal = self._hearing.goal
        if anew and goal.there:  # its counts would go on
            await self._link.request("thread/goal/clear", {"threadId": self.id})
        params = {"threadId": self.id, **change}
        await self._link.request("thread/goal/set", params, lambda a: goal.follow(a.get("goal")))

    async def stop(self) -> None:
        """Asks for the end of our turn. The goal first: codex would begin the next turn at once."""
        self._hearing.keep_open = True
        try:
            await self.pause_goal()
            ours = self._hearing.turns.ours
            if ours is not None and not ours.ended.done():
                await self._interrupt(ours)
        except (RefusedError, LinkLostError):
            return  # it has just ended

    async def stop_running(self) -> None:
        """Ends a turn that codex began by itself; its goal stays active."""
        running = self._hearing.turns.running
        if running is None:
            return
        with suppress(RefusedError):  # it may end by itself in this moment
            await self._interrupt(running)
        async with asyncio.timeout(self._patience.cancel):
            await asyncio.shield(running.ended)
        await self.tidy()

    async def tidy(self) -> None:
        """Ends the commands of an interrupted turn, which codex leaves running."""
        with suppress(RefusedError, TimeoutError):  # then they are told as failed
            async with asyncio.timeout(_TIDY_SECONDS):
                await self._link.request("thread/backgroundTerminals/clean", {"threadId": self.id})
                await self._hearing.narrator.calls_closed()
        await self._link.end_commands()
        await self._hearing.narrator.close_calls()

    async def _interrupt(self, native: NativeTurn) -> None:
        await self._link.request("turn/interrupt", {"threadId": self.id, "turnId": native.id})
