"""The connection to an agent of the Agent Client Protocol, and the agent's questions.

Questions other than permission requests are `elicitation/create` in form mode. Each field of the
form is asked as one question, one after the other: people answer with one of its options, or with
text where the field accepts it.
"""

import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import ValidationError

from quarterdeck.agents.acp.options import OptionState, Usage
from quarterdeck.agents.acp.sdk import Connection, RequestError
from quarterdeck.agents.acp.shapes import AcpShape, PermissionRequest, Todos, is_update
from quarterdeck.agents.acp.terminal_output import ToolCallOutput
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.output import MOST_CALLS
from quarterdeck.agents.port import AgentError, StopReason
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.permissions import (
    NO_ANSWER,
    TOO_MANY,
    Decision,
    GivenAnswer,
    PermissionRequests,
)
from quarterdeck.agents.session.policy import propose
from quarterdeck.agents.session.process import (
    AgentProcess,
    LinkLostError,
    Message,
    ProcessLink,
    RefusedError,
)
from quarterdeck.agents.session.recorder import Recorder
from quarterdeck.wire.history import STATE_UPDATES, AgentEventType

Update = dict[str, Any]

_FIELDS = frozenset({"title", "kind", "rawInput", "locations"})
_ENDED = frozenset({"completed", "failed"})


class OpenCalls:
    """What an agent reported of its tool calls that have not ended.

    A permission request says of its call only what changed, as an update does: some send its id alone.
    """

    def __init__(self) -> None:
        self._calls: dict[str, Update] = {}

    def take(self, update: Update) -> None:
        """Take an update of the session."""
        id = update.get("toolCallId")
        if not isinstance(id, str):
            return
        if update.get("status") in _ENDED:
            self._calls.pop(id, None)
            return
        told = {name: update[name] for name in _FIELDS if update.get(name) is not None}
        self._calls[id] = {**self._calls.get(id, {}), **told}
        if len(self._calls) > MOST_CALLS:
            del self._calls[next(iter(self._calls))]

    def completed(self, call: Update) -> Update:
        """Return the call of a request with what was reported before."""
        told = {name: value for name, value in call.items() if value is not None}
        return {**self._calls.get(str(call.get("toolCallId")), {}), **told}

    def clear(self) -> None:
        """Forget all calls: the turn has ended."""
        self._calls.clear()


DECLINE = "decline"
"""Id of the option that declines the whole form; options of fields have other ids."""

log = logging.getLogger(__name__)

_YES, _NO = "yes", "no"
_WHOLE, _NUMBER, _SWITCH = "integer", "number", "boolean"


class _Titled(AcpShape):
    const: str
    title: str = ""


class _Items(AcpShape):
    enum: list[str] = []
    any_of: list[_Titled] = []


class _Field(AcpShape):
    type: str = "string"
    title: str = ""
    description: str = ""
    enum: list[str] = []
    one_of: list[_Titled] = []
    items: _Items = _Items()


class _Schema(AcpShape):
    properties: dict[str, _Field] = {}
    required: list[str] = []


class _Request(AcpShape):
    mode: str = "form"
    message: str = ""
    tool_call_id: str | None = None
    requested_schema: _Schema = _Schema()


@dataclass(frozen=True)
class FormQuestion:
    """One field of a form, as a question to a person. `options` are names by their ids.

    `text_field` is the field for a free answer next to the options.
    """

    name: str
    title: str
    kind: str
    tool_call_id: str | None = None
    options: dict[str, str] = field(default_factory=dict[str, str])
    text_field: str | None = None

    @property
    def accepts_text(self) -> bool:
        """Whether a text is accepted as an answer."""
        return not self.options or self.text_field is not None

    @property
    def decision(self) -> Decision:
        """The question for `PermissionRequests`."""
        return Decision(self._payload, (*self.options, DECLINE), self.check)

    @property
    def _payload(self) -> dict[str, Any]:
        """The recorded payload, in the shape of a permission request."""
        call = {"toolCall": {"toolCallId": self.tool_call_id}} if self.tool_call_id else {}
        options = [
            {"optionId": id, "name": name, "kind": "allow_once"}
            for id, name in self.options.items()
        ]
        decline = {"optionId": DECLINE, "name": "Do not answer", "kind": "reject_once"}
        question = {"title": self.title, "acceptsText": self.accepts_text, **call}
        return {**question, "options": [*options, decline]}

    def content(self, answer: GivenAnswer) -> dict[str, Any]:
        """Return the form's content for an answer."""
        if self.text_field and answer.text is not None:
            return {self.text_field: answer.text}
        value = answer.option or answer.text or ""
        return {self.name: _value(self.kind, value)} if self.name else {}

    def check(self, text: str) -> None:
        """Check that a text is an answer.

        Raises:
            AgentError: it is not.
        """
        if not self.accepts_text:
            offered = ", ".join(self.options.values())
            raise AgentError(f"This question is answered with one of its options: {offered}.")
        if self.kind in (_WHOLE, _NUMBER):
            number = _number(text)
            if number is None or (self.kind == _WHOLE and not isinstance(number, int)):
                raise AgentError("This question is answered with a number.")


