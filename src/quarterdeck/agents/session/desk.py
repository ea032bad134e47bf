"""What an agent asks a person: announced to the engine, answered by a person or called off."""

import asyncio
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from quarterdeck.agents.port import AgentError
from quarterdeck.agents.session.recorder import Recorder
from quarterdeck.wire.history import AgentEventType


def options_alone(_: str) -> None:
    """Takes no text."""
    raise AgentError("A text is no answer to this.")


@dataclass(frozen=True)
class Asked:
    """One thing to decide: what is told of it, and what answers it.

    `check_text` raises an `AgentError` for a text that is no answer. A secret text is not kept.
    """

    told: dict[str, Any]
    options: Collection[str]
    check_text: Callable[[str], None] = options_alone
    secret: bool = False


@dataclass(frozen=True)
class Answer:
    """What was chosen, or written. Neither: the question was called off."""

    option: str | None = None
    text: str | None = None

    @property
    def outcome(self) -> dict[str, Any]:
        """The answer as it is recorded, and as the Agent Client Protocol tells it."""
        if self.option is not None:
            return {"outcome": "selected", "optionId": self.option}
        if self.text is not None:
            return {"outcome": "answered", "text": self.text}
        return {"outcome": "cancelled"}


CALLED_OFF = Answer()


@dataclass
class _Open:
    asked: Asked
    concluded: bool = False
    answer: asyncio.Future[Answer] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Desk:
    """The questions and permission requests that await an answer, by request id."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[str, _Open] = {}

    @property
    def waits(self) -> bool:
        """Whether a person is asked something."""
        return bool(self._open)

    async def ask(self, asked: Asked) -> str:
        """Records what is asked and returns its id."""
        request_id = str(uuid.uuid4())
        self._open[request_id] = _Open(asked)
        payload = {"requestId": request_id, **asked.told}
        await self._recorder.record(AgentEventType.PERMISSION_REQUEST, payload)
        return request_id

    async def answered(self, request_id: str) -> Answer:
        """Waits for the answer."""
        waiting = self._open.get(request_id)
        if waiting is None:
            return CALLED_OFF
        # Shielded: a connection that closes cancels this wait, not the request.
        answer = await asyncio.shield(waiting.answer)
        self._open.pop(request_id, None)
        return answer

    async def answer(self, request_id: str, option_id: str | None, text: str | None) -> bool:
        """Answers with one of the options or in words; False when it is no longer awaited.

        Raises:
            AgentError: there is no such option, or a text is no answer.
        """
        waiting = self._open.get(request_id)
        if waiting is None or waiting.concluded:
            return False
        if text is not None:
            waiting.asked.check_text(text)
            answer = Answer(text=text)
        elif option_id in waiting.asked.options:
            answer = Answer(option=option_id)
        else:
            offered = ", ".join(waiting.asked.options) or "a text"
            raise AgentError(f"This request is answered with one of its options: {offered}.")
        await self._conclude(request_id, waiting, answer)
        return True

    async def cancel_all(self) -> None:
        """Calls off everything that is open."""
        for request_id, waiting in list(self._open.items()):
            await self._conclude(request_id, waiting, CALLED_OFF)
            self._open.pop(request_id, None)

    async def _conclude(self, request_id: str, waiting: _Open, answer: Answer) -> None:
        if waiting.concluded:
            return
        waiting.concluded = True
        outcome = answer.outcome
        if waiting.asked.secret:
            outcome.pop("text", None)
        payload = {"requestId": request_id, "outcome": outcome}
        try:
            # Recorded before the agent hears of it, so before anything it causes.
            await self._recorder.record(AgentEventType.PERMISSION_OUTCOME, payload)
        finally:
            waiting.answer.set_result(answer)
