"""One running agent process with a protocol connection to it."""

from typing import Any, TypeVar

from pydantic import ValidationError

from quarterdeck.agents.acp.choices import Choices
from quarterdeck.agents.acp.permissions import PermissionDesk
from quarterdeck.agents.acp.process import AgentProcess
from quarterdeck.agents.acp.recorder import Recorder
from quarterdeck.agents.acp.sdk import Connection, RequestError
from quarterdeck.agents.acp.shapes import Shape, as_object
from quarterdeck.agents.acp.transport import LINE_LIMIT, LineTransport, Message
from quarterdeck.wire.history import AgentEventType

_Answer = TypeVar("_Answer", bound=Shape)


class LinkLostError(Exception):
    """The agent ended, or stopped speaking the protocol."""


class AgentLink:
    """Requests to an agent, and its updates on their way to the recorder."""

    def __init__(
        self, name: str, process: AgentProcess, recorder: Recorder, desk: PermissionDesk
    ) -> None:
        self._name = name
        self._process = process
        self._recorder = recorder
        self._desk = desk
        self._transport = LineTransport(process.stdout, process.stdin, self._inbound)
        self._connection = Connection(self._handle, self._transport)
        self._closed = False
        self._lost: Exception | None = None
        self.replaying = False
        """While true, updates are history that the engine has already."""
        self.choices: Choices | None = None
        self.sink_fault: Exception | None = None
        """What the engine's sink raised; nothing more is read from the agent then."""

    @property
    def usable(self) -> bool:
        """Whether a prompt can be sent."""
        return not self._closed and self._process.running and not self._lost

    async def request(self, method: str, params: Message, shape: type[_Answer]) -> _Answer:
        """Sends a request and waits for its answer.

        Raises:
            LinkLostError: the agent is gone, or its answer makes no sense.
            RequestError: the agent answered with an error.
        """
        try:
            answer: object = await self._connection.send_request(method, params)
            return shape.model_validate(answer or {})
        except (ConnectionError, ValidationError) as error:
            self._lost = error
            raise LinkLostError(method) from error

    async def notify(self, method: str, params: Message) -> None:
        """Sends a notification; a lost link is found out by whoever awaits an answer."""
        try:
            await self._connection.send_notification(method, params)
        except ConnectionError:
            return

    async def obituary(self) -> str:
        """A sentence on why the link was lost."""
        if isinstance(self._lost, ValidationError):
            return f"{self._name} answered in a form that the protocol does not know."
        if self._transport.overflowed:
            return f"{self._name} printed a line of more than {LINE_LIMIT >> 20} MB."
        return await self._process.obituary(self._name) + self._noise()

    async def close(self, grace: float) -> None:
        """Ends the connection, the agent and everything it started. Safe to call twice."""
        self._closed = True
        await self._connection.close()
        await self._process.end(grace)

    def _noise(self) -> str:
        lines = "\n".join(self._transport.noise)
        return f" It printed what is not protocol: {lines}" if lines else ""

    async def _inbound(self, message: Message) -> Message | None:
        try:
            return await self._sorted(message)
        except Exception as error:
            self.sink_fault = error
            raise

    async def _sorted(self, message: Message) -> Message | None:
        match message.get("method"):
            case "session/update":
                await self._update(message.get("params"))
                return None
            case "session/request_permission":
                request_id = await self._desk.announce(message.get("params"))
                return {**message, "params": {"requestId": request_id}}
            case None if message.get("id") == self._transport.asked.get("session/prompt"):
                # Here, not when `prompt` wakes up: lines that follow are read before that.
                await self._desk.cancel_all()
                self._recorder.close_turn()
                return message
            case _:
                return message

    async def _update(self, params: object) -> None:
        update = as_object(as_object(params).get("update"))
        if self.replaying or not update:
            return
        if self.choices:
            self.choices.follow(update)
        await self._recorder.record(AgentEventType.SESSION_UPDATE, update)

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Message | None:
        if is_notification:
            return None
        if method != "session/request_permission":
            raise RequestError.method_not_found(method)
        if params["requestId"] is None:
            raise RequestError.invalid_params()
        return {"outcome": await self._desk.outcome(params["requestId"])}
