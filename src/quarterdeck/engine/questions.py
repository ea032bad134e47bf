"""Questions that the service asks a person in a chat."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.engine import AskPerson
from quarterdeck.wire.history import AgentEvent, AgentEventType

_CANCELLED = {"outcome": "cancelled"}


class Questions:
    """The open questions of one chat. `hear` receives their events."""

    def __init__(self, hear: Callable[[AgentEvent], Awaitable[None]]) -> None:
        self._hear = hear
        self._open: dict[str, tuple[list[str], asyncio.Future[str | None]]] = {}

    @property
    def waiting(self) -> bool:
        """Whether a question is open."""
        return bool(self._open)

    async def ask(self, call: AskPerson) -> str | None:
        """Ask and wait; return the chosen option, None when the question was cancelled."""
        request = str(uuid4())
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._open[request] = ([option.option_id for option in call.options], answer)
        options = [option.model_dump(by_alias=True) for option in call.options]
        try:
            await self._report(
                AgentEventType.PERMISSION_REQUEST,
                {"requestId": request, "title": call.title, "options": options},
            )
            return await answer
        finally:
            await self._close(request, None)

    async def answer(self, request: str, option: str | None) -> bool:
        """Answer a question; False when none is open under this id.

        Raises:
            EngineRefusedError: INVALID_REQUEST: the option is unknown; the question stays open.
        """
        if request not in self._open:
            return False
        offered, _ = self._open[request]
        if option not in offered:
            raise EngineRefusedError.invalid(
                "The question does not have this answer.",
                f"Options: {', '.join(offered)}.",
            )
        await self._close(request, option)
        return True

    async def cancel_all(self) -> None:
        """Cancel every open question."""
        for request in list(self._open):
            await self._close(request, None)

    async def _close(self, request: str, option: str | None) -> None:
        if (question := self._open.pop(request, None)) is None:
            return
        _, answer = question
        chosen = {"outcome": "selected", "optionId": option} if option else _CANCELLED
        try:
            payload = {"requestId": request, "outcome": chosen}
            await self._report(AgentEventType.PERMISSION_OUTCOME, payload)
        finally:
            if not answer.done():
                answer.set_result(option)

    async def _report(self, kind: AgentEventType, payload: dict[str, Any]) -> None:
        await self._hear(AgentEvent(timestamp=utc_now(), type=kind, payload=payload))
