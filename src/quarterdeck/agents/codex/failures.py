"""Why a turn failed, in a sentence that says what to do."""

from typing import Any

from quarterdeck.agents.objects import as_object

_REFUSED = "Check its key, or log in again."
_LIMITED = "Wait a while, or choose another model."
_BY_STATUS = {401: _REFUSED, 403: _REFUSED, 429: _LIMITED}
_BY_KIND = {
    "unauthorized": _REFUSED,
    "usageLimitExceeded": _LIMITED,
    "rateLimitExceeded": _LIMITED,
    "serverOverloaded": _LIMITED,
    "modelNotFound": "Choose another model.",
    "contextWindowExceeded": "Start another chat, or send a shorter message.",
    "sessionBudgetExceeded": "Start another chat.",
    "sandboxError": "Look at sandbox_mode in its configuration.",
    "internalServerError": "Try again later.",
}


def failure(name: str, record: dict[str, Any]) -> str:
    """The sentence on a failed turn, from codex's own record of it."""
    error = as_object(record.get("error"))
    message = str(error.get("message") or "it did not say why").rstrip(".")
    kind, status = _kind(error.get("codexErrorInfo"))
    advice = _BY_STATUS.get(status or 0) or _BY_KIND.get(kind, "")
    return f"{name} reported an error: {message}." + (f" {advice}" if advice else "")


def _kind(info: object) -> tuple[str, int | None]:
    if isinstance(info, str):
        return info, None
    kind, details = next(iter(as_object(info).items()), ("", None))
    status = as_object(details).get("httpStatusCode")
    return kind, status if isinstance(status, int) else None
