"""An HTTP transport that connects only to addresses that it has judged."""

from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx

from quarterdeck.local.addresses import (
    Address,
    AddressRefusedError,
    check_address,
    numeric_address,
)
from quarterdeck.local.lookups import look_up
from quarterdeck.service.http_client import trusted_context
from quarterdeck.service.notifications.targets import PRIVATE


class GuardedTransport(httpx.AsyncBaseTransport):
    """Resolves the host of each request, judges the addresses, and connects to those it judged.

    TLS and the `Host` header keep the name. No connection is used twice: another name with the same
    address would be served over the connection of the first, whose certificate was checked.

    With `proxy` it uses the proxies of the environment. They resolve names themselves, so only
    addresses are judged before them.
    """

    def __init__(self, proxy: bool = False) -> None:
        trusted = trusted_context()
        self._proxies = {
            scheme: httpx.AsyncHTTPTransport(
                verify=trusted, proxy=url if "://" in url else f"http://{url}"
            )
            for scheme in ("http", "https")
            if proxy and (url := getproxies().get(scheme) or getproxies().get("all"))
        }
        self._inner = httpx.AsyncHTTPTransport(
            verify=trusted, limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the first of its host's addresses that can be connected to.

        Raises:
            httpx.ConnectError: no address may be reached, or none can be.
        """
        # As it is written: `host` decodes letters beyond ASCII, and another name may come of it when
        # they are encoded again.
        host, url = request.url.raw_host.decode("ascii"), request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        private = bool(request.extensions.get(PRIVATE))
        proxy = None if _is_here(host) or proxy_bypass(host) else self._proxies.get(url.scheme)
        if proxy is not None:
            if (address := numeric_address(host)) is not None:
                _check(address, private, request)
            return await proxy.handle_async_request(request)
        try:
            addresses = await look_up(host, port, private)
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
        for transport in (self._inner, *self._proxies.values()):
            await transport.aclose()


def _is_here(host: str) -> bool:
    """Return whether a host is this machine, which no proxy is for."""
    address = numeric_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _check(address: Address, private: bool, request: httpx.Request) -> None:
    try:
        check_address(address, private)
    except AddressRefusedError as e:
        raise httpx.ConnectError(str(e), request=request) from e
