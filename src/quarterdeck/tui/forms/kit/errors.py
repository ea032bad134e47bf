"""What is wrong, and with which field: by the model itself, and by the service."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from quarterdeck.client.errors import ApiError, ClientError, LinkError, NotConnected
from quarterdeck.tui.forms.kit.spec import Spec
from quarterdeck.tui.text import one_line
from quarterdeck.wire.base import NUL_ERROR

_GENERAL = "The request is not valid."
"""What the service says when its details tell what is wrong."""
_NAMED = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)(?:: (.*))?", re.DOTALL)
_NOT_A_PART = "; "


@dataclass
class Refusal:
    """What is said beside fields, by their paths, and what is about none of them."""

    beside: dict[str, str] = field(default_factory=dict[str, str])
    general: str = ""


class Refused(Exception):
    """Raised by who saves a form: what is wrong was found before anybody was asked."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__("The form is not valid.")
        self.refusal = refusal


def model_errors(error: ValidationError, specs: Iterable[Spec]) -> Refusal:
    """What a model refuses. Values are never repeated: they may be secret."""
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
    """Puts what the service refused beside the fields that its details name."""
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
        case NotConnected():
            return "Nothing typed is lost: save again when it is back."
        case LinkError():
            return "It may have been saved all the same: look before you save again."
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
    """The field that a path lies in."""
    while path and path not in known:
        path = path.rpartition(".")[0]
    return path or None


def _add(refusal: Refusal, path: str | None, words: str) -> None:
    if path is None:
        refusal.general = f"{refusal.general} {words}".strip()
    else:
        refusal.beside.setdefault(path, words)


def _plain(error: Any, spec: Spec | None) -> str:
    """An error of pydantic in words for a person."""
    context: Mapping[str, Any] = error.get("ctx", {})
    match error["type"]:
        case "missing":
            return "It is needed."
        case "string_too_short" if context["min_length"] == 1:
            return "It is needed."
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
            return "Choose one." if spec is not None and spec.options else "It is needed."
        case _:
            return _sentence(one_line(str(error["msg"])).removeprefix("Value error, "))


def _sentence(words: str) -> str:
    words = words.strip()
    if not words:
        return words
    return words[0].upper() + words[1:] + ("" if words[-1] in ".!?" else ".")
