"""Access tokens: issued here and by others."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import jwt

from quarterdeck.service.errors import ApiError, StartError
from quarterdeck.service.http_client import open_client, read_answer
from quarterdeck.service.identity.rows import Person
from quarterdeck.service.listeners import is_loopback
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.errors import ErrorCode

ISSUER = "quarterdeck"
AUDIENCE = "quarterdeck"
ALGORITHM = "HS256"
USE = "user tokens"
"""The purpose of the vault's key that signs them."""
LIFETIME_SECONDS = 3_600
LEEWAY_SECONDS = 120
"""How far the clocks of two machines may differ: of two services, or of a service and an issuer."""


class RefusedTokenError(Exception):
    """A token is not accepted. `args[0]` is the reason, which may be shown."""


class Tokens:
    """Issues and reads tokens; services with the same vault can read them too."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def issue(self, user_id: str) -> str:
        """Return a token of a user, valid from now on for `LIFETIME_SECONDS`."""
        now = utc_now()
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": user_id,
            "iat": now,
            "exp": now + timedelta(seconds=LIFETIME_SECONDS),
            "jti": str(uuid4()),
        }
        return jwt.encode(claims, self._key, ALGORITHM)

    def user_of(self, token: str) -> str:
        """Return the id of the user that a token was issued to.

        Raises:
            RefusedTokenError: it is not valid.
        """
        options: Any = {"require": ["exp", "iat", "sub"]}
        try:
            claims = jwt.decode(
                token,
                self._key,
                [ALGORITHM],
                options,
                audience=AUDIENCE,
                issuer=ISSUER,
                leeway=LEEWAY_SECONDS,
            )
            return str(UUID(claims["sub"]))
        except jwt.InvalidTokenError as e:
            raise RefusedTokenError(str(e)) from e
        except ValueError as e:
            raise RefusedTokenError("The subject is not a user of this service") from e


def issuer_of(token: str) -> str | None:
    """Return the issuer in a token, without any verification.

    Raises:
        RefusedTokenError: it is not a token.
    """
    options: Any = {"verify_signature": False}
    try:
        issuer = jwt.decode(token, options=options).get("iss")
    except jwt.InvalidTokenError as e:
        raise RefusedTokenError(str(e)) from e
    return issuer if isinstance(issuer, str) else None


def is_token(bearer: str) -> bool:
    """Return whether a bearer has the form of a token; keys and secrets have no dots."""
    return bearer.count(".") == 2


FRESH_SECONDS = 600.0
"""Keys are fetched again after this time, so that withdrawn ones end."""
RETRY_SECONDS = 10.0
"""An unknown key causes a new fetch at most this often."""
FETCH_SECONDS = 5.0
BYTES = 1 << 20

ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""The algorithms of each key type. Shared secrets (HS...) are never accepted from outside."""

log = logging.getLogger(__name__)


class KeySet:
    """The keys by their `kid`."""

    def __init__(self, url: str, now: Callable[[], float] = monotonic) -> None:
        """Fetch nothing yet.

        Raises:
            StartError: the URL would be fetched over an insecure connection.
        """
        _check(url)
        self._url = url
        self._now = now
        self._keys: dict[str, Mapping[str, Any]] = {}
        self._fetched: float | None = None
        self._tried: float | None = None
        self._lock = asyncio.Lock()

    async def find(self, kid: str | None) -> Mapping[str, Any] | None:
        """Return the key of a `kid`; without one, the only key when there is only one.

        Raises:
            ApiError: INTERNAL_ERROR: no keys could be fetched, and none are kept.
        """
        key = self._look(kid)
        if key is None or not self._is_fresh():
            await self._refresh()
            key = self._look(kid)
        return key

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
                "The identity provider's keys cannot be fetched; see the service's log.",
            )

    async def _fetch(self) -> None:
        import httpx  # only an installation with an outside issuer needs it

        try:
            async with (
                asyncio.timeout(FETCH_SECONDS),
                open_client(FETCH_SECONDS) as client,
                client.stream("GET", self._url) as answer,
            ):
                answer.raise_for_status()
                keys = _read(await read_answer(answer, BYTES))
        except (httpx.HTTPError, TimeoutError, ValueError, RecursionError) as e:
            log.error("The issuer's keys could not be fetched: %s", e or type(e).__name__)
            return
        self._keys, self._fetched = keys, self._now()


