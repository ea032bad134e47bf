"""The connection to an agent of the Agent Client Protocol."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import ValidationError

from quarterdeck.agents.acp.options import OptionState, Usage
from quarterdeck.agents.acp.questions import DECLINE, FormQuestion, read_form, read_request
from quarterdeck.agents.acp.sdk import Connection, RequestError
from quarterdeck.agents.acp.shapes import AcpShape, Todos
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.permissions import NO_ANSWER, PermissionRequests
from quarterdeck.agents.session.process import (
    AgentProcess,
    LinkLostError,
    Message,
    ProcessLink,
    RefusedError,
)
from quarterdeck.agents.session.recorder import Recorder
from quarterdeck.wire.history import AgentEventType

_Answer = TypeVar("_Answer", bound=AcpShape)

_STATE = frozenset(
    {
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "session_info_update",
        "usage_update",
    }
)
"""Updates with the session's current state, so they count even while its history is replayed."""


class AgentLink(ProcessLink):
    """Sends requests to an agent, and passes its updates to the recorder."""

    def __init__(
        self,
        preset: Preset,
        process: AgentProcess,
        recorder: Recorder,
        requests: PermissionRequests,
    ) -> None:
        super().__init__(preset.name, process, recorder.activity)
        self._todos = Todos(preset.traps.todo_tool)
        self._recorder = recorder
        self._requests = requests
        self._connection = Connection(self._handle, self._transport)
        self.usage = Usage(preset.traps.usage_adds_up)
        self.last_message = ""
        """The last piece of a message that the agent sent."""
        self.replaying = False
        """Whether updates are history that the engine already has."""
        self.choices: OptionState | None = None

    async def request(self, method: str, params: Message, shape: type[_Answer]) -> _Answer:
        """Send a request and wait for its answer.

        Raises:
            LinkLostError: the agent has ended, or its answer is invalid.
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
        """Send a notification; the next request reports a lost link."""
        try:
            await self._connection.send_notification(method, params)
        except ConnectionError:
            return

    async def close(self, grace: float) -> None:
        """End the connection, the agent and everything it started. Safe to call twice."""
        self._closed = True
        await self._connection.close()
        await self._process.end(grace)

    async def quiet(self, seconds: float) -> None:
        """Wait until the agent has been silent for this long."""
        await self._activity.quiet(seconds)

    async def _dispatch(self, message: Message) -> Message | None:
        match message.get("method"):
            case "session/update":
                await self._update(message.get("params"))
                return None
            case "session/request_permission":
                decision = read_request(message.get("params"))
                request_id = await self._requests.ask(decision) if decision else None
                return {**message, "params": {"requestId": request_id}}
            case "elicitation/create":
                return {**message, "params": await self._ask_form(message.get("params"))}
            case None if message.get("id") == self._transport.request_ids.get("session/prompt"):
                # Here, not when `prompt` wakes up: lines that follow are read before that.
                await self._requests.cancel_all()
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
            self.last_message = str(as_object(update.get("content")).get("text") or "")
        await self._recorder.record(AgentEventType.SESSION_UPDATE, update)
        if plan := self._todos.plan(update):
            await self._recorder.record(AgentEventType.SESSION_UPDATE, plan)

    async def _ask_form(self, params: object) -> Message:
        """Read a form and ask its first question: here, so that it is recorded in order."""
        form = read_form(params)
        if form is None or self.choices is None:
            return {"form": None}
        return {"form": form, "requestId": await self._requests.ask(form[0].decision)}

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Message | None:
        if is_notification:
            return None
        match method:
            case "session/request_permission":
                if params["requestId"] is None:
                    raise RequestError.invalid_params()
                answer = await self._requests.wait_for_answer(params["requestId"])
                return {"outcome": answer.outcome}
            case "elicitation/create":
                if params["form"] is None:
                    return {"action": "decline"}
                return await self._filled(params["form"], params["requestId"])
            case _:
                raise RequestError.method_not_found(method)

    async def _filled(self, form: list[FormQuestion], request_id: str) -> Message:
        content: Message = {}
        for number, question in enumerate(form):
            pending_id = await self._requests.ask(question.decision) if number else request_id
            answer = await self._requests.wait_for_answer(pending_id)
            if answer == NO_ANSWER:
                return {"action": "cancel"}
            if answer.option == DECLINE:
                return {"action": "decline"}
            content |= question.content(answer)
        return {"action": "accept", "content": content}


AUTH_REQUIRED = -32000

_STATUS = re.compile(r"(?i)\b(?:status(?: code)?|http|error|code|rejected)\W{0,3}([45]\d\d)\b")
_STATUS_NAMES = ("status", "statusCode", "httpStatus", "code", "errorCode")


def describe_error(preset: Preset, error: RefusedError) -> str:
    """Return a sentence on the error, with advice where possible."""
    head, detail = _ErrorText.read(str(error)), _ErrorText.read(_detail(error.data))
    text = head.text
    text += f" ({detail.text})" if detail.text and detail.text not in text else ""
    if "exitCode" in as_object(error.data):  # a failed command, so no HTTP status
        return _sentence(preset, text, "")
    status = head.status or detail.status or _http_status(error, text)
    return _sentence(preset, text, _advice(preset, error.code, status))


def describe_text_error(preset: Preset, last_message: str) -> str | None:
    """Return the same for an agent that reports errors in its last message; None: no error."""
    prefix = preset.traps.error_prefix
    if prefix is None or not last_message.startswith(prefix):
        return None
    reported = _ErrorText.read(last_message.removeprefix(prefix).strip())
    status = reported.status or _http_status(RefusedError(reported.text), reported.text)
    return _sentence(preset, reported.text, _advice(preset, None, status))


@dataclass(frozen=True)
class _ErrorText:
    """The text of an agent's error, with the status where it was given in JSON."""

    text: str
    status: int | None = None

    @classmethod
    def read(cls, text: str) -> "_ErrorText":
        """Read an error; some agents pass on the JSON of the model's service unchanged."""
        before, brace, rest = text.partition("{")
        try:
            payload: object = json.loads(brace + rest)
        except (ValueError, RecursionError):
            return cls(text)
        message = _detail(payload)
        if not message:
            return cls(text)
        inner = cls.read(message)  # Google wraps one answer in another
        fields = as_object(payload)
        status = inner.status or _status_in(as_object(fields.get("error"))) or _status_in(fields)
        return cls(before + inner.text, status)


