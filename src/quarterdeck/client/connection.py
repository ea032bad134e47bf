"""One HTTP connection to a service: requests, retries and errors."""

import asyncio
import codecs
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack, aclosing, asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self, TypeVar, cast
from uuid import UUID

import httpx
from httpx_sse import EventSource, ServerSentEvent
from pydantic import BaseModel, ValidationError

from quarterdeck.client.error_mapping import (
    CALL_PACE,
    CALL_TRIES,
    Backoff,
    api_error,
    mapped,
    wait_before,
)
from quarterdeck.client.errors import (
    ClientError,
    InvalidKeyError,
    ProtocolError,
    UnreachableError,
)
from quarterdeck.client.local_transport import LocalTransport
from quarterdeck.client.names import NEUTRAL, WireNames
from quarterdeck.local.addresses import without_password
from quarterdeck.local.sockets import socket_address
from quarterdeck.local.tls import pinned_context
from quarterdeck.wire.base import Patch
from quarterdeck.wire.json_size import has_too_many_values, with_bounded_integers

ANSWER_BYTES = 64 << 20
"""Most bytes of an answer that is read as a whole, after decompression."""
ERROR_BYTES = 1 << 20
"""Most bytes of an error that are read."""
MESSAGE_CHARACTERS = 64 << 20
"""Longest message of an event stream."""
MOST_FAULTS = 1_000
"""Most faults of an answer of which the first is named: only all of them can be asked for, which took seconds."""
DOWNLOAD_BYTES = 16 << 30
"""Most bytes of an answer that is passed on in parts."""

SMALL_BYTES = 1 << 20
"""Most bytes of a request's body that the limit for one write is enough for."""

LOCAL_URL = "http://localhost"
"""Base URL where the address is a unix socket."""

STALL_SECONDS = 45.0
"""A stream without a byte for this time is dead: a ping is due every 15 seconds."""

WORKSPACE_HEADER = "X-Workspace-Id"

Query = Mapping[str, str | int | bool | None]
Answer = TypeVar("Answer", bound=BaseModel)


