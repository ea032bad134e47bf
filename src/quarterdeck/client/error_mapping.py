"""Errors of requests, and whether and when a failed request is retried."""

import random
from collections.abc import Generator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx
from pydantic import ValidationError

from quarterdeck.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    LinkError,
    NotActiveError,
    NotConnectedError,
    NotFoundError,
    PayloadTooLargeError,
    PreconditionFailedError,
    ProtocolError,
    RateLimitedError,
    ReplicaFailedError,
    RequestTimeoutError,
    ResponseError,
    ServerError,
    UnauthorizedError,
    UnavailableError,
    UnreachableError,
)
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.errors import ErrorCode, ErrorObject

LONGEST_RETRY = 86_400.0
"""Most seconds of `Retry-After`: a day."""

CONFLICT_STEPS = {
    "name": "Choose another name.",
    "id": "Choose another id.",
    "repository": "Change that, then retry.",
    "conflicts": "Resolve the conflicts, then retry.",
    "triggers": "Add a webhook trigger first.",
    "status": "It has changed; refresh and retry.",
}
"""What to do about a conflict, by the field that its details name."""

LONGEST_WAIT = 30.0
"""Seconds of `Retry-After` that a call waits for; with more, the error is raised."""


class Backoff(NamedTuple):
    """Delays that double from `first` to `longest` seconds, each shortened by up to `jitter`."""

    first: float = 0.25
    longest: float = 10.0
    jitter: float = 0.3

    def delay(self, attempt: int) -> float:
        """Return the seconds to wait before try number `attempt`, counted from 0."""
        whole = min(self.longest, self.first * 2.0 ** min(attempt, 30))
        return whole * (1 - self.jitter * random.random())


STREAM_PACE = Backoff()
CALL_PACE = Backoff(first=0.1, longest=2.0)
CALL_TRIES = 4
"""Tries of a safe call before its error is raised."""


def wait_before(error: ClientError, attempt: int, pace: Backoff) -> float | None:
    """Return the seconds to wait before a safe call is retried, or None when it must not be."""
    if isinstance(error, ResponseError) and (error.retry_after or 0) > LONGEST_WAIT:
        return None
    match error:
        case RateLimitedError() | UnavailableError():
            return max(error.retry_after or 0.0, pace.delay(attempt))
        case UnreachableError() | RequestTimeoutError():
            return pace.delay(attempt)
        case _:
            return None


BY_STATUS: dict[int, type[ResponseError]] = {
    400: InvalidRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    413: PayloadTooLargeError,
    422: InvalidRequestError,
    429: RateLimitedError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}

BY_CODE: dict[str, type[ResponseError]] = {
    ErrorCode.WORKSPACE_NOT_ACTIVE: NotActiveError,
    ErrorCode.WORKSPACE_ERROR_STATE: ReplicaFailedError,
}


@contextmanager
def mapped(endpoint: str) -> Generator[None]:
    """Turn every exception of the HTTP library inside the block into a `LinkError`."""
    try:
        yield
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as e:
        raise _link_error(e, endpoint) from e
    except OSError as e:
        raise NotConnectedError(f"No service answers at {endpoint}: {e.strerror or e}.") from e


def _link_error(error: Exception, endpoint: str) -> LinkError:
    match error:
        case httpx.ConnectTimeout():
            return RequestTimeoutError(f"Connecting to {endpoint} timed out.")
        case httpx.TimeoutException():
            return RequestTimeoutError(f"{endpoint} did not answer in time.")
        case httpx.ConnectError():
            return NotConnectedError(f"No service answers at {endpoint}.")
        case httpx.RemoteProtocolError() | httpx.NetworkError() | httpx.ProxyError():
            return UnreachableError(f"The line to {endpoint} broke.")
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            return UnreachableError(f"{endpoint} is not an address that can be called: {error}.")
        case _:
            return ProtocolError(f"The answer of {endpoint} could not be read.")


def api_error(status: int, headers: httpx.Headers, body: bytes) -> ResponseError:
    """Return the error for an answer with a status of 400 or more."""
    try:
        error = ErrorObject.model_validate_json(body)
    except ValidationError:
        error = ErrorObject(error=f"The service answered with status {status}.")
    kind = _kind(status, error.code)
    about = (error.details or "").partition(":")[0]
    return kind(
        error.error,
        status=status,
        code=error.code,
        details=error.details,
        retry_after=retry_after(headers),
        conflicts=error.conflicts or (),
        next_step=CONFLICT_STEPS.get(about) if kind is ConflictError else None,
    )


def _kind(status: int, code: str | None) -> type[ResponseError]:
    if status == 409 and code in BY_CODE:
        return BY_CODE[code]
    return BY_STATUS.get(status) or (ServerError if status >= 500 else ResponseError)


def retry_after(headers: httpx.Headers) -> float | None:
    """Return the seconds of `Retry-After`, in either of its two forms."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - utc_now()).total_seconds()
        except (ValueError, TypeError, OverflowError):  # not a date, or one without a time zone
            return None
    return min(max(0.0, seconds), LONGEST_RETRY)


def is_final(error: Exception) -> bool:
    """Return whether a retry of the same request cannot help: it was refused, not lost."""
    return (
        isinstance(error, ResponseError)
        and not isinstance(error, RateLimitedError | ServerError)
        and error.status not in {408, 425}
    )
