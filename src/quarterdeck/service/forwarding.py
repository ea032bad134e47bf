"""Forward requests to the service that a replica belongs to.

Passes requests on to the service that has their workspace (pure ASGI, after `AuthMiddleware`), and
those that create a replica to one that has prepared it.

The caller was admitted here, and is admitted by the owner again. While the owner is unreachable,
some reads are answered here; everything else is 502 then. A request is passed on once: one that
comes to the wrong service again, for instance because an announced address leads elsewhere, is
refused.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quarterdeck.local.sockets import socket_address
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.service.caches import Remembered
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.database import Database
from quarterdeck.service.environments.warm_pool_rows import PoolPlace, prepared_elsewhere
from quarterdeck.service.errors import ApiError, ServiceError
from quarterdeck.service.event_log import PING_SECONDS
from quarterdeck.service.http_protocol import MARK, for_caller, for_owner
from quarterdeck.service.identity.service import Caller, CallerKind
from quarterdeck.service.middleware import error_response
from quarterdeck.service.ownership import ALIVE, UNIX
from quarterdeck.service.streams import EVENT_STREAM
from quarterdeck.service.system_rows import Owner, ServiceRow, find_service, owner_of
from quarterdeck.wire.errors import ErrorCode

if TYPE_CHECKING:
    import httpx


FAMILIES = ("replica", "workspaces")
ENTRIES = 10_000


class Owners:
    """Remembers who has which workspace, except those that may be taken over."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, Owner] = {}

    async def of(self, workspace_id: str) -> Owner | None:
        """Return the owner of a workspace; None when there is none of this id.

        Raises:
            StorageError: the database cannot be read.
        """
        known = self._known.get(workspace_id)
        if known is not None:
            return known
        owner = await self._database.read(lambda c: owner_of(c, workspace_id))
        if owner is not None and owner.stays:
            if len(self._known) >= ENTRIES:
                self._known.clear()
            self._known[workspace_id] = owner
        return owner

    def forget(self, workspace_id: str) -> None:
        """Make the next call look again."""
        self._known.pop(workspace_id, None)


def workspace_named(scope: Scope, caller: Caller) -> tuple[str, str] | None:
    """Return the workspace that a request is about, and what follows it in the path.

    It is that of the path, or of the engine whose secret was shown.
    """
    parts = scope["path"].split("/", 4)
    if len(parts) > 3 and parts[1] == "v1" and parts[2] in FAMILIES:
        try:
            return str(UUID(parts[3])), "/".join(parts[4:])
        except ValueError:
            return None
    if caller.kind is CallerKind.ENGINE and caller.workspace_id is not None:
        return caller.workspace_id, ""
    return None


CONNECT_SECONDS = 3.0
SILENCE_SECONDS = 3 * PING_SECONDS
"""An event stream without a byte for this long comes from a disconnected owner: a ping was due."""
KEPT_SECONDS = 30.0
"""How long an idle connection is reused: well before the other side closes it."""

log = logging.getLogger(__name__)


class ServiceUnreachableError(Exception):
    """The owner has not answered, and nothing was sent to the caller yet.

    `unseen` says that the request certainly did not reach it.
    """

    def __init__(self, unseen: bool) -> None:
        super().__init__()
        self.unseen = unseen