class AsyncResource(ABC):
    """What is closed at the end of `async with`, or by `aclose`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """Release everything. Safe to call twice."""


class HttpConnection(AsyncResource):
    """Speaks HTTP with one service, over TCP or a unix socket.

    Only GET, and calls marked `repeatable`, are retried. Use as an async context manager, or
    call `aclose`.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None,
        *,
        socket: Path | None = None,
        ca: Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        names: WireNames = NEUTRAL,
        organization: str | None = None,
        workspace: UUID | None = None,
        timeout: float = 30.0,
        stall: float = STALL_SECONDS,
        pace: Backoff = CALL_PACE,
    ) -> None:
        """`timeout` is in seconds, for connecting and for each wait for bytes of an answer.

        `organization` is sent as the organization header, which a user token needs; `workspace` is set
        for calls from within that workspace, where the key is its engine's secret. With `socket` the
        host in `base_url` is only a name. `ca` is the file of a certificate to check the service's
        against, instead of the usual authorities. `transport` replaces the network, as in tests.

        Raises:
            InvalidKeyError: the key cannot be sent at all.
        """
        self.names = names
        self.endpoint = f"unix:{socket}" if socket else without_password(base_url)
        """The address as shown to people."""
        self._base_url = base_url
        self._headers = _headers(key, names, organization)
        if workspace is not None:
            self._headers[WORKSPACE_HEADER] = str(workspace)
        self._socket = socket
        self._ca = ca
        self._transport = transport
        self._timeout = httpx.Timeout(timeout, pool=None)
        self._stall = stall
        self._pace = pace
        self._resources = ExitStack()
        self._opened: httpx.AsyncClient | None = None
        self._closed = False

    async def aclose(self) -> None:
        """Close every connection to the service. Safe to call twice."""
        self._closed = True
        opened, self._opened = self._opened, None
        try:
            if opened is not None:
                await opened.aclose()
        finally:
            self._resources.close()

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
        sign: Callable[[bytes], Mapping[str, str]] | None = None,
        timeout: float | None = None,
        rename: Callable[[bytes], bytes] | None = None,
        if_match: str | None = None,
    ) -> Answer:
        """Make one call and read its answer.

        `if_match` is the entity tag of the state that a change is based on. An answer with a field
        `etag` gets that of its header.
        `repeatable` allows a retry after a connection error or 429, 502, 503, 504; GET is always
        repeatable. `keyless` leaves the key out. `sign` returns headers for the body that is sent.
        `rename` rewrites the answer's body before it is read.

        Raises:
            ResponseError: the service refused.
            LinkError: no usable answer came.
        """
        request = self._request(method, path, query, body, timeout)
        if keyless:
            request.headers.pop("Authorization", None)
        if sign is not None:
            request.headers.update(sign(request.content))
        if if_match is not None:
            request.headers["If-Match"] = if_match
        repeatable = repeatable or method in {"GET", "HEAD"}
        headers, content = await self._send(request, CALL_TRIES if repeatable else 1)
        result = self._read(f"{method} {path}", answer, rename(content) if rename else content)
        if "etag" in answer.model_fields:
            return result.model_copy(update={"etag": headers.get("ETag")})
        return result

    async def upload(
        self, path: str, answer: type[Answer], filename: str, content: bytes
    ) -> Answer:
        """Send one file as a form with the parts `file` and `filename`; never retried.

        Raises:
            ResponseError: the service refused.
            LinkError: no usable answer came.
        """
        parts = {"file": ("file", content), "filename": (None, filename.encode())}
        with mapped(self.endpoint):
            request = self._client().build_request("POST", path, files=parts)
        _, received = await self._send(request, 1)
        return self._read(f"POST {path}", answer, received)

    async def post_bytes(
        self, path: str, answer: type[Answer], content: bytes, timeout: float | None = None
    ) -> Answer:
        """Send bytes as they are; never retried.

        Raises:
            ResponseError: the service refused.
            LinkError: no usable answer came.
        """
        request = self._request("POST", path, None, None, timeout, content)
        request.headers["Content-Type"] = "application/octet-stream"
        _, received = await self._send(request, 1)
        return self._read(f"POST {path}", answer, received)

    @asynccontextmanager
    async def download(
        self,
        path: str,
        query: Query | None = None,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncGenerator[AsyncGenerator[bytes]]:
        """Open an answer that may be large; the block gets its bytes in parts.

        Args:
            content: the body of a POST; None makes it a GET.
            headers: sent in addition.

        Raises:
            ResponseError: the service refused.
            LinkError: it could not be opened, broke, or sent nothing for the stall time.
        """
        method = "GET" if content is None else "POST"
        request = self._request(method, path, query, None, self._stall, content)
        request.headers.update(headers)
        async with (
            self._streamed(request) as response,
            aclosing(self._parts(response, DOWNLOAD_BYTES)) as parts,
        ):
            yield parts

    @asynccontextmanager
    async def _streamed(self, request: httpx.Request) -> AsyncGenerator[httpx.Response]:
        response = await self._sent(request)
        try:
            self._check_encoding(response)
            if response.status_code != 200:
                raise api_error(response.status_code, response.headers, await self._error(response))
            yield response
        finally:
            await response.aclose()

    def _check_encoding(self, response: httpx.Response) -> None:
        """Raise an error for an encoding that was not asked for; several could hold endless data."""
        encodings = response.headers.get_list("Content-Encoding", split_commas=True)
        if len(encodings) > 1 or not {one.strip().lower() for one in encodings} <= _ENCODINGS:
            raise ProtocolError(
                f"{self.endpoint} compresses its answer in a way that was not asked for."
            )

    async def _parts(self, response: httpx.Response, limit: int) -> AsyncGenerator[bytes]:
        size = 0
        with mapped(self.endpoint):
            async for part in response.aiter_bytes():
                size += len(part)
                if size > limit:
                    raise ProtocolError(
                        f"{self.endpoint} answers with more than {limit >> 20} MiB.",
                        next_step="Ask who runs the service why.",
                    )
                yield part

    async def _content(self, response: httpx.Response) -> bytes:
        content = bytearray()
        async with aclosing(self._parts(response, ANSWER_BYTES)) as parts:
            async for part in parts:
                content += part
        return bytes(content)

    async def _error(self, response: httpx.Response) -> bytes:
        """Return the body of an error; nothing of one that is too long to be one."""
        content = bytearray()
        with mapped(self.endpoint):
            async for part in response.aiter_bytes():
                content += part
                if len(content) > ERROR_BYTES:
                    return b""
        return bytes(content)

    def _read(self, request: str, answer: type[Answer], content: bytes) -> Answer:
        bounded = bounded_json(content, f"The answer of {self.endpoint} to {request}")
        try:
            return answer.model_validate_json(bounded)
        except ValidationError as e:
            if (faults := e.error_count()) > MOST_FAULTS:
                reason = f"it has {faults:,} faults"
            else:
                first = e.errors(include_url=False, include_input=False)[0]
                where = ".".join(str(part) for part in first["loc"]) or "the body"
                reason = f"{where}: {first['msg']}"
            raise ProtocolError(
                f"The answer of {self.endpoint} to {request} could not be read: {reason}."
            ) from e

    @asynccontextmanager
    async def listen(
        self, path: str, last_event_id: str | None = None, *, body: BaseModel | None = None
    ) -> AsyncGenerator[AsyncGenerator[ServerSentEvent]]:
        """Open one event stream; the block gets its messages until the connection breaks.

        With a body it is a POST, which starts an operation that the stream reports on.

        Raises:
            ResponseError: the service refused the stream.
            LinkError: it could not be opened, broke, or sent nothing for the stall time.
        """
        method = "GET" if body is None else "POST"
        request = self._request(method, path, None, body, self._stall)
        request.headers["Accept"] = "text/event-stream"
        request.headers["Cache-Control"] = "no-store"
        if last_event_id is not None:
            request.headers["Last-Event-ID"] = last_event_id
        async with (
            self._streamed(request) as response,
            aclosing(self._messages(response)) as messages,
        ):
            yield messages

    async def _messages(self, response: httpx.Response) -> AsyncGenerator[ServerSentEvent]:
        text = _MessageText(response, self.endpoint)
        source = EventSource(cast(httpx.Response, text)).aiter_sse()
        with mapped(self.endpoint):
            try:
                async for message in source:
                    yield message
            finally:
                await source.aclose()

    async def _send(self, request: httpx.Request, tries: int) -> tuple[httpx.Headers, bytes]:
        """Send a request; return the headers and the body of its answer."""
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

    async def _once(self, request: httpx.Request) -> tuple[httpx.Headers, bytes]:
        response = await self._sent(request)
        try:
            self._check_encoding(response)
            if response.is_success:
                return response.headers, await self._content(response)
            if response.status_code < 400:
                raise ProtocolError(
                    f"{self.endpoint} answered with status {response.status_code}.",
                    next_step="Use the address that the service itself answers at.",
                )
            raise api_error(response.status_code, response.headers, await self._error(response))
        finally:
            await response.aclose()

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return the answer once its head is there.

        The time limits of the HTTP library start again with each part: interim responses could extend them forever.
        """
        limits = request.extensions["timeout"]
        small = int(request.headers.get("Content-Length", 0)) <= SMALL_BYTES
        seconds = 2 * limits["connect"] + limits["write"] + limits["read"] if small else None
        with mapped(self.endpoint):
            try:
                async with asyncio.timeout(seconds):
                    return await self._client().send(request, stream=True)
            except TimeoutError as e:
                raise httpx.ReadTimeout("No answer.") from e

    def _request(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: BaseModel | None,
        timeout: float | None,
        content: bytes | str | None = None,
    ) -> httpx.Request:
        headers: dict[str, str] = {}
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
            raise UnreachableError(f"The connection to {self.endpoint} was closed.")
        self._opened = httpx.AsyncClient(
            base_url=self._base_url,
            headers=self._headers,
            timeout=self._timeout,
            transport=self._transport or self._network(),
            limits=LIMITS,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        return self._opened

    def _network(self) -> httpx.AsyncBaseTransport | None:
        if self._socket is not None:
            address = self._resources.enter_context(socket_address(self._socket))
            return LocalTransport(address, LIMITS)
        if _is_plain_loopback(self._base_url):
            return LocalTransport(None, LIMITS)
        if self._ca is not None:
            return httpx.AsyncHTTPTransport(verify=pinned_context(self._ca), limits=LIMITS)
        return None


def bounded_json(content: bytes, name: str) -> bytes:
    """Return JSON of a service with numbers of at most 64 bits.

    Args:
        name: what the error calls it.

    Raises:
        ProtocolError: it has too many values, which would need much more memory than their text.
    """
    if has_too_many_values(content):
        raise ProtocolError(f"{name} has too many values.")
    return with_bounded_integers(content)


class _MessageText:
    """The text of a response as `EventSource` reads it, with a bound for each message."""

    def __init__(self, response: httpx.Response, endpoint: str) -> None:
        self.headers = response.headers
        self._response = response
        self._endpoint = endpoint

    async def aiter_text(self) -> AsyncGenerator[str]:
        """Yield the text in parts.

        Raises:
            ProtocolError: a message is too long.
        """
        size, end = 0, ""
        # The interface is UTF-8. The HTTP library would take any codec of Python that the server names.
        decoder = _UTF_8("replace")
        async for part in self._response.aiter_bytes():
            text = decoder.decode(part)
            ends = [match.end() for match in _BLANK_LINE.finditer(end + text)]
            size = len(end) + len(text) - ends[-1] if ends else size + len(text)
            if size > MESSAGE_CHARACTERS:
                raise ProtocolError(
                    f"{self._endpoint} sent a message of more than {MESSAGE_CHARACTERS >> 20} MiB.",
                    next_step="Ask who runs the service why.",
                )
            end = text[-3:]
            yield text


_UTF_8 = codecs.getincrementaldecoder("utf-8")
_BLANK_LINE = re.compile("(?:\r\n|\n|\r)(?:\r\n|\n|\r)")
_ENCODINGS = {"gzip", "deflate", "identity"}

LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=3.0)
"""Each stream needs a connection, so their number has no limit. Idle ones are dropped before a
server's usual five seconds, so that no request uses a connection that is being closed."""


def _headers(key: str | None, names: WireNames, organization: str | None) -> dict[str, str]:
    headers = {
        names.version_header: names.version,
        "Accept": "application/json",
        "Accept-Encoding": "gzip, deflate",
    }
    if key:
        if not (key.isascii() and key.isprintable()):
            raise InvalidKeyError("The API key holds characters that no key has.")
        headers["Authorization"] = f"Bearer {key}"
    if organization:
        headers[names.organization_header] = organization
    return headers


def _is_plain_loopback(url: str) -> bool:
    """Return whether this is loopback without TLS, which needs no proxy and no certificates."""
    parts = httpx.URL(url)
    if parts.scheme != "http":
        return False
    try:
        return ip_address(parts.host).is_loopback
    except ValueError:
        return parts.host == "localhost"
