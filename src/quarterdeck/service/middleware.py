"""Middleware: authentication, limits of bodies, and responses for exceptions."""

import asyncio
import errno
import fcntl
import logging
import os
import signal
import socket
import struct
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quarterdeck.local.lookups import ORGANIZATION
from quarterdeck.sandboxes.errors import EngineAwayError, NotAwakeError, SandboxError
from quarterdeck.service.db.faults import log_storage_error
from quarterdeck.service.errors import (
    ApiError,
    DatabaseLockedError,
    DatabaseLostError,
    DatabaseReadOnlyError,
    ServiceError,
    StorageError,
    UnknownWorkspaceError,
)
from quarterdeck.service.identity.authentication import Authenticator, CallerHeaders
from quarterdeck.service.identity.service import INSIDE, bearer_of
from quarterdeck.service.routing import FOUND, FoundRoute, RouteTrie
from quarterdeck.wire.base import NUL_ERROR
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.json_size import has_too_many_values
from quarterdeck.wire.replicas import UNCOMMITTED_LIMIT

log = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 1
"""Seconds for `Retry-After` when the database could not be used."""

AWAY_SECONDS = 5
"""Seconds for `Retry-After` when the program that runs containers does not answer."""

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
        case EngineAwayError():
            code = ErrorCode.SERVICE_UNAVAILABLE
            return answer(ApiError(code, str(error), error.details, retry_after=AWAY_SECONDS))
        case NotAwakeError():
            return answer(ApiError(ErrorCode.WORKSPACE_NOT_ACTIVE, str(error), error.details))
        case SandboxError():
            log.error("A sandbox failed", exc_info=error)
            return answer(ApiError(ErrorCode.INTERNAL_ERROR, str(error), error.details))
        case _:
            log.error("A request failed", exc_info=error)
            return unexpected()


def storage_error(error: StorageError) -> ApiError:
    """Return the response to a database failure, with `Retry-After` if a retry may help."""
    if isinstance(error, DatabaseLostError | DatabaseLockedError | DatabaseReadOnlyError):
        code = ErrorCode.SERVICE_UNAVAILABLE
        return ApiError(code, str(error), retry_after=RETRY_AFTER_SECONDS)
    return ApiError(ErrorCode.INTERNAL_ERROR, str(error))


def unexpected() -> Response:
    """Return the response to an unexpected error, without its details."""
    return answer(ApiError(ErrorCode.INTERNAL_ERROR, "The service failed; see its log."))


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
    is_text = any(item["loc"] == ("body",) and item["type"] != "missing" for item in errors)
    if is_text and not _is_json(request):
        details = "Content-Type: a body is sent as application/json"
    else:
        details = "; ".join(explain(item) for item in errors)
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


BODY_LIMIT = 8 << 20
_LIMITS = {"/v1/replica/uncommitted": UNCOMMITTED_LIMIT, "/v1/auth/token": 16 << 10}
"""Maximum bytes of a body where it is not `BODY_LIMIT`, by path."""
BODY_VALUES = 100_000
"""Most strings, commas and brackets of a JSON body: reading more holds up every other request."""
PLAIN_LIMIT = 16 << 20
"""Maximum bytes of a decompressed body."""


def check_length(path: str, declared: str | None) -> None:
    """Refuse a body whose declared length is too large, before it is read.

    Raises:
        ApiError: PAYLOAD_TOO_LARGE.
    """
    limit = _LIMITS.get(path, BODY_LIMIT)
    if declared is not None and declared.isdecimal() and int(declared) > limit:
        raise ApiError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            "The request's body is too large.",
            f"body: at most {limit} bytes",
        )


def limited(path: str, receive: Receive, *, is_json: bool) -> Receive:
    """Return a `receive` that enforces the limits: of bytes, and of values in JSON."""
    size, limit = 0, _LIMITS.get(path, BODY_LIMIT)
    body = bytearray()

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if is_json and size <= limit:
            body.extend(part)
        is_last = not message.get("more_body", False)
        # The framework lets this one through while it reads a body; others become a 400.
        if size > limit or (is_last and has_too_many_values(body, BODY_VALUES)):
            raise HTTPException(413)
        if is_last:
            body.clear()
        return message

    return counted