def read_form(params: object) -> list[FormQuestion] | None:
    """Return the questions of a request, in order; None when it cannot be asked here."""
    try:
        request = _Request.model_validate(as_object(params))
    except ValidationError:
        return None
    if request.mode != "form":
        return None
    fields = request.requested_schema.properties
    if not fields:  # only yes or no to the message
        agreed = {_YES: "Yes"}
        return [FormQuestion("", request.message, _SWITCH, request.tool_call_id, agreed)]
    return _questions(request, fields)


def _questions(request: _Request, fields: dict[str, _Field]) -> list[FormQuestion]:
    """Return a question for each field, except those for a free answer to another one."""
    questions: list[FormQuestion] = []
    required = request.requested_schema.required
    for name, form_field in fields.items():
        previous = questions[-1] if questions else None
        if (
            previous
            and previous.options
            and name.startswith(previous.name)
            and name not in required
        ):
            questions[-1] = replace(previous, text_field=name)
        else:
            title = form_field.description or form_field.title or name
            questions.append(
                FormQuestion(
                    name, title, form_field.type, request.tool_call_id, _options(form_field)
                )
            )
    if len(questions) == 1 and request.message:
        return [replace(questions[0], title=request.message)]
    return questions


def _options(form_field: _Field) -> dict[str, str]:
    if form_field.type == _SWITCH:
        return {_YES: "Yes", _NO: "No"}
    titled = [*form_field.one_of, *form_field.items.any_of]
    if titled:
        return {choice.const: choice.title or choice.const for choice in titled}
    return {value: value for value in (*form_field.enum, *form_field.items.enum)}


def _value(kind: str, text: str) -> Any:
    match kind:
        case "boolean":
            return text == _YES
        case "array":
            return [text]
        case "integer" | "number":
            return _number(text)
        case _:
            return text


def _number(text: str) -> int | float | None:
    for convert in (int, float):
        try:
            number = convert(text.strip())
        except ValueError:
            continue
        # JSON has no NaN or infinity.
        return number if isinstance(number, int) or math.isfinite(number) else None
    return None


def read_request(params: object, calls: OpenCalls) -> Decision | None:
    """Return the decision that a request asks for; None when it has no options."""
    try:
        request = PermissionRequest.model_validate(params)
    except ValidationError:
        return None
    call = calls.completed(request.tool_call)
    payload = {"toolCall": call, "options": request.raw_options}
    options = sorted({option.option_id for option in request.options})
    return Decision(payload, options, call=propose(call, request.raw_options))


_Answer = TypeVar("_Answer", bound=AcpShape)


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
        self._own_turn_end = preset.traps.own_turn_end
        self._recorder = recorder
        self._requests = requests
        self._outputs = ToolCallOutput(self._record)
        self._calls = OpenCalls()
        self._connection = Connection(self._handle, self._transport)
        self.usage = Usage(preset.traps.usage_adds_up)
        self.last_message = ""
        """The last piece of a message that the agent sent."""
        self.worked = False
        """Whether the agent sent anything but its state since this was last cleared."""
        self.reported_end = False
        """Whether the agent reported the end of a turn of its own, and did nothing since."""
        self.replaying = False
        """Whether updates are history that the engine already has."""
        self.choices: OptionState | None = None
        self._misspoke = False

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
        await self._outputs.stop()
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
                decision = read_request(message.get("params"), self._calls)
                request_id = await self._requests.ask(decision) if decision else None
                return {**message, "params": {"requestId": request_id}}
            case "elicitation/create":
                return {**message, "params": await self._ask_form(message.get("params"))}
            case None if message.get("id") == self._transport.request_ids.get("session/prompt"):
                # Here, not when `prompt` wakes up: lines that follow are read before that.
                if not self._still_asks(message):
                    await self._outputs.close_calls()
                    await self._requests.cancel_all()
                    self._calls.clear()
                    self._recorder.close_turn()
                return message
            case _:
                return message

    async def _update(self, params: object) -> None:
        update = as_object(as_object(params).get("update"))
        if not is_update(update):
            if not self._misspoke:
                log.warning("%s sent an update that does not follow the protocol", self._name)
            self._misspoke = True
            return
        if self.replaying and update.get("sessionUpdate") not in STATE_UPDATES:
            return
        if self.choices:
            self.choices.follow(update)
        self._calls.take(update)
        is_state = update.get("sessionUpdate") in STATE_UPDATES
        self.worked = self.worked or not is_state
        self.reported_end = is_state and (self.reported_end or self._ends_own_turn(update))
        if update.get("sessionUpdate") == "agent_message_chunk":
            self.last_message = str(as_object(update.get("content")).get("text") or "")
        if plan := self._todos.plan(update):
            await self._record(update)
            return await self._record(plan)
        if shown := await self._outputs.take(update):
            return await self._record(shown)
        self._activity.touch()

    async def _record(self, update: Message) -> None:
        await self._recorder.record(AgentEventType.SESSION_UPDATE, update)

    def _still_asks(self, message: Message) -> bool:
        """Return whether the agent answered the prompt while a helper of it waits for a person."""
        reason = as_object(message.get("result")).get("stopReason")
        return reason == StopReason.END_TURN and self._requests.waits

    def _ends_own_turn(self, update: Message) -> bool:
        return self._own_turn_end is not None and self._own_turn_end in as_object(
            update.get("_meta")
        )

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
                if answer.refused:
                    raise RequestError(_REFUSED, TOO_MANY)
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


_REFUSED = -32600
"""JSON-RPC's code for a request that is not valid."""
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
