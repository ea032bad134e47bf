"""What every request passes before a route sees it (pure ASGI)."""

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quarterdeck.service.auth import INSIDE, bearer_of
from quarterdeck.service.bodies import check_length, limited
from quarterdeck.service.errors import ApiError, ServiceError
from quarterdeck.service.failures import error_response, unexpected
from quarterdeck.service.identity.authenticator import Authenticator, Shown
from quarterdeck.service.identity.doors import Doors
from quarterdeck.wire.errors import ErrorCode

API_VERSION = "2026-10-07"
PUBLIC_PATHS = frozenset(
    (
        "/v1/health",
        "/v1/auth/device",
        "/v1/auth/token",
        "/v1/auth/verify",
        "/openapi.json",
        "/v1/host-a/webhook",
        "/v1/host-b/webhook",
    )
)
"""Nobody needs a key for these."""

PUBLIC_INSIDE = frozenset(("/v1/health",))
"""Nor for these, over the socket for callers inside workspaces."""

WEBHOOKS = "/v1/automations/webhook/"
"""Nor below this: the token in the path is the key."""

log = logging.getLogger(__name__)


class Gate:
    """Admits requests of a known caller, with a known version header and a body of bounded size.

    The caller goes into the request's scope. Who is refused learns of an unknown route that it is
    one, and of everything else only why, before the path, the method or the body is looked at.
    """

    def __init__(self, app: ASGIApp, authenticator: Authenticator, doors: Doors) -> None:
        self._app = app
        self._authenticator = authenticator
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._admit(scope)
        except ServiceError as e:
            await error_response(e)(scope, receive, send)
            return
        await self._app(scope, limited(receive), send)

    async def _admit(self, scope: Scope) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        inside = bool(scope.get("state", {}).get(INSIDE))
        if not (scope["path"] in PUBLIC_INSIDE if inside else is_public(scope["path"])):
            await self._authenticate(scope, headers)
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
        check_length(headers.get(b"content-length"))

    async def _authenticate(self, scope: Scope, headers: dict[bytes, str]) -> None:
        shown = Shown(
            bearer_of(headers.get(b"authorization")),
            headers.get(b"service-org-id"),
            headers.get(b"x-workspace-id"),
            inside=bool(scope.get("state", {}).get(INSIDE)),
        )
        try:
            caller = await self._authenticator.caller_of(shown, self._doors, scope)
        except ApiError as e:
            if self._doors.is_route(scope):
                raise
            raise ApiError(ErrorCode.NOT_FOUND, "There is no such route.") from e
        scope.setdefault("state", {})["caller"] = caller


def is_public(path: str) -> bool:
    """Whether a path takes callers without a key."""
    return path in PUBLIC_PATHS or path.startswith(WEBHOOKS)


class Guard:
    """The outermost layer: an unexpected error is logged once, and answered without its text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
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
        except Exception:
            log.exception("A request failed", extra={"method": scope["method"]})
            if started:
                # The server notices the missing end and cuts the connection: the client must not
                # take a part for the whole.
                return
            await unexpected()(scope, receive, send)
