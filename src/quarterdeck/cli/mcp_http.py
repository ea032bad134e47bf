"""The tools of `qd mcp` by URL: what the service answers at `/v1/mcp`."""

import asyncio
import gc
import logging
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response
from starlette.types import Message

from quarterdeck.local.home import Home
from quarterdeck.service.context import caller
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.service import bearer_of
from quarterdeck.service.middleware import BODY_LIMIT
from quarterdeck.wire.errors import ErrorCode

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from quarterdeck.client import Client

CALLS, OF_ORGANIZATION, OF_CALLER = 400, 200, 100
"""Most messages that are answered at once: in all, of an organization, and of a user or an organization's key.

One that waits takes three open files.
"""
BUSY_SECONDS = 1
"""Seconds for `Retry-After` beyond that."""


@dataclass(frozen=True)
class _Credentials:
    bearer: str | None
    organization: str | None


_credentials: ContextVar[_Credentials] = ContextVar("_credentials")
"""Of the message that is being answered; the SDK runs a tool in the context of its request."""


class HttpTools:
    """Answers messages one by one, and keeps nothing between them.

    A tool calls the service like every other client, over the home's socket and with the caller's
    own key or token, so it may do what the caller may do.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._loading = asyncio.Lock()
        self._server: MCPServer[dict[str, Any]] | None = None
        self._calls: Counter[str] = Counter()
        """By what each counts for, an empty string for all."""

    async def __call__(self, request: Request) -> Response:
        """Return the answer to the message in a request's body.

        Raises:
            ApiError: RATE_LIMITED.
        """
        who = caller(request)
        own = who.user_id or who.key_id or str(who.workspace_id)
        limits = {"": CALLS, who.organization_id: OF_ORGANIZATION, own: OF_CALLER}
        for holder, most in limits.items():
            if self._calls[holder] >= most:
                raise ApiError(
                    ErrorCode.RATE_LIMITED,
                    "Too many calls of tools run at once. Wait a little.",
                    f"at most {most}",
                    retry_after=BUSY_SECONDS,
                )
        self._calls.update(limits.keys())
        try:
            return await self._answer(request)
        finally:
            self._calls -= Counter(limits.keys())  # drops those without calls

    async def _answer(self, request: Request) -> Response:
        server = await self._loaded_server()
        from mcp.server.transport_security import TransportSecuritySettings

        headers = request.headers
        bearer = bearer_of(headers.get("authorization"))
        _credentials.set(_Credentials(bearer, headers.get("service-org-id")))
        # A manager for each message: whatever its tool has begun ends with it.
        server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=BODY_LIMIT,
            # The route refuses browsers; the names that lead to the service are not known here.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        manager = server.session_manager
        exchange = _Exchange(await request.body())
        async with manager.run():
            await manager.handle_request(request.scope, exchange.receive, exchange.send)
        return exchange.response()

    async def _loaded_server(self) -> "MCPServer[dict[str, Any]]":
        async with self._loading:
            if self._server is None:  # the SDK takes half a second to import
                self._server = await asyncio.to_thread(self._load)
            return self._server

    def _load(self) -> "MCPServer[dict[str, Any]]":
        from quarterdeck.cli.mcp_tools import replica_server

        for library in ("mcp", "httpx"):  # they log each message and each request
            logging.getLogger(library).setLevel(logging.WARNING)
        server = replica_server(self._client, lambda repository: repository)
        gc.freeze()  # as after the start of the service
        return server

    def _client(self) -> "Client":
        from quarterdeck.client import LOCAL_URL, Client, HttpConnection

        shown = _credentials.get()
        return Client(
            HttpConnection(
                LOCAL_URL, shown.bearer, socket=self._home.socket, organization=shown.organization
            )
        )


class _Exchange:
    """A request whose body is known, and the response to it."""

    def __init__(self, body: bytes) -> None:
        self._unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._start: Message = {}
        self._body = bytearray()

    async def receive(self) -> Message:
        """Return the body, then nothing: the route notices when the client disconnects."""
        if not self._unread:
            await asyncio.Event().wait()
        return self._unread.pop()

    async def send(self, message: Message) -> None:
        """Take a part of the response."""
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._body += message.get("body", b"")

    def response(self) -> Response:
        """Return the complete response."""
        headers = {name.decode(): value.decode() for name, value in self._start["headers"]}
        return Response(bytes(self._body), self._start["status"], headers)