class Upstreams:
    """The connections to other services."""

    def __init__(self, home_id: str, stopping: asyncio.Event) -> None:
        self._home_id = home_id
        self._stopping = stopping
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._resources = ExitStack()

    async def close(self) -> None:
        """End every connection."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()
        self._resources.close()

    async def pass_on(
        self, url: str, scope: Scope, receive: Receive, send: Send, seconds: float | None = None
    ) -> None:
        """Pass a request on to the service at an address. A caller that leaves ends it there, too.

        Args:
            seconds: how long it may send nothing.

        Raises:
            ServiceUnreachableError: it did not answer.
            HTTPException: the request's body is too large.
        """
        body = _Body(receive)
        answer = _Answer(self._client(url), self._request(url, scope, body, seconds), send)
        passing = asyncio.create_task(answer.run())
        wait_left = asyncio.create_task(body.wait_left())
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({passing, wait_left, stop}, return_when=asyncio.FIRST_COMPLETED)
            if stop.done() and not answer.endless:
                await asyncio.wait({passing, wait_left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (passing, wait_left, stop):
                task.cancel()
            await asyncio.gather(passing, wait_left, stop, return_exceptions=True)
        if body.left:
            return
        if not passing.cancelled():
            passing.result()
        elif wait_left.cancelled():  # an event stream gets its regular end when this service stops
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _request(
        self, url: str, scope: Scope, body: "_Body", seconds: float | None
    ) -> "httpx.Request":
        import httpx  # 100 ms, and most services have no others

        headers = for_owner(scope["headers"], self._home_id)
        names = {name for name, _ in scope["headers"]}
        has_body = b"content-length" in names or b"transfer-encoding" in names
        if not has_body:
            body.nothing()
        target = scope.get("raw_path") or scope["path"].encode()
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        return httpx.Request(
            scope["method"],
            _base(url),
            headers=headers,
            content=body.chunks() if has_body else None,
            extensions={
                "target": target,  # the raw path: the library would normalize it
                # The owner and the caller limit the time of most calls.
                "timeout": httpx.Timeout(None, connect=CONNECT_SECONDS, read=seconds).as_dict(),
            },
        )

    def _client(self, url: str) -> "httpx.AsyncClient":
        import httpx

        if url not in self._clients:
            # It logs every address in full.
            logging.getLogger("httpx").setLevel(logging.WARNING)
            limits = httpx.Limits(
                max_connections=None, max_keepalive_connections=32, keepalive_expiry=KEPT_SECONDS
            )
            transport = httpx.AsyncHTTPTransport(
                # Without TLS nothing is verified, and reading the certificates costs 30 ms.
                verify=url.startswith("https:"),
                uds=self._socket(url),
                limits=limits,
            )
            self._clients[url] = httpx.AsyncClient(
                transport=transport, trust_env=False, follow_redirects=False
            )
        return self._clients[url]

    def _socket(self, url: str) -> str | None:
        if not url.startswith(UNIX):
            return None
        try:
            return self._resources.enter_context(socket_address(Path(url.removeprefix(UNIX))))
        except OSError as e:  # its directory is missing, or on another host
            raise ServiceUnreachableError(unseen=True) from e


class _Body:
    """The request body, and the disconnect of the caller."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read = asyncio.Event()
        self.left = False
        """The caller has disconnected."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        more = True
        try:
            while more:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    self.left = True
                    raise ConnectionError("the caller has left")
                if chunk := message.get("body", b""):
                    yield chunk
                more = message.get("more_body", False)
        finally:
            self._read.set()

    async def wait_left(self) -> None:
        """Wait until the caller has left. Reads only after the body: one task reads at a time."""
        await self._read.wait()
        while not self.left:
            self.left = (await self._receive())["type"] == "http.disconnect"

    def nothing(self) -> None:
        """Note that there is no body to be read."""
        self._read.set()


class _Answer:
    """The response of the owner."""

    def __init__(self, client: "httpx.AsyncClient", request: "httpx.Request", send: Send) -> None:
        self._client = client
        self._request = request
        self._send = send
        self.endless = False
        """It is an event stream."""

    async def run(self) -> None:
        import httpx

        try:
            response = await self._client.send(self._request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as e:
            raise ServiceUnreachableError(unseen=True) from e
        except httpx.TransportError as e:
            raise ServiceUnreachableError(unseen=False) from e
        try:
            await self._pass_back(response)
        except httpx.TransportError as e:
            # The caller must not take a part for the whole: without an end the server cuts the
            # connection.
            log.info("An answer of another service broke off: %s", e)
        finally:
            await response.aclose()

    async def _pass_back(self, response: "httpx.Response") -> None:
        kind = response.headers.get("content-type", "")
        self.endless = kind.startswith(EVENT_STREAM["content-type"].partition(";")[0])
        headers = for_caller(response.headers.raw)
        status = response.status_code
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        try:
            await self._pass_chunks(response)
        except TimeoutError:
            # It gets its regular end: the reader reconnects, and learns the state of the owner.
            log.info("A stream of another service fell silent, and is ended")
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pass_chunks(self, response: "httpx.Response") -> None:
        chunks = response.aiter_raw()
        while True:
            async with asyncio.timeout(SILENCE_SECONDS if self.endless else None):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})


def _base(url: str) -> str:
    return "http://quarterdeck" if url.startswith(UNIX) else url


FORGET = "forget"
"""The path below a workspace of the one request that is for a lost owner."""

AWAY = "owner_away"
"""In a request's state: why the owner was not called, for a person."""