def decompressed(body: bytes, encoding: str | None) -> bytes:
    """Return a body that may be compressed, as git sends it.

    Raises:
        ApiError: INVALID_REQUEST for what cannot be decompressed; PAYLOAD_TOO_LARGE.
    """
    if encoding not in ("gzip", "x-gzip"):
        return body
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = decompressor.decompress(body, PLAIN_LIMIT + 1)
    except zlib.error as error:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "The body is not valid gzip data.", str(error)
        ) from error
    if len(plain) > PLAIN_LIMIT:
        raise ApiError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            "The request's body is too large.",
            f"body: at most {PLAIN_LIMIT} bytes decompressed",
        )
    if not decompressor.eof:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "The body is not valid gzip data.", "It is incomplete."
        )
    return plain


API_VERSION = "2026-10-07"

RECHECK_SECONDS = 15.0
"""How often the caller of a request that goes on, such as a stream, is authenticated again."""


class AuthMiddleware:
    """Admits requests of a known caller, with a known version header and a body of bounded size.

    The caller is put into the request's scope. A refused caller learns that a route is unknown, and
    otherwise only the reason, before the path, the method or the body is checked.
    """

    def __init__(self, app: ASGIApp, authenticator: Authenticator, routes: RouteTrie) -> None:
        self._app = app
        self._authenticator = authenticator
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        route_match = scope[FOUND] = self._routes.find(scope)
        try:
            shown = await self._admit(scope, route_match)
        except ServiceError as e:
            await error_response(e)(scope, receive, send)
            return
        is_json = any(
            name == b"content-type" and b"json" in value.lower() for name, value in scope["headers"]
        )
        receive = limited(scope["path"], receive, is_json=is_json)
        if shown is None:
            await self._app(scope, receive, send)
        else:
            await self._serve(shown, route_match, scope, receive, send)

    async def _serve(
        self,
        shown: CallerHeaders,
        route_match: FoundRoute,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve a request, and end its response soon after the caller has lost access.

        What is done before the answer begins, such as a deletion, is finished.
        """
        limit, watching = asyncio.timeout(None), list[asyncio.Task[None]]()

        async def watched(message: Message) -> None:
            if not watching:
                watching.append(asyncio.create_task(self._recheck(shown, route_match, limit)))
            await send(message)

        try:
            async with limit:
                await self._app(scope, receive, watched)
        except TimeoutError:
            if not limit.expired():
                raise
            # The server notices the missing end and cuts the connection.
            log.info("A response was ended early: its caller has lost access")
        finally:
            for task in watching:
                task.cancel()

    async def _recheck(
        self, shown: CallerHeaders, route_match: FoundRoute, limit: asyncio.Timeout
    ) -> None:
        """End a request soon after its key was revoked, its token has expired or its user was removed."""
        while True:
            await asyncio.sleep(RECHECK_SECONDS)
            if not await self._authenticator.still_admits(shown, route_match):
                limit.reschedule(asyncio.get_running_loop().time())
                return

    async def _admit(self, scope: Scope, route_match: FoundRoute) -> CallerHeaders | None:
        """Return what the caller is known by; None where the route needs nobody."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        inside = bool(scope.get("state", {}).get(INSIDE))
        shown: CallerHeaders | None = None
        if not (route_match.access.public_inside if inside else route_match.access.public):
            shown = await self._authenticate(scope, route_match, headers)
        version = headers.get(b"x-service-api-version", API_VERSION)
        if version != API_VERSION:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "This API version is not known.",
                f"X-Service-Api-Version: the only version is {API_VERSION}",
            )
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "The request is not valid.", "url: holds a NUL character"
            )
        check_length(scope["path"], headers.get(b"content-length"))
        return shown

    async def _authenticate(
        self, scope: Scope, route_match: FoundRoute, headers: dict[bytes, str]
    ) -> CallerHeaders:
        shown = CallerHeaders(
            bearer_of(headers.get(b"authorization")),
            headers.get(b"service-org-id"),
            headers.get(b"x-workspace-id"),
            inside=bool(scope.get("state", {}).get(INSIDE)),
        )
        try:
            caller = await self._authenticator.caller_of(shown, route_match)
        except ApiError as e:
            if route_match.is_known:
                raise
            raise ApiError(ErrorCode.NOT_FOUND, "There is no such route.") from e
        scope.setdefault("state", {})["caller"] = caller
        ORGANIZATION.set(caller.organization_id)
        return shown


