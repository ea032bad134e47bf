"""Questions of an agent that are no permission requests: `elicitation/create` in its form mode.

A form has fields. Each is asked as one question, one after the other: people answer with one of its
options, or in words where the field takes them.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from quarterdeck.agents.acp.shapes import Shape
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.port import AgentError
from quarterdeck.agents.session.desk import Answer, Asked

DECLINE = "decline"
"""Id of the option that answers none of the form; fields' own options have other ids."""

_YES, _NO = "yes", "no"
_WHOLE, _NUMBER, _SWITCH = "integer", "number", "boolean"


class _Titled(Shape):
    const: str
    title: str = ""


class _Items(Shape):
    enum: list[str] = []
    any_of: list[_Titled] = []


class _Field(Shape):
    type: str = "string"
    title: str = ""
    description: str = ""
    enum: list[str] = []
    one_of: list[_Titled] = []
    items: _Items = _Items()


class _Schema(Shape):
    properties: dict[str, _Field] = {}
    required: list[str] = []


class _Request(Shape):
    mode: str = "form"
    message: str = ""
    tool_call_id: str | None = None
    requested_schema: _Schema = _Schema()


@dataclass(frozen=True)
class Question:
    """One field of a form, as it is put to a person. `options` are names by their ids.

    `words_name` is the field that takes an answer in words, where there are options too.
    """

    name: str
    title: str
    kind: str
    tool_call_id: str | None = None
    options: dict[str, str] = field(default_factory=dict[str, str])
    words_name: str | None = None

    @property
    def in_words(self) -> bool:
        """Whether any text is an answer."""
        return not self.options or self.words_name is not None

    @property
    def asked(self) -> Asked:
        """The question for a desk."""
        return Asked(self._payload, (*self.options, DECLINE), self.check)

    @property
    def _payload(self) -> dict[str, Any]:
        """What is recorded of it, in the shape of a permission request."""
        call = {"toolCall": {"toolCallId": self.tool_call_id}} if self.tool_call_id else {}
        shown = [
            {"optionId": id, "name": name, "kind": "allow_once"}
            for id, name in self.options.items()
        ]
        declined = {"optionId": DECLINE, "name": "Do not answer", "kind": "reject_once"}
        asked = {"title": self.title, "acceptsText": self.in_words, **call}
        return {**asked, "options": [*shown, declined]}

    def content(self, answer: Answer) -> dict[str, Any]:
        """What the form gets for an answer."""
        if self.words_name and answer.text is not None:
            return {self.words_name: answer.text}
        given = answer.option or answer.text or ""
        return {self.name: _value(self.kind, given)} if self.name else {}

    def check(self, text: str) -> None:
        """Whether a text is an answer.

        Raises:
            AgentError: it is none.
        """
        if not self.in_words:
            offered = ", ".join(self.options.values())
            raise AgentError(f"This question is answered with one of its options: {offered}.")
        if self.kind in (_WHOLE, _NUMBER):
            number = _number(text)
            if number is None or (self.kind == _WHOLE and not isinstance(number, int)):
                raise AgentError("This question is answered with a number.")


def read_form(params: object) -> list[Question] | None:
    """The questions of a request, in order; None for what cannot be asked here."""
    try:
        request = _Request.model_validate(as_object(params))
    except ValidationError:
        return None
    if request.mode != "form":
        return None
    fields = request.requested_schema.properties
    if not fields:  # only a yes or no to the message
        agreed = {_YES: "Yes"}
        return [Question("", request.message, _SWITCH, request.tool_call_id, agreed)]
    return _questions(request, fields)


def _questions(request: _Request, fields: dict[str, _Field]) -> list[Question]:
    """One for each field, but for those that only take other words than a choice before them."""
    asked: list[Question] = []
    required = request.requested_schema.required
    for name, told in fields.items():
        before = asked[-1] if asked else None
        if before and before.options and name.startswith(before.name) and name not in required:
            asked[-1] = replace(before, words_name=name)
        else:
            title = told.description or told.title or name
            asked.append(Question(name, title, told.type, request.tool_call_id, _options(told)))
    if len(asked) == 1 and request.message:
        return [replace(asked[0], title=request.message)]
    return asked


def _options(told: _Field) -> dict[str, str]:
    if told.type == _SWITCH:
        return {_YES: "Yes", _NO: "No"}
    titled = [*told.one_of, *told.items.any_of]
    if titled:
        return {one.const: one.title or one.const for one in titled}
    return {value: value for value in (*told.enum, *told.items.enum)}


def _value(kind: str, given: str) -> Any:
    match kind:
        case "boolean":
            return given == _YES
        case "array":
            return [given]
        case "integer" | "number":
            return _number(given)
        case _:
            return given


def _number(text: str) -> int | float | None:
    for read in (int, float):
        try:
            number = read(text.strip())
        except ValueError:
            continue
        # What JSON has no word for is no answer.
        return number if isinstance(number, int) or math.isfinite(number) else None
    return None
