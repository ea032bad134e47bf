"""Values of a form and their errors."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from quarterdeck.client.errors import ApiError, ClientError, LinkError, NotConnectedError
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.forms.kit.spec import Shown, Spec, UnsupportedFieldError, read
from quarterdeck.wire.base import NUL_ERROR

_GENERAL = "The request is not valid."
"""The service's message when its details contain the errors."""
_NAMED = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)(?:: (.*))?", re.DOTALL)
_NOT_A_PART = "; "


@dataclass
class Refusal:
    """Errors of fields, by path, and errors that concern none of them."""

    beside: dict[str, str] = field(default_factory=dict[str, str])
    general: str = ""


class InvalidValueError(Exception):
    """Raised by the saver of a form for errors found before the request."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__("The form is not valid.")
        self.refusal = refusal


def model_errors(error: ValidationError, specs: Iterable[Spec]) -> Refusal:
    """Return what a model refuses. Values are never repeated: they may be secret."""
    known = {spec.path: spec for spec in specs}
    refusal = Refusal()
    for one in error.errors(include_url=False, include_input=False):
        where = [str(part) for part in one["loc"]]
        if one["type"] == NUL_ERROR:
            where = [*where, str(one.get("ctx", {}).get("field", ""))]
        path = _owner(".".join(where), known)
        words = _plain(one, known.get(path or ""))
        _add(refusal, path, words if path else f"{'.'.join(where)}: {words}".removeprefix(": "))
    return refusal


def refusal_of(error: ClientError, paths: Iterable[str]) -> Refusal:
    """Assign the service's errors to the fields that its details name."""
    known = dict.fromkeys(paths)
    refusal = Refusal()
    text = one_line(str(error))
    if isinstance(error, ApiError):
        for path, words in _parts(error.details or ""):
            owner = _owner(path, known)
            if owner is not None:
                _add(refusal, owner, _said(text, words))
    if not refusal.beside:
        refusal.general = f"{text} {_what_now(error)}"
    return refusal


def _what_now(error: ClientError) -> str:
    details = one_line(error.details or "") if isinstance(error, ApiError) else ""
    match error:
        case NotConnectedError():
            return "Nothing typed is lost: save again when it is back."
        case LinkError():
            return "It may have been saved anyway; check before retrying."
        case _ if details:
            return f"({details}) {one_line(error.next_step)}"
        case _:
            return one_line(error.next_step)


def _parts(details: str) -> list[tuple[str, str]]:
    found = (_NAMED.fullmatch(part) for part in details.split(_NOT_A_PART))
    return [(one[1], one_line(one[2] or "")) for one in found if one]


def _said(text: str, words: str) -> str:
    if text == _GENERAL and words:
        return _sentence(words.removeprefix("Value error, "))
    if " " in words and words not in text:
        return f"{text} {_sentence(words)}"
    return text


def _owner(path: str, known: Mapping[str, object]) -> str | None:
    """Return the field that contains a path."""
    while path and path not in known:
        path = path.rpartition(".")[0]
    return path or None


def _add(refusal: Refusal, path: str | None, words: str) -> None:
    if path is None:
        refusal.general = f"{refusal.general} {words}".strip()
    else:
        refusal.beside.setdefault(path, words)


def _plain(error: Any, spec: Spec | None) -> str:
    """Return a readable message for an error of pydantic."""
    context: Mapping[str, Any] = error.get("ctx", {})
    match error["type"]:
        case "missing":
            return "Required."
        case "string_too_short" if context["min_length"] == 1:
            return "Required."
        case "string_too_short":
            return f"At least {context['min_length']} characters."
        case "string_too_long":
            return f"At most {context['max_length']} characters."
        case "too_short":
            return f"At least {context['min_length']} of them."
        case "too_long":
            return f"At most {context['max_length']} of them."
        case "greater_than_equal":
            return f"At least {context['ge']}."
        case "less_than_equal":
            return f"At most {context['le']}."
        case "string_pattern_mismatch" if spec is not None and spec.field.rule:
            return f"{spec.field.rule}."
        case "string_type" | "uuid_type" | "literal_error" | "enum":
            return "Choose one." if spec is not None and spec.options else "Required."
        case _:
            return _sentence(one_line(str(error["msg"])).removeprefix("Value error, "))