class Head:
    """Answers HEAD like GET, without the body.

    The answer ends with its head; a stream ends as if its client had left.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app({**scope, "method": "GET"}, receive, send_head)


class ErrorMiddleware:
    """The outermost layer: log an unexpected error once, and answer without its text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except StorageError as e:
            answer = error_response(e)  # also logs the error if needed
            if not started:
                await answer(scope, receive, send)
        except Exception:
            log.exception("A request failed", extra={"method": scope["method"]})
            if started:
                # The server notices the missing end and cuts the connection: the client must not
                # take a part for the whole.
                return
            await unexpected()(scope, receive, send)


CREDENTIALS = struct.Struct("3i")
"""Process, user and group of the peer."""

SO_PEERPIDFD = 77
"""A handle of the peer process; Linux 6.5, and not yet in the `socket` module."""

NS_GET_PARENT = 0xB702
"""Gets the parent of a namespace; see ioctl_ns(2)."""

NAMESPACES = ("user", "pid")

UNKNOWN = "processes that have ended"


def is_owner(connection: socket.socket) -> bool:
    """Return whether the installation's owner connected: its user, or root, outside of sandboxes.

    A sandbox runs as the owner's own user, so the user alone is not enough. Every sandbox has its
    own user and pid namespaces, and a process cannot return to outer ones; so the owner's processes
    share the service's. Mount namespaces prove nothing: a service unit often has its own.
    Namespaces that cannot be read, or belong to a process that has ended, are not the owner's.

    So a person in another container than the service's is not recognized as the owner either: such
    a container looks like a sandbox from here. They use a key; in the same container (`docker exec`
    and the like) namespaces are the same.
    """
    if connection.family != socket.AF_UNIX:
        return False
    pid, user = _credentials(connection)
    if user == 0 and os.geteuid() != 0:
        return True  # root of this machine; the root of a sandbox is its user here
    if user != os.geteuid():
        return False
    try:
        with _same_process(connection):
            return all(_namespace(pid, kind) == _namespace("self", kind) for kind in NAMESPACES)
    except OSError:
        return False


def sandbox_of(connection: socket.socket) -> str:
    """Return a name of the peer's sandbox, the same for all processes in one sandbox.

    It is the name of the pid namespace directly below the service's that contains the caller at any
    depth: sandboxes may create namespaces, but not leave theirs. The name is empty for a caller
    outside of sandboxes; all callers that have ended share one.
    """
    pid, _ = _credentials(connection)
    try:
        with _same_process(connection):
            return _outermost(pid)
    except OSError:
        return UNKNOWN


def _credentials(connection: socket.socket) -> tuple[int, int]:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    pid, user, _ = CREDENTIALS.unpack(raw)
    return pid, user


@contextmanager
def _same_process(connection: socket.socket) -> Generator[None]:
    """Make sure that the block checked the process that connected, not a later one with its pid.

    On a kernel without such handles a pid reused since the connect is not detected.

    Raises:
        OSError: the process has ended.
    """
    try:
        handle = connection.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    except OSError as e:
        if e.errno != errno.ENOPROTOOPT:
            raise
        yield
        return
    try:
        yield
        signal.pidfd_send_signal(handle, 0)
    finally:
        os.close(handle)


def _namespace(pid: int | str, kind: str) -> tuple[int, int]:
    status = Path(f"/proc/{pid}/ns/{kind}").stat()
    return status.st_dev, status.st_ino


def _outermost(pid: int) -> str:
    own = _namespace("self", "pid")
    current = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        name = ""
        while (os.fstat(current).st_dev, os.fstat(current).st_ino) != own:
            name = f"the sandbox with pid namespace {os.fstat(current).st_ino}"
            above = fcntl.ioctl(current, NS_GET_PARENT)
            os.close(current)
            current = above
        return name
    finally:
        os.close(current)