def _sentence(preset: Preset, text: str, advice: str) -> str:
    end = "" if text.endswith(".") else "."
    return f"{preset.name} reported an error: {text}{end}" + (f" {advice}" if advice else "")


def _advice(preset: Preset, code: object, status: int | None) -> str:
    keys = preset.key_names
    if code == AUTH_REQUIRED:
        return f"Set the variable {keys}, or check the key in it." if keys else ""
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"Check its key ({keys})." if keys else "Check its key."
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "The model's rate limit or quota is used up: send the message again later."
    if status is not None and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "The fault is with the model's service: send the message again."
    return ""


def _http_status(error: RefusedError, text: str) -> int | None:
    """Return the status that the model's service answered with; agents report it in many places."""
    status = _status_in({"code": error.code}) or _status_in(as_object(error.data))
    match = None if status else _STATUS.search(text)
    return int(match[1]) if match else status


def _status_in(fields: Mapping[str, object]) -> int | None:
    values = (fields.get(name) for name in _STATUS_NAMES)
    return next((value for value in values if isinstance(value, int) and 400 <= value < 600), None)


def _detail(data: object) -> str:
    if isinstance(data, str):
        return data
    fields = as_object(data)
    texts = (fields.get(name) for name in ("details", "message", "error"))
    inner = (fields.get(name) for name in ("error", "data"))
    detail = next((text for text in texts if isinstance(text, str) and text), "")
    return detail or next((text for value in inner if (text := _inner(value))), "")


def _inner(data: object) -> str:
    return _detail(data) if as_object(data) else ""