def _sentence(words: str) -> str:
    words = words.strip()
    if not words:
        return words
    return words[0].upper() + words[1:] + ("" if words[-1] in ".!?" else ".")


class FormValues:
    """State of a form without widgets."""

    def __init__(
        self, model: type[BaseModel], specs: Iterable[Spec], *, changes_only: bool
    ) -> None:
        """`changes_only`: a body contains only what was changed, for a PATCH."""
        self._model = model
        self._specs = {spec.path: spec for spec in specs}
        self._changes_only = changes_only
        self._original: dict[str, Any] = {}
        self._first: dict[str, Shown] = {}
        self._entries: dict[str, Shown] = {}
        self._kept: dict[str, Any] = {}

    def open(self, start: Mapping[str, Any]) -> None:
        """Set the initial values, by path; the rest are the model's own."""
        self._kept = dict(start)
        for path, spec in self._specs.items():
            self._original[path] = _at(start, path, spec.default)

    def original(self, path: str) -> Any:
        """Return the initial value of a field."""
        return self._original[path]

    def opened(self, path: str, entry: Shown) -> None:
        """Note how a control represents the initial value, which it may normalize."""
        self._first[path] = self._entries[path] = entry

    def hold(self, path: str, entry: Shown) -> None:
        """Note the current value of a control."""
        self._entries[path] = entry

    @property
    def changed(self) -> list[str]:
        """Paths of the fields that the user changed."""
        return [path for path, entry in self._entries.items() if entry != self._first[path]]

    def settle(self) -> None:
        """Note that the current values are saved."""
        for path in self.changed:
            self._original[path] = read(self._specs[path], self._entries[path])
            self._first[path] = self._entries[path]

    def value(self, path: str) -> Any:
        """Return the current value of a field.

        Raises:
            UnsupportedFieldError: not a value of its kind.
        """
        if self._entries[path] == self._first[path]:
            return self._original[path]
        return read(self._specs[path], self._entries[path])

    def body(self) -> BaseModel | Refusal:
        """Return the request's body, or its errors."""
        refusal = Refusal()
        values: dict[str, Any] = {}
        for path in self._paths_of_body():
            try:
                self._put(values, path, self.value(path))
            except UnsupportedFieldError as error:
                refusal.beside[path] = str(error)
        if refusal.beside:
            return refusal
        try:
            return self._model.model_validate(values)
        except ValidationError as error:
            return model_errors(error, self._specs.values())

    def _paths_of_body(self) -> list[str]:
        changed = self.changed
        if self._changes_only:
            touched = {path.partition(".")[0] for path in changed}
            return [
                path
                for path in self._specs
                if path in changed or ("." in path and path.partition(".")[0] in touched)
            ]
        return [
            path
            for path, spec in self._specs.items()
            if spec.required or path in changed or self._original[path] != spec.default
        ]

    def _put(self, values: dict[str, Any], path: str, value: Any) -> None:
        first, _, rest = path.partition(".")
        if not rest:
            if value is None and not self._specs[path].optional:
                return  # the model reports it as missing
            values[first] = value
            return
        inner = values.setdefault(first, dict(_as_mapping(self._kept.get(first))))
        inner[rest] = value


def _at(values: Mapping[str, Any], path: str, otherwise: Any) -> Any:
    if path in values:
        return values[path]
    first, _, rest = path.partition(".")
    if rest and first in values:
        return _at(_as_mapping(values[first]), rest, otherwise)
    return otherwise


def _as_mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return value or {}
