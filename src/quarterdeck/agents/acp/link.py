"""One running agent process with a protocol connection to it."""

from typing import Any, TypeVar

from pydantic import ValidationError

from quarterdeck.agents.acp.choices import Choices
from quarterdeck.agents.acp.permissions import read_request
from quarterdeck.agents.acp.questions import DECLINE, Question, read_form
from quarterdeck.agents.acp.sdk import Connection, RequestError
from quarterdeck.agents.acp.shapes import Shape
from quarterdeck.agents.acp.todos import Todos
from quarterdeck.agents.acp.usage import Usage
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.desk import CALLED_OFF, Desk
from quarterdeck.agents.session.lines import Message
from quarterdeck.agents.session.link import Link, LinkLostError, RefusedError
from quarterdeck.agents.session.process import AgentProcess
from quarterdeck.agents.session.recorder import Recorder
from quarterdeck.wire.history import AgentEventType

_Answer = TypeVar("_Answer", bound=Shape)

_STATE = frozenset(
    {
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "session_info_update",
        "usage_update",
    }
)
"""Updates that tell how the session is now, and so are news even while its history is told."""


class AgentLink(Link):
    """Requests to an agent, and its updates on their way to the recorder."""

    def __init__(
        self, preset: Preset, process: AgentProcess, recorder: Recorder, desk: Desk
    ) -> None:
        super().__init__(preset.name, process, recorder.activity)
        self._todos = Todos(preset.traps.todo_tool)
        self._recorder = recorder
        self._desk = desk
        self._connection = Connection(self._handle, self._transport)
        self.usage = Usage(preset.traps.usage_adds_up)
        self.last_words = ""
        """The last piece of a message that the agent sent."""
        self.replaying = False
        """While true, updates are history that the engine has already."""
        self.choices: Choices | None = None

    async def request(self, method: str, params: Message, shape: type[_Answer]) -> _Answer:
        """Sends a request and waits for its answer.

        Raises:
            LinkLostError: the agent is gone, or its answer makes no sense.
            RefusedError: the agent answered with an error.
        """
        try:
            answer: object = await self._connection.send_request(method, params)
            return shape.model_validate(answer or {})
        except RequestError as error:
            raise RefusedError(str(error), error.code, error.data) from error
        except ValidationError as error:
            self._reason = f"{self._name} answered in a form that the protocol does not know."
            self._lost = True
            raise LinkLostError(method) from error
        except ConnectionError as error:
            self._lost = True
            raise LinkLostError(method) from error

    async def notify(self, method: str, params: Message) -> None:
        """Sends a notification; a lost link is found out by whoever awaits an answer."""
        try:
            await self._connection.send_notification(method, params)
        except ConnectionError:
            return

    async def close(self, grace: float) -> None:
        """Ends the connection, the agent and everything it started. Safe to call twice."""
        self._closed = True
        await self._connection.close()
        await self._process.end(grace)

    async def quiet(self, seconds: float) -> None:
        """Returns when the agent said nothing for so long."""
        await self._activity.quiet(seconds)

    async def _sorted(self, message: Message) -> Message | None:
        match message.get("method"):
            case "session/update":
                await self._update(message.get("params"))
                return None
            case "session/request_permission":
                asked = read_request(message.get("params"))
                request_id = await self._desk.ask(asked) if asked else None
                return {**message, "params": {"requestId": request_id}}
            case "elicitation/create":
                return {**message, "params": await self._asked(message.get("params"))}
            case None if message.get("id") == self._transport.asked.get("session/prompt"):
                # Here, not when `prompt` wakes up: lines that follow are read before that.
                await self._desk.cancel_all()
                self._recorder.close_turn()
                return message
            case _:
                return message

    async def _update(self, params: object) -> None:
        update = as_object(as_object(params).get("update"))
        if not update or (self.replaying and update.get("sessionUpdate") not in _STATE):
            return
        if self.choices:
            self.choices.follow(update)
        if update.get("sessionUpdate") == "agent_message_chunk":
            self.last_words = str(as_object(update.get("content")).get("text") or "")
        await self._recorder.record(AgentEventType.SESSION_UPDATE, update)
        if plan := self._todos.plan(update):
            await self._recorder.record(AgentEventType.SESSION_UPDATE, plan)

    async def _asked(self, params: object) -> Message:
        """A form, its first question asked: here, so that it is recorded in its order."""
        form = read_form(params)
        if form is None or self.choices is None:
            return {"form": None}
        return {"form": form, "requestId": await self._desk.ask(form[0].asked)}

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Message | None:
        if is_notification:
            return None
        match method:
            case "session/request_permission":
                if params["requestId"] is None:
                    raise RequestError.invalid_params()
                answer = await self._desk.answered(params["requestId"])
                return {"outcome": answer.outcome}
            case "elicitation/create":
                if params["form"] is None:
                    return {"action": "decline"}
                return await self._filled(params["form"], params["requestId"])
            case _:
                raise RequestError.method_not_found(method)

    async def _filled(self, form: list[Question], request_id: str) -> Message:
        content: Message = {}
        for number, question in enumerate(form):
            asked = await self._desk.ask(question.asked) if number else request_id
            answer = await self._desk.answered(asked)
            if answer == CALLED_OFF:
                return {"action": "cancel"}
            if answer.option == DECLINE:
                return {"action": "decline"}
            content |= question.content(answer)
        return {"action": "accept", "content": content}