def _read(body: bytes) -> dict[str, Mapping[str, Any]]:
    """Return the keys for signatures in a list.

    Raises:
        ValueError: it is not a list of keys.
    """
    listed = _object(json.loads(body)).get("keys")
    if not isinstance(listed, list):
        raise ValueError("the answer holds no list of keys")
    keys: dict[str, Mapping[str, Any]] = {}
    for position, key in enumerate(map(_object, cast("list[Any]", listed))):
        # Keys for encryption, and unsupported types, are skipped.
        if key.get("kty") in ALGORITHMS and key.get("use", "sig") == "sig":
            keys[str(key.get("kid") or f"#{position}")] = key
    return keys


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def public_key(key: Mapping[str, Any], algorithm: str) -> jwt.PyJWK:
    """Return the key, for the algorithm that a token names.

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
    if parts.scheme == "http" and is_loopback(parts.hostname or ""):
        return
    raise StartError(f"The JWKS URL {url} must begin with https:// (http:// on loopback only).")


@dataclass(frozen=True)
class IssuerSettings:
    """An outside identity provider.

    `jwks_url` is https, or http on a loopback address. Without an `audience` only tokens that name
    none are accepted. `new_users` is the role that a user seen for the first time gets in this
    installation's organization, `admin` or `member`; None makes them a member of nothing.
    """

    issuer: str
    jwks_url: str
    audience: str | None = None
    new_users: str | None = None


@dataclass(frozen=True)
class IdentitySettings:
    """`requests_per_minute` is a limit per key or user; None is no limit."""

    issuer: IssuerSettings | None = None
    requests_per_minute: int | None = None


NO_SETTINGS = IdentitySettings()


@dataclass(frozen=True)
class DeviceSettings:
    """Times of a device's sign-in, in seconds."""

    expires_in: int = 600
    interval: int = 5
    waiting: int = field(default=10_000)
    """Maximum number of requests that wait for approval."""
    of_peer: int = 30
    """Maximum number of requests of one peer within `expires_in`."""


SUBJECT_LIMIT = 200
EMAIL_LIMIT = 320
NAME_LIMIT = 200


class OutsideIssuer:
    """Reads tokens of one issuer, checked against its published keys."""

    def __init__(self, settings: IssuerSettings, keys: KeySet) -> None:
        self.settings = settings
        self._keys = keys

    async def person_of(self, token: str) -> Person:
        """Return who a token was issued to.

        Raises:
            RefusedTokenError: it is not valid.
            ApiError: INTERNAL_ERROR: the issuer's keys cannot be fetched.
        """
        try:
            header = jwt.get_unverified_header(token)
            kid, algorithm = header.get("kid"), header.get("alg")
            key = await self._keys.find(kid)
            if key is None or not isinstance(algorithm, str):
                raise RefusedTokenError("No key of the issuer has signed it")
            # Checking a signature takes long enough to delay other requests.
            claims = await asyncio.to_thread(self._claims, token, public_key(key, algorithm))
        except jwt.PyJWTError as e:
            raise RefusedTokenError(str(e)) from e
        return self._person(claims)

    def _claims(self, token: str, key: jwt.PyJWK) -> dict[str, Any]:
        options: Any = {"require": ["exp", "sub", "iss"]}
        return jwt.decode(
            token,
            key,
            [key.algorithm_name],
            options,
            audience=self.settings.audience,
            issuer=self.settings.issuer,
            leeway=LEEWAY_SECONDS,
        )

    def _person(self, claims: dict[str, Any]) -> Person:
        subject = claims["sub"]
        if not subject or len(subject) > SUBJECT_LIMIT or not subject.isprintable():
            raise RefusedTokenError("The subject cannot be stored")
        email, name = claims.get("email"), claims.get("name")
        return Person(
            self.settings.issuer, subject, _text(email, EMAIL_LIMIT), _text(name, NAME_LIMIT)
        )


def _text(value: Any, limit: int) -> str | None:
    """Return a claim that can be shown, or None."""
    usable = isinstance(value, str) and value.isprintable() and 0 < len(value) <= limit
    return value if usable else None
