"""Turn exceptions into responses."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.errors import (
    ApiError,
    DatabaseLockedError,
    DatabaseLostError,
    ServiceError,
    StorageError,
    UnknownWorkspaceError,
)
from quarterdeck.service.retry import log_storage_error
from quarterdeck.wire.base import NUL_ERROR
from quarterdeck.wire.errors import ErrorCode

log = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 1
"""Seconds for `Retry-After` when the database could not be used."""

_OF_STATUS = {
    404: (ErrorCode.NOT_FOUND, "There is no such route."),
    405: (ErrorCode.METHOD_NOT_ALLOWED, "This route does not have this method."),
    413: (ErrorCode.PAYLOAD_TOO_LARGE, "The request's body is too large."),
}


def answer(
    error: ApiError,
    headers: Mapping[str, str] | None = None,
    also: Mapping[str, Any] | None = None,
) -> Response:
    """Return the response of an error; `also` are fields in addition to the Error object's."""
    extra = dict(headers or {})
    if error.status == 401:
        extra["WWW-Authenticate"] = "Bearer"
    if error.retry_after is not None:
        extra["Retry-After"] = str(error.retry_after)
    content = {**(also or {}), **error.as_object().model_dump(mode="json", exclude_none=True)}
    return JSONResponse(content, error.status, extra)


def error_response(error: ServiceError | SandboxError) -> Response:
    """Return the response of anything that the service raises on purpose."""
    match error:
        case ApiError():
            return answer(error)
        case UnknownWorkspaceError():
            return answer(ApiError(ErrorCode.NOT_FOUND, "No replica has this id."))
        case StorageError():
            log_storage_error(log, "The database failed", error)
            return answer(storage_error(error))
        case SandboxError():
            log.error("A sandbox failed", exc_info=error)
            return answer(ApiError(ErrorCode.INTERNAL_ERROR, str(error), error.details))
        case _:
            log.error("A request failed", exc_info=error)
            return unexpected()


def storage_error(error: StorageError) -> ApiError:
    """Return the response to a database failure, with `Retry-After` if a retry may help."""
    if isinstance(error, DatabaseLostError | DatabaseLockedError):
        code = ErrorCode.SERVICE_UNAVAILABLE
        return ApiError(code, str(error), retry_after=RETRY_AFTER_SECONDS)
    return ApiError(ErrorCode.INTERNAL_ERROR, str(error))


def unexpected() -> Response:
    """Return the response to an unexpected error, without its details."""
    return answer(ApiError(ErrorCode.INTERNAL_ERROR, "The service failed; its log says why."))


def install_handlers(app: FastAPI) -> None:
    """Make the application answer every failure with the Error object."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for kind in (ServiceError, SandboxError):
        app.add_exception_handler(kind, _raised)


async def _raised(_: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError | SandboxError)
    return error_response(error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    is_text = any(one["loc"] == ("body",) and one["type"] != "missing" for one in errors)
    if is_text and not _is_json(request):
        details = "Content-Type: a body is sent as application/json"
    else:
        details = "; ".join(explain(one) for one in errors)
    return answer(ApiError(ErrorCode.INVALID_REQUEST, "The request is not valid.", details))


def _is_json(request: Request) -> bool:
    """Return whether the framework parsed the body as JSON, by its header."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind.startswith("application/") and kind.endswith(("/json", "+json"))


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in _OF_STATUS:
        code, message = _OF_STATUS[error.status_code]
        return answer(ApiError(code, message), error.headers)
    # The remaining case is the framework's 400 for a body that it could not decode.
    details = f"body: {error.detail}"
    return answer(ApiError(ErrorCode.INVALID_REQUEST, "The request is not valid.", details))


def explain(error: Mapping[str, Any]) -> str:
    """Return `field: what is wrong`; the value is never repeated: it may be a secret."""
    if error["type"] == "json_invalid":
        return f"body: not valid JSON ({error['ctx']['error']} at character {error['loc'][-1]})"
    where: Sequence[Any] = error["loc"]
    if error["type"] == NUL_ERROR:
        where = [*where, error["ctx"]["field"]]
    field = ".".join(str(part) for part in where[1:]) or str(where[0])
    # The library prefixes a validator's message with the kind of exception.
    reason = error["ctx"]["error"] if error["type"] == "value_error" else error["msg"]
    return f"{field}: {reason}"
