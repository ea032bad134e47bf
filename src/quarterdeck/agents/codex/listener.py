"""Dispatches codex's messages about one thread: to the narrator, a person, or a waiting caller."""

from typing import Any

from quarterdeck.agents.codex.link import Reply
from quarterdeck.agents.codex.narration import Narrator
from quarterdeck.agents.codex.questions import Approvals
from quarterdeck.agents.codex.turns import NativeGoal, ThreadTurns
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.session.permissions import PermissionRequests
from quarterdeck.agents.session.recorder import Recorder

Params = dict[str, Any]


class ThreadListener:
    """Listens to one process; its other threads belong to codex's sub-agents."""

    def __init__(self, recorder: Recorder, requests: PermissionRequests) -> None:
        self._recorder = recorder
        self._requests = requests
        self._approvals = Approvals(requests)
        self.narrator = Narrator(recorder)
        self.turns = ThreadTurns()
        self.goal = NativeGoal()
        self.thread_id: str | None = None
        self.keep_open = False
        """Whether events after the end of the turn still belong to it: the ends of its commands."""

    async def hear(self, method: str, params: Params) -> None:
        """Handle a notification. The next line is read when this returns."""
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

    async def handle_request(self, method: str, params: Params) -> Reply | None:
        """Handle a request; return None when it cannot be answered here."""
        return await self._approvals.handle_request(method, params)

    def opened(self, answer: Params) -> None:
        """Note the answer that opened the thread."""
        self.thread_id = str(as_object(answer.get("thread")).get("id"))

    def lost(self) -> None:
        """Note that codex has ended."""
        self.turns.lost()

    async def _completed(self, record: Params) -> None:
        turn = self.turns.completed(record)
        turn.goal = self.goal.report()
        if turn is not self.turns.ours:
            return
        await self._requests.cancel_all()
        if record.get("status") != "interrupted" and not self.keep_open:
            # Here, not when `prompt` wakes up: lines that follow are read before that.
            self._recorder.close_turn()
