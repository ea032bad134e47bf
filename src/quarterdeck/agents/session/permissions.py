"""Permission requests that wait for an answer."""

import asyncio
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from quarterdeck.agents.port import AgentError
from quarterdeck.agents.session.policy import Policy, PolicyAnswer, ProposedCall
from quarterdeck.agents.session.recorder import Recorder
from quarterdeck.wire.history import AgentEventType

MOST_OPEN = 100
"""Questions that may wait for a person at once; further ones are refused."""
TOO_MANY = f"{MOST_OPEN} questions wait for an answer already: ask again when they are answered."


def reject_text(_: str) -> None:
    """Refuse any text."""
    raise AgentError("This cannot be answered with text.")


@dataclass(frozen=True)
class Decision:
    """A question to decide: its recorded payload and its answers.

    `check_text` raises an `AgentError` for a text that is not an answer. A secret text is not
    stored. Without a `call` only a person answers, whatever the policy.
    """

    payload: dict[str, Any]
    options: Collection[str]
    check_text: Callable[[str], None] = reject_text
    secret: bool = False
    call: ProposedCall | None = None


@dataclass(frozen=True)
class GivenAnswer:
    """The chosen option, or the written text. Neither: the question was cancelled."""

    option: str | None = None
    text: str | None = None
    refused: bool = field(default=False, compare=False)
    """Whether no person was asked: too many questions wait."""

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
    """The questions and permission requests that await an answer, by request id.

    What the policy answers is recorded in one event, and no person is asked.
    """

    def __init__(self, recorder: Recorder, policy: Policy = lambda _: None) -> None:
        self._recorder = recorder
        self._policy = policy
        self._open: dict[str, _Open] = {}
        self._refusing = False
        """Whether the last question was refused, which is said once."""

    @property
    def waits(self) -> bool:
        """Whether a person is asked."""
        return any(not waiting.concluded for waiting in self._open.values())

    async def ask(self, decision: Decision) -> str:
        """Record a question, or the policy's answer to it, and return its id."""
        request_id = str(uuid.uuid4())
        waiting = self._open[request_id] = _Open(decision)
        if (answer := self._judge(waiting)) is not None:
            waiting.concluded = True
            await self._record_policy(request_id, answer)
            waiting.answer.set_result(GivenAnswer(answer.option))
            return request_id
        was_refusing, self._refusing = self._refusing, self._too_many()
        if self._refusing:
            waiting.concluded = True
            waiting.answer.set_result(GivenAnswer(refused=True))
            if not was_refusing:
                text = f"More than {MOST_OPEN} questions at once: further ones were refused."
                await self._recorder.record(AgentEventType.NOTICE, {"text": text})
            return request_id
        payload = {"requestId": request_id, **decision.payload}
        await self._recorder.record(AgentEventType.PERMISSION_REQUEST, payload)
        return request_id

    def _too_many(self) -> bool:
        return sum(not waiting.concluded for waiting in self._open.values()) > MOST_OPEN

    async def review(self) -> None:
        """Answer open questions that the policy, which has changed, decides now."""
        for request_id, waiting in list(self._open.items()):
            if not waiting.concluded and (answer := self._judge(waiting)) is not None:
                await self._conclude(request_id, waiting, GivenAnswer(answer.option), answer)

    def _judge(self, waiting: _Open) -> PolicyAnswer | None:
        call = waiting.decision.call
        return None if call is None else self._policy(call)

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

    async def _conclude(
        self,
        request_id: str,
        waiting: _Open,
        answer: GivenAnswer,
        by_policy: PolicyAnswer | None = None,
    ) -> None:
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
            if by_policy is not None:
                await self._record_policy(request_id, by_policy)
        finally:
            waiting.answer.set_result(answer)

    async def _record_policy(self, request_id: str, answer: PolicyAnswer) -> None:
        payload = {"requestId": request_id, **answer.payload}
        await self._recorder.record(AgentEventType.POLICY_ANSWER, payload)
