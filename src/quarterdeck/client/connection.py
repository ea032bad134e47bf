"""One connection to a service: address, key, retries, and nothing of any resource."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from uuid import UUID

import httpx
from httpx_sse import EventSource, ServerSentEvent
from pydantic import BaseModel, ValidationError

from quarterdeck.client.errors import BadKey, ClientError, ProtocolError, Unreachable
from quarterdeck.client.faults import api_error, mapped
from quarterdeck.client.names import NEUTRAL, WireNames
from quarterdeck.client.retry import CALL_PACE, CALL_TRIES, Pace, wait_before
from quarterdeck.local.sockets import socket_address
from quarterdeck.wire.base import Patch

LOCAL_URL = "http://localhost"
"""Base URL where the address is a unix socket."""

STALL_SECONDS = 45.0
"""A stream without a byte for so long is dead: a ping is due every 15 seconds."""

WORKSPACE_HEADER = "X-Workspace-Id"

Query = Mapping[str, str | int | bool | None]
Answer = TypeVar("Answer", bound=BaseModel)


class Connection:
    """Speaks HTTP with one service, over TCP or a unix socket.

    Only GET, and calls marked `repeatable`, are tried again. Use as an async context manager, or
    call `aclose`.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None,
        *,
        socket: Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        names: WireNames = NEUTRAL,
        organization: str | None = None,
        workspace: UUID | None = None,
        timeout: float = 30.0,
        stall: float = STALL_SECONDS,
        pace: Pace = CALL_PACE,
    ) -> None:
        """`timeout` is in seconds, for connecting and for each wait for bytes of an answer.

        `organization` is sent as the organization header, which a user token needs; `workspace` says
        whose engine's secret the key is, for the calls from within a workspace. With `socket` the
        host in `base_url` is only a name. `transport` replaces the network, as in tests.

        Raises:
            BadKey: the key cannot be sent at all.
        """
        self.names = names
        self.endpoint = f"unix:{socket}" if socket else base_url
        """The address as a person knows it."""
        self._base_url = base_url
        self._headers = _headers(key, names, organization)
        if workspace is not None:
            self._headers[WORKSPACE_HEADER] = str(workspace)
        self._socket = socket
        self._transport = transport
        self._timeout = httpx.Timeout(timeout, pool=None)
        self._stall = stall
        self._pace = pace
        self._held = ExitStack()
        self._opened: httpx.AsyncClient | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes every connection to the service. Safe to call twice."""
        self._closed = True
        opened, self._opened = self._opened, None
        try:
            if opened is not None:
                await opened.aclose()
        finally:
            self._held.close()

    async def call(
        self,
        method: str,
        path: str,
        answer: type[Answer],
        *,
        query: Query | None = None,
        body: BaseModel | None = None,
        repeatable: bool = False,
        keyless: bool = False,
        timeout: float | None = None,
        rename: Callable[[bytes], bytes] | None = None,
    ) -> Answer:
        """Makes one call and reads its answer.

        `repeatable` allows another try after a fault of the line or 429, 502, 503, 504; GET always
        is. `keyless` leaves the key out. `rename` rewrites the answer's body before it is read.

        Raises:
            ApiError: the service refused.
            LinkError: no usable answer came.
        """
        request = self._request(method, path, query, body, timeout)
        if keyless:
            request.headers.pop("Authorization", None)
        repeatable = repeatable or method in {"GET", "HEAD"}
        content = await self._send(request, CALL_TRIES if repeatable else 1)
        return self._read(f"{method} {path}", answer, rename(content) if rename else content)

    async def upload(
        self, path: str, answer: type[Answer], filename: str, content: bytes
    ) -> Answer:
        """Sends one file as a form with the parts `file` and `filename`; never tried again.

        Raises:
            ApiError: the service refused.
            LinkError: no usable answer came.
        """
        parts = {"file": ("file", content), "filename": (None, filename.encode())}
        with mapped(self.endpoint):
            request = self._client().build_request("POST", path, files=parts)
        return self._read(f"POST {path}", answer, await self._send(request, 1))

    def _read(self, asked: str, answer: type[Answer], content: bytes) -> Answer:
        try:
            return answer.model_validate_json(content)
        except ValidationError as e:
            first = e.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the body"
            raise ProtocolError(
                f"The answer of {self.endpoint} to {asked} could not be read:"
                f" {where}: {first['msg']}."
            ) from e

    @asynccontextmanager
    async def listen(
        self, path: str, last_event_id: str | None = None, *, body: BaseModel | None = None
    ) -> AsyncGenerator[AsyncGenerator[ServerSentEvent]]:
        """Opens one event stream; the block gets its messages until the line breaks.

        With a body it is posted: that begins something, which the stream then tells of.

        Raises:
            ApiError: the service refused the stream.
            LinkError: it could not be opened, or broke, or stood still for the stall time.
        """
        method = "GET" if body is None else "POST"
        request = self._request(method, path, None, body, self._stall)
        request.headers["Accept"] = "text/event-stream"
        request.headers["Cache-Control"] = "no-store"
        if last_event_id is not None:
            request.headers["Last-Event-ID"] = last_event_id
        with mapped(self.endpoint):
            response = await self._client().send(request, stream=True)
        try:
            if response.status_code != 200:
                with mapped(self.endpoint):
                    await response.aread()
                raise api_error(response.status_code, response.headers, response.content)
            messages = self._messages(response)
            try:
                yield messages
            finally:
                await messages.aclose()
        finally:
            await response.aclose()

    async def _messages(self, response: httpx.Response) -> AsyncGenerator[ServerSentEvent]:
        source = EventSource(response).aiter_sse()
        with mapped(self.endpoint):
            try:
                async for message in source:
                    yield message
            finally:
                await source.aclose()

    async def _send(self, request: httpx.Request, tries: int) -> bytes:
        attempt = 0
        while True:
            try:
                return await self._once(request)
            except ClientError as e:
                attempt += 1
                wait = wait_before(e, attempt - 1, self._pace) if attempt < tries else None
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def _once(self, request: httpx.Request) -> bytes:
        with mapped(self.endpoint):
            response = await self._client().send(request)
        if response.is_success:
            return response.content
        if response.status_code < 400:
            raise ProtocolError(
                f"{self.endpoint} answered with status {response.status_code}.",
                next_step="Use the address that the service itself answers at.",
            )
        raise api_error(response.status_code, response.headers, response.content)

    def _request(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: BaseModel | None,
        timeout: float | None,
    ) -> httpx.Request:
        headers: dict[str, str] = {}
        content = None
        if body is not None:
            partial = isinstance(body, Patch)
            content = body.model_dump_json(
                by_alias=True, exclude_unset=partial, exclude_none=not partial
            )
            headers["Content-Type"] = "application/json"
        params = {name: value for name, value in (query or {}).items() if value is not None}
        with mapped(self.endpoint):
            request = self._client().build_request(
                method, path, params=params or None, content=content, headers=headers
            )
        if timeout is not None:
            request.extensions["timeout"] = {**self._timeout.as_dict(), "read": timeout}
        return request

    def _client(self) -> httpx.AsyncClient:
        if self._opened is not None:
            return self._opened
        if self._closed:
            raise Unreachable(f"The connection to {self.endpoint} was closed.")
        self._opened = httpx.AsyncClient(
            base_url=self._base_url,
            headers=self._headers,
            timeout=self._timeout,
            transport=self._transport or self._network(),
            limits=LIMITS,
        )
        return self._opened

    def _network(self) -> httpx.AsyncBaseTransport | None:
        if self._socket is not None:
            address = self._held.enter_context(socket_address(self._socket))
            return httpx.AsyncHTTPTransport(uds=address, verify=False, limits=LIMITS)
        if _is_plain_loopback(self._base_url):
            return httpx.AsyncHTTPTransport(verify=False, limits=LIMITS, trust_env=False)
        return None


LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=3.0)
"""Streams hold connections, so their number has no bound. Idle ones are dropped before the usual
five seconds of a server, so that no request meets a connection that is being closed."""


def _headers(key: str | None, names: WireNames, organization: str | None) -> dict[str, str]:
    headers = {names.version_header: names.version, "Accept": "application/json"}
    if key:
        if not (key.isascii() and key.isprintable()):
            raise BadKey("The API key holds characters that no key has.")
        headers["Authorization"] = f"Bearer {key}"
    if organization:
        headers[names.organization_header] = organization
    return headers


def _is_plain_loopback(url: str) -> bool:
    """Loopback without TLS: no proxy may come between, and no certificates need loading."""
    parts = httpx.URL(url)
    if parts.scheme != "http":
        return False
    try:
        return ip_address(parts.host).is_loopback
    except ValueError:
        return parts.host == "localhost"
