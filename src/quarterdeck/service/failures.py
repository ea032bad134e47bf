"""Every failure as the contract's Error object."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.errors import (
    ApiError,
    ServiceError,
    StorageError,
    UnknownWorkspaceError,
)
from quarterdeck.wire.base import NUL_ERROR
from quarterdeck.wire.errors import ErrorCode

log = logging.getLogger(__name__)

_OF_STATUS = {
    404: (ErrorCode.NOT_FOUND, "There is no such route."),
    405: (ErrorCode.METHOD_NOT_ALLOWED, "This route does not have this method."),
    413: (ErrorCode.PAYLOAD_TOO_LARGE, "The request's body is too large."),
}


def answer(error: ApiError, headers: Mapping[str, str] | None = None) -> Response:
    """The response of an error."""
    extra = dict(headers or {})
    if error.status == 401:
        extra["WWW-Authenticate"] = "Bearer"
    if error.retry_after is not None:
        extra["Retry-After"] = str(error.retry_after)
    content = error.as_object().model_dump(mode="json", exclude_none=True)
    return JSONResponse(content, error.status, extra)


def error_response(error: ServiceError | SandboxError) -> Response:
    """The response of anything that the service raises on purpose."""
    match error:
        case ApiError():
            return answer(error)
        case UnknownWorkspaceError():
            return answer(ApiError(ErrorCode.NOT_FOUND, "No replica has this id."))
        case StorageError():
            log.error("The database failed", exc_info=error)
            return answer(ApiError(ErrorCode.INTERNAL_ERROR, str(error)))
        case SandboxError():
            log.error("A sandbox failed", exc_info=error)
            return answer(ApiError(ErrorCode.INTERNAL_ERROR, str(error), error.details))
        case _:
            log.error("A request failed", exc_info=error)
            return unexpected()


def unexpected() -> Response:
    """The response of an error that nobody expected; tells nothing of it."""
    return answer(ApiError(ErrorCode.INTERNAL_ERROR, "The service failed; its log says why."))


def install_handlers(app: FastAPI) -> None:
    """Makes the application answer every failure with the Error object."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for kind in (ServiceError, SandboxError):
        app.add_exception_handler(kind, _raised)


async def _raised(_: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError | SandboxError)
    return error_response(error)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = "; ".join(_explain(one) for one in error.errors())
    return answer(ApiError(ErrorCode.INVALID_REQUEST, "The request is not valid.", details))


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in _OF_STATUS:
        code, message = _OF_STATUS[error.status_code]
        return answer(ApiError(code, message), error.headers)
    # What remains is the framework's 400 for a body that it could not decode.
    details = f"body: {error.detail}"
    return answer(ApiError(ErrorCode.INVALID_REQUEST, "The request is not valid.", details))


def _explain(error: Mapping[str, Any]) -> str:
    """`field: what is wrong`; the value itself is never repeated, it may be a secret."""
    if error["type"] == "json_invalid":
        return f"body: not valid JSON ({error['ctx']['error']} at character {error['loc'][-1]})"
    where: Sequence[Any] = error["loc"]
    if error["type"] == NUL_ERROR:
        where = [*where, error["ctx"]["field"]]
    field = ".".join(str(part) for part in where[1:]) or str(where[0])
    return f"{field}: {error['msg']}"
