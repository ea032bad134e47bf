"""One request passed on to another service, and its answer back, both as they come."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from quarterdeck.local.sockets import socket_address
from quarterdeck.service.forwarding.headers import for_caller, for_owner
from quarterdeck.service.presence import UNIX
from quarterdeck.service.streams import EVENT_STREAM

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 3.0
KEPT_SECONDS = 30.0
"""An idle connection is used again for so long: well before the other side closes it."""

log = logging.getLogger(__name__)


class Unreached(Exception):
    """The owner has not answered, and the caller was told nothing yet.

    `unseen` says that the request surely did not come to it.
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
        self._held = ExitStack()

    async def close(self) -> None:
        """Ends every connection."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()
        self._held.close()

    async def pass_on(self, url: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request by the service at an address. A caller that leaves ends it there, too.

        Raises:
            Unreached: it did not answer.
            HTTPException: the request's body is too large.
        """
        body = _Body(receive)
        answer = _Answer(self._client(url), self._request(url, scope, body), send)
        passing = asyncio.create_task(answer.run())
        gone = asyncio.create_task(body.gone())
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({passing, gone, stop}, return_when=asyncio.FIRST_COMPLETED)
            if stop.done() and not answer.endless:
                await asyncio.wait({passing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (passing, gone, stop):
                task.cancel()
            await asyncio.gather(passing, gone, stop, return_exceptions=True)
        if body.left:
            return
        if not passing.cancelled():
            passing.result()
        elif gone.cancelled():  # an event stream gets its regular end when this service stops
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _request(self, url: str, scope: Scope, body: "_Body") -> "httpx.Request":
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
            # The path as it came: the library would tidy it up.
            extensions={"target": target},
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
            # What a call may take is the owner's to say, and the caller's.
            patience = httpx.Timeout(None, connect=CONNECT_SECONDS)
            self._clients[url] = httpx.AsyncClient(
                transport=transport, timeout=patience, trust_env=False, follow_redirects=False
            )
        return self._clients[url]

    def _socket(self, url: str) -> str | None:
        if not url.startswith(UNIX):
            return None
        try:
            return self._held.enter_context(socket_address(Path(url.removeprefix(UNIX))))
        except OSError as e:  # its directory is gone, or is another host's
            raise Unreached(unseen=True) from e


class _Body:
    """What the caller sends, and the sign that the caller has left."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read = asyncio.Event()
        self.left = False
        """The caller is not there any more."""

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

    async def gone(self) -> None:
        """Returns when the caller has left. Looks only once the body was read: one reads at a time."""
        await self._read.wait()
        while not self.left:
            self.left = (await self._receive())["type"] == "http.disconnect"

    def nothing(self) -> None:
        """There is no body to be read."""
        self._read.set()


class _Answer:
    """The answer on its way back."""

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
            raise Unreached(unseen=True) from e
        except httpx.TransportError as e:
            raise Unreached(unseen=False) from e
        try:
            await self._pass_back(response)
        except httpx.TransportError as e:
            # The caller must not take a part for the whole: without an end the server cuts the line.
            log.info("An answer of another service broke off: %s", e)
        finally:
            await response.aclose()

    async def _pass_back(self, response: "httpx.Response") -> None:
        kind = response.headers.get("content-type", "")
        self.endless = kind.startswith(EVENT_STREAM["content-type"].partition(";")[0])
        headers = for_caller(response.headers.raw)
        status = response.status_code
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        async for chunk in response.aiter_raw():
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _base(url: str) -> str:
    return "http://quarterdeck" if url.startswith(UNIX) else url
