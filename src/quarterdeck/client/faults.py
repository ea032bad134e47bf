"""The one place where the HTTP library's exceptions and error answers become ours."""

from collections.abc import Generator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime

import httpx
from pydantic import ValidationError

from quarterdeck.client.errors import (
    ApiError,
    Conflict,
    Forbidden,
    InErrorState,
    InvalidRequest,
    LinkError,
    NotActive,
    NotConnected,
    NotFound,
    PayloadTooLarge,
    ProtocolError,
    RateLimited,
    ServerError,
    TimedOut,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.errors import ErrorCode, ErrorObject

BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: PayloadTooLarge,
    422: InvalidRequest,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}

BY_CODE: dict[str, type[ApiError]] = {
    ErrorCode.WORKSPACE_NOT_ACTIVE: NotActive,
    ErrorCode.WORKSPACE_ERROR_STATE: InErrorState,
}


@contextmanager
def mapped(endpoint: str) -> Generator[None]:
    """Turns every exception of the HTTP library inside the block into a `LinkError`."""
    try:
        yield
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as e:
        raise _link_error(e, endpoint) from e
    except OSError as e:
        raise NotConnected(f"No service answers at {endpoint}: {e.strerror or e}.") from e


def _link_error(error: Exception, endpoint: str) -> LinkError:
    match error:
        case httpx.ConnectTimeout():
            return TimedOut(f"{endpoint} did not take the connection in time.")
        case httpx.TimeoutException():
            return TimedOut(f"{endpoint} did not answer in time.")
        case httpx.ConnectError():
            return NotConnected(f"No service answers at {endpoint}.")
        case httpx.RemoteProtocolError() | httpx.NetworkError() | httpx.ProxyError():
            return Unreachable(f"The line to {endpoint} broke.")
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            return Unreachable(f"{endpoint} is not an address that can be called: {error}.")
        case _:
            return ProtocolError(f"The answer of {endpoint} could not be read.")


def api_error(status: int, headers: httpx.Headers, body: bytes) -> ApiError:
    """The error that an answer with a status of 400 and more stands for."""
    try:
        told = ErrorObject.model_validate_json(body)
    except ValidationError:
        told = ErrorObject(error=f"The service answered with status {status}.")
    return _kind(status, told.code)(
        told.error,
        status=status,
        code=told.code,
        details=told.details,
        retry_after=retry_after(headers),
    )


def _kind(status: int, code: str | None) -> type[ApiError]:
    if status == 409 and code in BY_CODE:
        return BY_CODE[code]
    return BY_STATUS.get(status) or (ServerError if status >= 500 else ApiError)


def retry_after(headers: httpx.Headers) -> float | None:
    """Seconds that `Retry-After` asks for, whichever of its two forms it has."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment - utc_now()).total_seconds())


def is_final(error: Exception) -> bool:
    """Whether another try of the same request cannot help: it was refused, not lost."""
    return (
        isinstance(error, ApiError)
        and not isinstance(error, RateLimited | ServerError)
        and error.status not in {408, 425}
    )