_READING = ("GET", "HEAD")
_IN_ROWS = re.compile(r"|history|status|hooks|chats|chats/[^/]+/queue")
"""The paths below a workspace of reads that need only the database."""


class Forwarding:
    """Serves requests for this service's workspaces, and passes the others on."""

    def __init__(
        self,
        app: ASGIApp,
        context: ServiceContext,
        upstreams: Upstreams,
        take: Callable[[str], Awaitable[str | None]] | None,
    ) -> None:
        self._app = app
        self._context = context
        self._take = take
        self._owners = Owners(context.database)
        self._place = PoolPlace.of(context)
        self._upstreams = upstreams
        self._services: Remembered[str, ServiceRow] = Remembered(
            seconds=0, lost=lambda: context.database.lost
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if _creates(scope):
            await self._create(scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _create(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a service create a replica that has a prepared one for it, or this service."""
        messages: list[Message] = []
        service = None
        try:
            while not messages or messages[-1].get("more_body", False):
                messages.append(await receive())
            environment = _environment_in(messages)
            if environment is not None:
                service = await self._context.database.read(
                    lambda c: prepared_elsewhere(c, self._place, environment)
                )
            if service is not None:
                again = _repeated(messages, receive)
                await self._upstreams.pass_on(service.url, scope, again, send, CREATE_SECONDS)
                return
        except HTTPException:
            await _refuse_large(scope, receive, send)
            return
        except ServiceError as e:
            await error_response(e)(scope, receive, send)
            return
        except ServiceUnreachableError as e:
            assert service is not None  # it was called
            if not e.unseen:
                await error_response(_away(service, unseen=False))(scope, receive, send)
                return
        await self._app(scope, _repeated(messages, receive), send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            service, rest = await self._elsewhere(scope)
            stays = await self._why_not_taken(service, scope)
        except ServiceError as e:
            await error_response(e)(scope, receive, send)
            return
        if service is None or stays is None:
            await self._app(scope, receive, send)
            return
        try:
            await self._pass_on(service, scope, receive, send)
        except HTTPException:
            await _refuse_large(scope, receive, send)
        except ServiceUnreachableError as e:
            if await self._is_removed(scope):
                await self._app(scope, receive, send)
                return
            if _is_read_here(scope, rest):
                scope["state"][AWAY] = _away(service, unseen=True).message
                await self._app(scope, receive, send)
                return
            await error_response(_away(service, e.unseen, stays))(scope, receive, send)

    async def _why_not_taken(self, service: ServiceRow | None, scope: Scope) -> str | None:
        """Take over what a request is to change from a service that is gone; return why not, or None."""
        if service is None or service.alive or self._take is None or scope["method"] in _READING:
            return ""
        named = workspace_named(scope, scope["state"]["caller"])
        assert named is not None  # another service has it
        try:
            return await self._take(named[0])
        except SandboxError as e:
            return f"It was not taken over: {e}"

    async def _elsewhere(self, scope: Scope) -> tuple[ServiceRow | None, str]:
        """Return the other service that has the workspace, and the path below it; else None."""
        caller: Caller | None = scope.get("state", {}).get("caller")
        named = None
        if scope["type"] == "http" and caller is not None:
            named = workspace_named(scope, caller)
        if named is None or caller is None:
            return None, ""
        if (scope["method"], named[1]) == ("POST", FORGET):
            return None, ""
        owner = await self._owners.of(named[0])
        if owner is None or owner.home_id in (None, self._context.home_id):
            return None, ""
        if owner.organization_id != caller.organization_id:  # who gets only a 404
            return None, ""
        if any(name == MARK for name, _ in scope["headers"]):
            raise _misrouted(self._context.home_id, owner)
        return await self._find(owner), named[1]

    async def _is_removed(self, scope: Scope) -> bool:
        """Return whether the workspace was removed without its owner."""
        named = workspace_named(scope, scope["state"]["caller"])
        assert named is not None  # it was passed on
        self._owners.forget(named[0])
        return await self._owners.of(named[0]) is None

    async def _find(self, owner: Owner) -> ServiceRow:
        home, read = str(owner.home_id), self._context.database.read
        service = await self._services.get(
            home, lambda: read(lambda c: find_service(c, home, ALIVE))
        )
        return service or ServiceRow(home, "", "", alive=False)

    async def _pass_on(
        self, service: ServiceRow, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if not service.alive:
            raise ServiceUnreachableError(unseen=True)
        await self._upstreams.pass_on(service.url, scope, receive, send)


_CREATES = ("/v1/replica", "/v1/workspaces")
CREATE_SECONDS = 15.0
"""How long another service may take to answer a request that creates a replica."""


class _Creation(BaseModel):
    """What of a request decides whether a prepared replica fits."""

    environment_id: UUID
    size: str | None = None
    config: dict[str, Any] | None = None

    @property
    def takes_prepared(self) -> bool:
        starts = ("base", "pull_request", "uncommitted")
        own_start = any((self.config or {}).get(name) for name in starts)
        return self.size != "large" and not own_start


def _creates(scope: Scope) -> bool:
    """Return whether a request creates a replica, and was not passed on."""
    if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in _CREATES:
        return False
    return all(name != MARK for name, _ in scope["headers"])


def _environment_in(messages: Sequence[Message]) -> str | None:
    """Return the environment whose prepared replicas fit a request; None when none does."""
    body = b"".join(message.get("body", b"") for message in messages)
    try:
        creation = _Creation.model_validate_json(body)
    except ValidationError:
        return None
    return str(creation.environment_id) if creation.takes_prepared else None


def _repeated(messages: Sequence[Message], receive: Receive) -> Receive:
    """Return what receives the messages once more, and then the following ones."""
    again = iter(messages)

    async def next_one() -> Message:
        return next(again, None) or await receive()

    return next_one


async def _refuse_large(scope: Scope, receive: Receive, send: Send) -> None:
    error = ApiError(ErrorCode.PAYLOAD_TOO_LARGE, "The request's body is too large.")
    await error_response(error)(scope, receive, send)


def _is_read_here(scope: Scope, rest: str) -> bool:
    # `include` may request facts of the owner's host.
    plain = b"include" not in scope["query_string"]
    return scope["method"] == "GET" and plain and _IN_ROWS.fullmatch(rest) is not None


def _away(service: ServiceRow, unseen: bool, why: str = "") -> ApiError:
    state = "cannot be reached" if unseen else "was lost before it answered; it may have acted"
    seen = f", last seen at {service.seen_at}" if service.seen_at else ", never seen"
    return ApiError(
        ErrorCode.ENGINE_UNREACHABLE,
        f"The service that has this replica {state}. Start the service of home {service.home_id} "
        "again (qd serve on its host), or repair the line to it. If that home is lost for good, "
        f"remove the replica's record with qd replica forget.{why and ' '}{why}",
        f"home {service.home_id} at {service.url or 'no known address'}{seen}",
    )


def _misrouted(own: str, owner: Owner) -> ApiError:
    return ApiError(
        ErrorCode.ENGINE_UNREACHABLE,
        f"A request for the service of home {owner.home_id} came to another one. Start that "
        "service with an address that leads to it: qd serve --advertise URL.",
        f"came to home {own}",
    )
