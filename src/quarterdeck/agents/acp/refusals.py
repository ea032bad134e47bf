"""What a person is told of an error that an agent answered with."""

import re
from http import HTTPStatus

from quarterdeck.agents.objects import as_object
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.link import RefusedError

AUTH_REQUIRED = -32000

_STATUS = re.compile(r"(?i)\b(?:status(?: code)?|http|error|code)\W{0,3}([45]\d\d)\b")
_STATUS_NAMES = ("status", "statusCode", "httpStatus", "code", "errorCode")


def told(preset: Preset, error: RefusedError) -> str:
    """A sentence on the error, and what can be done where that is known."""
    words, detail = str(error), _detail(error.data)
    words += f" ({detail})" if detail and detail not in words else ""
    return _sentence(preset, words, _advice(preset, error, words))


def told_as_text(preset: Preset, last_words: str) -> str | None:
    """The same for an agent that tells an error as the last words of a turn; None: it is none."""
    prefix = preset.traps.error_prefix
    if prefix is None or not last_words.startswith(prefix):
        return None
    words = last_words.removeprefix(prefix).strip()
    return _sentence(preset, words, _advice(preset, RefusedError(words), words))


def _sentence(preset: Preset, words: str, advice: str) -> str:
    end = "" if words.endswith(".") else "."
    return f"{preset.name} reported an error: {words}{end}" + (f" {advice}" if advice else "")


def _advice(preset: Preset, error: RefusedError, words: str) -> str:
    keys = preset.key_names
    status = _http_status(error, words)
    if error.code == AUTH_REQUIRED:
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
    data = as_object(error.data)
    for found in (error.code, *(data.get(name) for name in _STATUS_NAMES)):
        if isinstance(found, int) and 400 <= found < 600:
            return found
    named = _STATUS.search(words)
    return int(named[1]) if named else None


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
