"""What every request passes before a route sees it (pure ASGI)."""

import logging
from collections.abc import Callable, Sequence

from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quarterdeck.service.auth import Keys, bearer_of
from quarterdeck.service.bodies import check_length, limited
from quarterdeck.service.errors import ApiError, ServiceError
from quarterdeck.service.failures import error_response, unexpected
from quarterdeck.wire.errors import ErrorCode

API_VERSION = "2026-10-07"
PUBLIC_PATHS = frozenset({"/v1/health"})

log = logging.getLogger(__name__)


class Gate:
    """Admits requests with a valid key, a known version header and a body of bounded size.

    The caller goes into the request's scope. Without a valid key an unknown route is 404 and
    everything else 401, before the path, the method or the body is looked at.
    """

    def __init__(self, app: ASGIApp, keys: Keys, routes: Callable[[], Sequence[BaseRoute]]) -> None:
        self._app = app
        self._keys = keys
        self._routes = routes

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
        if scope["path"] not in PUBLIC_PATHS:
            await self._authenticate(scope, headers.get(b"authorization"))
        version = headers.get(b"x-service-api-version", API_VERSION)
        if version != API_VERSION:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "This API version is not known.",
                f"X-Service-Api-Version: the only version is {API_VERSION}",
            )
        check_length(headers.get(b"content-length"))

    async def _authenticate(self, scope: Scope, authorization: str | None) -> None:
        key = bearer_of(authorization)
        found = None if key is None else await self._keys.caller_of(key)
        if found is not None:
            scope.setdefault("state", {})["caller"] = found
            return
        if not self._is_route(scope):
            raise ApiError(ErrorCode.NOT_FOUND, "There is no such route.")
        why = "Send a key as a bearer token." if key is None else "This key is not valid."
        raise ApiError(ErrorCode.UNAUTHORIZED, why)

    def _is_route(self, scope: Scope) -> bool:
        # Matching may leave its findings in the scope it is given.
        return any(route.matches(dict(scope))[0] is not Match.NONE for route in self._routes())


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
