"""Permission requests of an agent: announced to the engine, answered by a person or by a cancel."""

import asyncio
import uuid
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from quarterdeck.agents.acp.recorder import Recorder
from quarterdeck.agents.acp.shapes import PermissionRequest
from quarterdeck.agents.port import AgentError
from quarterdeck.wire.history import AgentEventType

CANCELLED: dict[str, Any] = {"outcome": "cancelled"}


@dataclass
class _Open:
    options: set[str]
    concluded: bool = False
    outcome: asyncio.Future[dict[str, Any]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class PermissionDesk:
    """The permission requests that await an answer, by request id."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[str, _Open] = {}

    async def announce(self, params: object) -> str | None:
        """Records a request and returns its id; None for one that no one could answer."""
        try:
            request = PermissionRequest.model_validate(params)
        except ValidationError:
            return None
        request_id = str(uuid.uuid4())
        self._open[request_id] = _Open({option.option_id for option in request.options})
        payload = {
            "requestId": request_id,
            "toolCall": request.tool_call,
            "options": request.raw_options,
        }
        await self._recorder.record(AgentEventType.PERMISSION_REQUEST, payload)
        return request_id

    async def outcome(self, request_id: str) -> dict[str, Any]:
        """Waits for the answer, as the protocol's `outcome` object."""
        waiting = self._open.get(request_id)
        if waiting is None:
            return CANCELLED
        # Shielded: a connection that closes cancels this wait, not the request.
        outcome = await asyncio.shield(waiting.outcome)
        self._open.pop(request_id, None)
        return outcome

    async def answer(self, request_id: str, option_id: str | None) -> bool:
        """Answers with one of the options; False when the request is no longer awaited.

        Raises:
            AgentError: the request has no such option.
        """
        waiting = self._open.get(request_id)
        if waiting is None or waiting.concluded:
            return False
        if option_id not in waiting.options:
            offered = ", ".join(sorted(waiting.options))
            raise AgentError(f"This request is answered with one of its options: {offered}.")
        await self._conclude(request_id, waiting, {"outcome": "selected", "optionId": option_id})
        return True

    async def cancel_all(self) -> None:
        """Answers everything that is open with `cancelled`."""
        for request_id, waiting in list(self._open.items()):
            await self._conclude(request_id, waiting, CANCELLED)
            self._open.pop(request_id, None)

    async def _conclude(self, request_id: str, waiting: _Open, outcome: dict[str, Any]) -> None:
        if waiting.concluded:
            return
        waiting.concluded = True
        payload = {"requestId": request_id, "outcome": outcome}
        try:
            # The outcome is recorded before the agent hears of it, so before anything it causes.
            await self._recorder.record(AgentEventType.PERMISSION_OUTCOME, payload)
        finally:
            waiting.outcome.set_result(outcome)
