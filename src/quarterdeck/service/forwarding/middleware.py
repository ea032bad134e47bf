"""Passes requests on to the service that has their workspace (pure ASGI, behind the gate).

The caller was admitted here, and is admitted by the owner afresh. What may be read without the
owner is read here while the owner is away; everything else is 502 then. A request is passed on
once: one that comes to the wrong service again, for instance because an announced address leads
elsewhere, is refused.
"""

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError, ServiceError
from quarterdeck.service.failures import error_response
from quarterdeck.service.forwarding.headers import MARK
from quarterdeck.service.forwarding.owners import Owners, workspace_named
from quarterdeck.service.forwarding.upstream import Unreached, Upstreams
from quarterdeck.service.presence import ALIVE
from quarterdeck.service.records.services import Owner, ServiceRow, find_service
from quarterdeck.wire.errors import ErrorCode

AWAY = "owner_away"
"""In a request's state: why the owner was not asked, for a person."""

_IN_ROWS = re.compile(r"|history|status|hooks|chats|chats/[^/]+/queue")
"""What follows a workspace in the path of reads that need nothing but the database."""


class Forwarding:
    """Serves what is this service's own, and passes the rest on."""

    def __init__(self, app: ASGIApp, context: ServiceContext, upstreams: Upstreams) -> None:
        self._app = app
        self._context = context
        self._owners = Owners(context.database)
        self._upstreams = upstreams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        try:
            service, rest = await self._elsewhere(scope)
        except ServiceError as e:
            await error_response(e)(scope, receive, send)
            return
        if service is None:
            await self._app(scope, receive, send)
            return
        try:
            await self._pass_on(service, scope, receive, send)
        except HTTPException:
            error = ApiError(ErrorCode.PAYLOAD_TOO_LARGE, "The request's body is too large.")
            await error_response(error)(scope, receive, send)
        except Unreached as e:
            if _is_read_here(scope, rest):
                scope["state"][AWAY] = _away(service, unseen=True).message
                await self._app(scope, receive, send)
                return
            await error_response(_away(service, e.unseen))(scope, receive, send)

    async def _elsewhere(self, scope: Scope) -> tuple[ServiceRow | None, str]:
        """The other service that has the workspace, and what of it is asked; else None."""
        caller: Caller | None = scope.get("state", {}).get("caller")
        named = None
        if scope["type"] == "http" and caller is not None:
            named = workspace_named(scope, caller)
        if named is None or caller is None:
            return None, ""
        owner = await self._owners.of(named[0])
        if owner is None or owner.home_id in (None, self._context.home_id):
            return None, ""
        if owner.organization_id != caller.organization_id:  # which is told no more than a 404
            return None, ""
        if any(name == MARK for name, _ in scope["headers"]):
            raise _lost_its_way(self._context.home_id, owner)
        return await self._find(owner), named[1]

    async def _find(self, owner: Owner) -> ServiceRow:
        read = self._context.database.read
        found = await read(lambda c: find_service(c, owner.home_id, ALIVE))
        return found or ServiceRow(str(owner.home_id), "", "", alive=False)

    async def _pass_on(
        self, service: ServiceRow, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if not service.alive:
            raise Unreached(unseen=True)
        await self._upstreams.pass_on(service.url, scope, receive, send)


def _is_read_here(scope: Scope, rest: str) -> bool:
    # What may be included are facts of the owner's host.
    plain = b"include" not in scope["query_string"]
    return scope["method"] == "GET" and plain and _IN_ROWS.fullmatch(rest) is not None


def _away(service: ServiceRow, unseen: bool) -> ApiError:
    what = "cannot be reached" if unseen else "was lost before it answered; it may have acted"
    seen = f", last seen at {service.seen_at}" if service.seen_at else ", never seen"
    return ApiError(
        ErrorCode.ENGINE_UNREACHABLE,
        f"The service that has this replica {what}. Start the service of home {service.home_id} "
        "again (qd serve on its host), or repair the line to it.",
        f"home {service.home_id} at {service.url or 'no known address'}{seen}",
    )


def _lost_its_way(own: str, owner: Owner) -> ApiError:
    return ApiError(
        ErrorCode.ENGINE_UNREACHABLE,
        f"A request for the service of home {owner.home_id} came to another one. Start that "
        "service with an address that leads to it: qd serve --advertise URL.",
        f"came to home {own}",
    )
