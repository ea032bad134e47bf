"""Middleware: authentication, and limits of bodies."""

import errno
import fcntl
import logging
import os
import signal
import socket
import struct
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quarterdeck.service.error_handlers import error_response, unexpected
from quarterdeck.service.errors import ApiError, ServiceError, StorageError
from quarterdeck.service.identity.authentication import Authenticator, CallerHeaders
from quarterdeck.service.identity.service import INSIDE, bearer_of
from quarterdeck.service.routing import FOUND, FoundRoute, RouteTrie
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import UNCOMMITTED_LIMIT

BODY_LIMIT = 8 << 20
_LIMITS = {"/v1/replica/uncommitted": UNCOMMITTED_LIMIT}
"""Maximum bytes of a body where it is not `BODY_LIMIT`, by path."""
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


def limited(path: str, receive: Receive) -> Receive:
    """Return a `receive` for a body without a declared length, which enforces the limit."""
    size, limit = 0, _LIMITS.get(path, BODY_LIMIT)

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            # The framework lets this one through while it reads a body; others become a 400.
            raise HTTPException(413)
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
log = logging.getLogger(__name__)


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
        found = scope[FOUND] = self._routes.find(scope)
        try:
            await self._admit(scope, found)
        except ServiceError as e:
            await error_response(e)(scope, receive, send)
            return
        await self._app(scope, limited(scope["path"], receive), send)

    async def _admit(self, scope: Scope, found: FoundRoute) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        inside = bool(scope.get("state", {}).get(INSIDE))
        if not (found.access.public_inside if inside else found.access.public):
            await self._authenticate(scope, found, headers)
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

    async def _authenticate(
        self, scope: Scope, found: FoundRoute, headers: dict[bytes, str]
    ) -> None:
        shown = CallerHeaders(
            bearer_of(headers.get(b"authorization")),
            headers.get(b"service-org-id"),
            headers.get(b"x-workspace-id"),
            inside=bool(scope.get("state", {}).get(INSIDE)),
        )
        try:
            caller = await self._authenticator.caller_of(shown, found)
        except ApiError as e:
            if found.is_known:
                raise
            raise ApiError(ErrorCode.NOT_FOUND, "There is no such route.") from e
        scope.setdefault("state", {})["caller"] = caller


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
