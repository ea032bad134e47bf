"""What a person is told of an error that an agent answered with."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from quarterdeck.agents.objects import as_object
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.link import RefusedError

AUTH_REQUIRED = -32000

_STATUS = re.compile(r"(?i)\b(?:status(?: code)?|http|error|code|rejected)\W{0,3}([45]\d\d)\b")
_STATUS_NAMES = ("status", "statusCode", "httpStatus", "code", "errorCode")


def told(preset: Preset, error: RefusedError) -> str:
    """A sentence on the error, and what can be done where that is known."""
    head, detail = _Words.read(str(error)), _Words.read(_detail(error.data))
    words = head.text
    words += f" ({detail.text})" if detail.text and detail.text not in words else ""
    status = head.status or detail.status or _http_status(error, words)
    return _sentence(preset, words, _advice(preset, error.code, status))


def told_as_text(preset: Preset, last_words: str) -> str | None:
    """The same for an agent that tells an error as the last words of a turn; None: it is none."""
    prefix = preset.traps.error_prefix
    if prefix is None or not last_words.startswith(prefix):
        return None
    told = _Words.read(last_words.removeprefix(prefix).strip())
    status = told.status or _http_status(RefusedError(told.text), told.text)
    return _sentence(preset, told.text, _advice(preset, None, status))


@dataclass(frozen=True)
class _Words:
    """What an agent said of an error, for people; the status where it was told in JSON."""

    text: str
    status: int | None = None

    @classmethod
    def read(cls, text: str) -> "_Words":
        """A model's service answers in JSON, which some agents hand on as it came."""
        before, brace, rest = text.partition("{")
        try:
            told: object = json.loads(brace + rest)
        except (ValueError, RecursionError):
            return cls(text)
        message = _detail(told)
        if not message:
            return cls(text)
        within = cls.read(message)  # Google's wrap one answer in another
        fields = as_object(told)
        status = within.status or _status_in(as_object(fields.get("error"))) or _status_in(fields)
        return cls(before + within.text, status)


def _sentence(preset: Preset, words: str, advice: str) -> str:
    end = "" if words.endswith(".") else "."
    return f"{preset.name} reported an error: {words}{end}" + (f" {advice}" if advice else "")


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


def _http_status(error: RefusedError, words: str) -> int | None:
    """The status that the model's service answered with; agents tell it in many places."""
    found = _status_in({"code": error.code}) or _status_in(as_object(error.data))
    named = None if found else _STATUS.search(words)
    return int(named[1]) if named else found


def _status_in(fields: Mapping[str, object]) -> int | None:
    told = (fields.get(name) for name in _STATUS_NAMES)
    return next((one for one in told if isinstance(one, int) and 400 <= one < 600), None)


def _detail(data: object) -> str:
    if isinstance(data, str):
        return data
    fields = as_object(data)
    texts = (fields.get(name) for name in ("details", "message", "error"))
    inner = (fields.get(name) for name in ("error", "data"))
    found = next((text for text in texts if isinstance(text, str) and text), "")
    return found or next((text for one in inner if (text := _inner(one))), "")


def _inner(data: object) -> str:
    return _detail(data) if as_object(data) else ""
