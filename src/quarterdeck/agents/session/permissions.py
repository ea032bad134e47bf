"""Permission requests that wait for an answer."""

import asyncio
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from quarterdeck.agents.port import AgentError
from quarterdeck.agents.session.recorder import Recorder
from quarterdeck.wire.history import AgentEventType


def reject_text(_: str) -> None:
    """Refuse any text."""
    raise AgentError("This cannot be answered with text.")


@dataclass(frozen=True)
class Decision:
    """A question to decide: its recorded payload and its answers.

    `check_text` raises an `AgentError` for a text that is not an answer. A secret text is not
    stored.
    """

    payload: dict[str, Any]
    options: Collection[str]
    check_text: Callable[[str], None] = reject_text
    secret: bool = False


@dataclass(frozen=True)
class GivenAnswer:
    """The chosen option, or the written text. Neither: the question was cancelled."""

    option: str | None = None
    text: str | None = None

    @property
    def outcome(self) -> dict[str, Any]:
        """The answer as it is recorded, in the form of the Agent Client Protocol."""
        if self.option is not None:
            return {"outcome": "selected", "optionId": self.option}
        if self.text is not None:
            return {"outcome": "answered", "text": self.text}
        return {"outcome": "cancelled"}


NO_ANSWER = GivenAnswer()


@dataclass
class _Open:
    decision: Decision
    concluded: bool = False
    answer: asyncio.Future[GivenAnswer] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class PermissionRequests:
    """The questions and permission requests that await an answer, by request id."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[str, _Open] = {}

    @property
    def waits(self) -> bool:
        """Whether a question is open."""
        return bool(self._open)

    async def ask(self, decision: Decision) -> str:
        """Record a question and return its id."""
        request_id = str(uuid.uuid4())
        self._open[request_id] = _Open(decision)
        payload = {"requestId": request_id, **decision.payload}
        await self._recorder.record(AgentEventType.PERMISSION_REQUEST, payload)
        return request_id

    async def wait_for_answer(self, request_id: str) -> GivenAnswer:
        """Wait for the answer."""
        waiting = self._open.get(request_id)
        if waiting is None:
            return NO_ANSWER
        # Shielded: a connection that closes cancels this wait, not the request.
        answer = await asyncio.shield(waiting.answer)
        self._open.pop(request_id, None)
        return answer

    async def answer(self, request_id: str, option_id: str | None, text: str | None) -> bool:
        """Answer with one of the options or a text; return False when the question is closed.

        Raises:
            AgentError: there is no such option, or the text is not an answer.
        """
        waiting = self._open.get(request_id)
        if waiting is None or waiting.concluded:
            return False
        if text is not None:
            waiting.decision.check_text(text)
            answer = GivenAnswer(text=text)
        elif option_id in waiting.decision.options:
            answer = GivenAnswer(option=option_id)
        else:
            offered = ", ".join(waiting.decision.options) or "a text"
            raise AgentError(f"This request is answered with one of its options: {offered}.")
        await self._conclude(request_id, waiting, answer)
        return True

    async def cancel_all(self) -> None:
        """Cancel every open question."""
        for request_id, waiting in list(self._open.items()):
            await self._conclude(request_id, waiting, NO_ANSWER)
            self._open.pop(request_id, None)

    async def _conclude(self, request_id: str, waiting: _Open, answer: GivenAnswer) -> None:
        if waiting.concluded:
            return
        waiting.concluded = True
        outcome = answer.outcome
        if waiting.decision.secret:
            outcome.pop("text", None)
        payload = {"requestId": request_id, "outcome": outcome}
        try:
            # Recorded before the agent receives it, so before any effect of it.
            await self._recorder.record(AgentEventType.PERMISSION_OUTCOME, payload)
        finally:
            waiting.answer.set_result(answer)
