"""An HTTP transport that connects only to addresses that it has judged."""

import asyncio
from typing import Any

import httpx

from quarterdeck.local.addresses import resolve

PRIVATE = "quarterdeck.private"
"""Extension of a request: whether it may reach private addresses. Without it, it may not."""


class GuardedTransport(httpx.AsyncBaseTransport):
    """Resolves the host of each request, judges the addresses, and connects to those it judged.

    TLS and the `Host` header keep the name. No connection is used twice: another name with the same
    address would be served over the connection of the first, whose certificate was checked.
    """

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the first of its host's addresses that can be connected to.

        Raises:
            httpx.ConnectError: no address may be reached, or none can be.
        """
        host, url = request.url.host, request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        private = bool(request.extensions.get(PRIVATE))
        try:
            addresses = await asyncio.to_thread(resolve, host, port, private)
        except OSError as e:
            raise httpx.ConnectError(str(e), request=request) from e
        extensions: dict[str, Any] = {**request.extensions, "sni_hostname": host}
        error = httpx.ConnectError(f"{host} has no address.", request=request)
        for address in addresses:
            placed = httpx.Request(
                request.method,
                url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions=extensions,
            )
            try:
                return await self._inner.handle_async_request(placed)
            except (httpx.ConnectError, httpx.ConnectTimeout) as e:
                error = e
        raise error

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()
