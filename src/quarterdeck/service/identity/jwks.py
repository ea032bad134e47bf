"""The public keys of an outside issuer, fetched from its JWKS URL and kept for a while."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import jwt

from quarterdeck.service.errors import ApiError, StartError
from quarterdeck.wire.errors import ErrorCode

if TYPE_CHECKING:
    import httpx

FRESH_SECONDS = 600.0
"""Keys are fetched anew after this time, so that withdrawn ones end."""
RETRY_SECONDS = 10.0
"""An unknown key asks for a new list at most this often, whoever sends tokens."""
FETCH_SECONDS = 5.0
BYTES = 1 << 20

ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""What a key of each type may have signed. Shared secrets (HS...) are never taken from outside."""

log = logging.getLogger(__name__)


class KeySet:
    """The keys by their `kid`."""

    def __init__(self, url: str, now: Callable[[], float] = monotonic) -> None:
        """Fetches nothing yet.

        Raises:
            StartError: the URL would be fetched over a line that others can write on.
        """
        _check(url)
        self._url = url
        self._now = now
        self._keys: dict[str, Mapping[str, Any]] = {}
        self._fetched: float | None = None
        self._tried: float | None = None
        self._lock = asyncio.Lock()

    async def find(self, kid: str | None) -> Mapping[str, Any] | None:
        """The key of a `kid`; without one, the only key when there is only one.

        Raises:
            ApiError: INTERNAL_ERROR: no keys could be fetched, and none are kept.
        """
        found = self._look(kid)
        if found is None or not self._is_fresh():
            await self._refresh()
            found = self._look(kid)
        return found

    def _look(self, kid: str | None) -> Mapping[str, Any] | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    def _is_fresh(self) -> bool:
        return self._fetched is not None and self._now() - self._fetched < FRESH_SECONDS

    async def _refresh(self) -> None:
        async with self._lock:
            if self._tried is None or self._now() - self._tried >= RETRY_SECONDS:
                self._tried = self._now()
                await self._fetch()
        if self._fetched is None:
            raise ApiError(
                ErrorCode.INTERNAL_ERROR,
                "The identity provider's keys cannot be fetched; the service's log says why.",
            )

    async def _fetch(self) -> None:
        import httpx  # only an installation with an outside issuer needs it

        try:
            async with asyncio.timeout(FETCH_SECONDS), httpx.AsyncClient() as client:
                keys = _read(await _download(client, self._url))
        except (httpx.HTTPError, TimeoutError, ValueError) as e:
            log.error("The issuer's keys could not be fetched: %s", e or type(e).__name__)
            return
        self._keys, self._fetched = keys, self._now()


async def _download(client: "httpx.AsyncClient", url: str) -> bytes:
    body = b""
    async with client.stream("GET", url) as response:
        response.raise_for_status()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > BYTES:
                raise ValueError("the list of keys is too long")
    return body


def _read(body: bytes) -> dict[str, Mapping[str, Any]]:
    """The keys for signatures in a list.

    Raises:
        ValueError: it is no list of keys.
    """
    listed = _object(json.loads(body)).get("keys")
    if not isinstance(listed, list):
        raise ValueError("the answer holds no list of keys")
    keys: dict[str, Mapping[str, Any]] = {}
    for position, one in enumerate(map(_object, cast("list[Any]", listed))):
        # Keys for encryption, and kinds that we do not take, are left out.
        if one.get("kty") in ALGORITHMS and one.get("use", "sig") == "sig":
            keys[str(one.get("kid") or f"#{position}")] = one
    return keys


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def public_key(key: Mapping[str, Any], algorithm: str) -> jwt.PyJWK:
    """The key, for the algorithm that a token names.

    Raises:
        jwt.PyJWTError: the key is malformed, or not for this algorithm.
    """
    declared = key.get("alg", algorithm)
    if algorithm not in ALGORITHMS[key["kty"]] or declared != algorithm:
        raise jwt.InvalidAlgorithmError("The algorithm is not the key's")
    return jwt.PyJWK(dict(key), algorithm)


def _check(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and _is_loopback(parts.hostname or ""):
        return
    raise StartError(f"The JWKS URL {url} must begin with https:// (http:// on loopback only).")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
