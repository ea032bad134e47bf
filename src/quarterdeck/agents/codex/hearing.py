"""Sorts what codex says about one thread: to the narrator, to a person, to whoever waits for it."""

from typing import Any

from quarterdeck.agents.codex.approvals import Approvals
from quarterdeck.agents.codex.goals import NativeGoal
from quarterdeck.agents.codex.link import Reply
from quarterdeck.agents.codex.narration import Narrator
from quarterdeck.agents.codex.turns import ThreadTurns
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.session.desk import Desk
from quarterdeck.agents.session.recorder import Recorder

Params = dict[str, Any]


class Hearing:
    """Implements `Ears` for one process, whose other threads are those of its helpers."""

    def __init__(self, recorder: Recorder, desk: Desk) -> None:
        self._recorder = recorder
        self._desk = desk
        self._approvals = Approvals(desk)
        self.narrator = Narrator(recorder)
        self.turns = ThreadTurns()
        self.goal = NativeGoal()
        self.thread_id: str | None = None
        self.keep_open = False
        """What comes after the end of the turn belongs to it: how its commands ended."""

    async def hear(self, method: str, params: Params) -> None:
        """Takes a notification."""
        thread_id = params.get("threadId")
        if thread_id is not None and thread_id != self.thread_id:
            return
        match method:
            case "turn/started":
                self.turns.started(str(as_object(params.get("turn")).get("id")))
            case "turn/completed":
                await self._completed(as_object(params.get("turn")))
            case "thread/goal/updated":
                self.goal.follow(params.get("goal"))
            case "thread/goal/cleared":
                self.goal.follow(None)
            case _:
                if method == "thread/tokenUsage/updated":
                    usage = as_object(as_object(params.get("tokenUsage")).get("last"))
                    self.turns.used(str(params.get("turnId")), usage)
                await self.narrator.hear(method, params)

    async def asked(self, method: str, params: Params) -> Reply | None:
        """Takes a request."""
        return await self._approvals.asked(method, params)

    def opened(self, answer: Params) -> None:
        """Takes the answer that opened the thread."""
        self.thread_id = str(as_object(answer.get("thread")).get("id"))

    def lost(self) -> None:
        """Codex is gone."""
        self.turns.lost()

    async def _completed(self, record: Params) -> None:
        turn = self.turns.completed(record)
        turn.goal = self.goal.report()
        if turn is not self.turns.ours:
            return
        await self._desk.cancel_all()
        if record.get("status") != "interrupted" and not self.keep_open:
            # Here, not when `prompt` wakes up: lines that follow are read before that.
            self._recorder.close_turn()
