"""Questions and permission requests of an agent.

Questions other than permission requests are `elicitation/create` in form mode. Each field of the
form is asked as one question, one after the other: people answer with one of its options, or with
text where the field accepts it.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from quarterdeck.agents.acp.shapes import AcpShape, PermissionRequest
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.port import AgentError
from quarterdeck.agents.session.permissions import Decision, GivenAnswer

DECLINE = "decline"
"""Id of the option that declines the whole form; options of fields have other ids."""

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


def read_request(params: object) -> Decision | None:
    """Return the decision that a request asks for; None when it has no options."""
    try:
        request = PermissionRequest.model_validate(params)
    except ValidationError:
        return None
    payload = {"toolCall": request.tool_call, "options": request.raw_options}
    return Decision(payload, sorted({option.option_id for option in request.options}))
