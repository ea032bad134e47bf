"""API keys and sign-in with a device code."""

import secrets
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv6Address, ip_network
from math import ceil
from time import monotonic

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.local.addresses import numeric_address
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import api_keys
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import owner_of
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.authentication import Keys, hash_of, new_key, shown_prefix
from quarterdeck.service.identity.rows import (
    DeviceRow,
    KeyScope,
    add_device,
    add_key,
    count_waiting,
    decide,
    find_device,
    forget_expired,
    note_poll,
    organizations_of,
    page_of_keys,
    remove_key,
    take_device,
)
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.identity.tokens import LIFETIME_SECONDS, DeviceSettings, Tokens
from quarterdeck.service.quotas import require_room
from quarterdeck.wire import account as wire
from quarterdeck.wire.account import ApiKey, ApiKeyList, ApiKeyMade
from quarterdeck.wire.errors import ErrorCode


async def create_key(context: ServiceContext, scope: KeyScope, name: str) -> ApiKeyMade:
    """Create a key. Its text is only in the result.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    key, now = new_key(), moment_text(context.clock())

    def run(connection: Connection) -> ApiKey:
        require_room(connection, api_keys, scope.organization_id, scope.user_id)
        return add_key(connection, scope, name, shown_prefix(key), hash_of(key), now)

    stored = await context.database.write(run)
    return ApiKeyMade(api_key=stored, key=key)


async def list_keys(context: ServiceContext, scope: KeyScope, page: int, limit: int) -> ApiKeyList:
    """Return a page (from 1) of at most `limit` keys, newest first."""
    page_rows, total = await context.database.read(
        lambda c: page_of_keys(c, scope, (page - 1) * limit, limit)
    )
    pages = ceil(total / limit)
    return ApiKeyList(api_keys=page_rows, total=total, page=page, limit=limit, total_pages=pages)


async def delete_key(context: ServiceContext, keys: Keys, scope: KeyScope, key_id: str) -> None:
    """Remove a key; this service refuses it from now on.

    Raises:
        ApiError: NOT_FOUND.
    """
    removed = await context.database.write(
        lambda c: remove_key(c, scope, key_id), lambda _: keys.forget()
    )
    if not removed:
        raise ApiError(ErrorCode.NOT_FOUND, "No key has this id.", f"id: {key_id}")


async def key_organization(context: ServiceContext, caller: Caller) -> str:
    """Return the organization of a user's new key: the named one, else their only one.

    Raises:
        ApiError: ORG_HEADER_REQUIRED when there are several, or none.
    """
    if caller.organization_id:
        return caller.organization_id
    user_id = caller.user_id or ""
    organizations = await context.database.read(lambda c: organizations_of(c, user_id))
    if len(organizations) != 1:
        raise ApiError(
            ErrorCode.ORG_HEADER_REQUIRED,
            "Name the key's organization in the header Service-Org-Id.",
        )
    return str(organizations[0].id)


SETTINGS = DeviceSettings()
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so that there are no words, and no letters that look like digits."""
HALF = 4
KEPT = timedelta(hours=1)
"""How long an expired request is kept, so that a late device gets an exact error."""


class DeviceRequests:
    """Counts requests by peer, so that one that makes many keeps nobody else out.

    Peers that a header names may be made up by any program of this machine, so they share one half of
    the requests, and those that connect themselves the other.
    """

    def __init__(
        self, settings: DeviceSettings = SETTINGS, now: Callable[[], float] = monotonic
    ) -> None:
        self._settings = settings
        self._now = now
        self._taken: dict[bool, deque[tuple[float, str]]] = {False: deque(), True: deque()}
        """The moments and peers of requests, the oldest first; by whether a header named the peer."""
        self._counts: Counter[tuple[str, bool]] = Counter()

    def take(self, peer: str, forwarded: bool = False) -> None:
        """Count a request.

        Raises:
            ApiError: RATE_LIMITED while the peer, or all of its half, have made too many.
        """
        now, lasts, taken = self._now(), self._settings.expires_in, self._taken[forwarded]
        while taken and taken[0][0] <= now - lasts:
            _, gone = taken.popleft()
            self._counts[gone, forwarded] -= 1
            if not self._counts[gone, forwarded]:
                del self._counts[gone, forwarded]
        if self._counts[peer, forwarded] >= self._settings.of_peer:
            first = next(moment for moment, other in taken if other == peer)
            raise ApiError(
                ErrorCode.RATE_LIMITED,
                "Too many devices have asked for a login from this address. Try again later.",
                retry_after=ceil(first + lasts - now),
            )
        if len(taken) >= self._settings.waiting // 2:
            raise too_many(ceil(taken[0][0] + lasts - now))
        taken.append((now, peer))
        self._counts[peer, forwarded] += 1


def too_many(seconds: int) -> ApiError:
    """Return the error of a request while no more can wait."""
    return ApiError(
        ErrorCode.RATE_LIMITED,
        "Too many devices wait for approval. Try again later.",
        retry_after=seconds,
    )


def peer_of(host: str, header: str) -> tuple[str, bool]:
    """Return the name of a peer, its address or its network of IPv6, and whether the header named it.

    `header` is what a proxy on this machine has added the peer's address to.
    """
    address = numeric_address(host)
    named = None
    if address is not None and address.is_loopback and header:
        named = numeric_address(header.rpartition(",")[2].strip())
    address = named or address
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False)), named is not None
    return str(address or ""), named is not None


@dataclass(frozen=True)
class _Outcome:
    user_id: str | None = None
    error: str = ""
    description: str = ""


async def begin(
    context: ServiceContext, base_url: str, by_owner: bool, settings: DeviceSettings = SETTINGS
) -> wire.DeviceCode:
    """Open a request. One of the owner is approved at once.

    Raises:
        ApiError: RATE_LIMITED while too many wait.
    """
    user_id = await owner_of(context.database) if by_owner else None
    device_code = secrets.token_urlsafe(32)
    now = context.clock()
    expires = moment_text(now + timedelta(seconds=settings.expires_in))

    def run(connection: Connection) -> str:
        forget_expired(connection, moment_text(now - KEPT))
        if user_id is None and count_waiting(connection, moment_text(now)) >= settings.waiting:
            raise too_many(settings.expires_in)
        user_code = _new_user_code()
        add_device(connection, hash_of(device_code), user_code, expires, user_id)
        return user_code

    try:
        user_code = await context.database.write(run)
    except IntegrityError:
        # The code is taken: a chance of one in ten billion.
        user_code = await context.database.write(run)
    return wire.DeviceCode(
        device_code=device_code,
        user_code=user_code,
        verification_uri=f"{base_url.rstrip('/')}/v1/auth/verify",
        interval=settings.interval,
        expires_in=settings.expires_in,
    )


async def collect(
    context: ServiceContext,
    tokens: Tokens,
    device_code: str,
    settings: DeviceSettings = SETTINGS,
) -> wire.AccessToken:
    """Return the token of an approved request, once.

    Raises:
        ApiError: INVALID_REQUEST whose text is the code of RFC 8628 or 6749.
    """
    now = context.clock()
    soon = moment_text(now - timedelta(seconds=settings.interval))
    digest = hash_of(device_code)

    def run(connection: Connection) -> _Outcome:
        row = find_device(connection, digest)
        return _UNKNOWN if row is None else _poll(connection, row, moment_text(now), soon)

    # Anybody may poll, and get a code to poll with, as often as they like: few polls cause a write.
    known = await context.database.read(lambda c: find_device(c, digest))
    outcome = _UNKNOWN if known is None else _refusal(known, moment_text(now), soon)
    if outcome is None:
        outcome = await context.database.write(run)
    if outcome.user_id is None:
        raise refused(outcome.error, outcome.description)
    return wire.AccessToken(access_token=tokens.issue(outcome.user_id), expires_in=LIFETIME_SECONDS)


async def settle(context: ServiceContext, user_code: str, deny: bool) -> None:
    """Approve the device with a code as the owner, or deny it.

    Raises:
        ApiError: NOT_FOUND when no open request has the code.
    """
    letters = "".join(c for c in user_code.upper() if c.isalnum())
    code = f"{letters[:HALF]}-{letters[HALF:]}"
    user_id = None if deny else await owner_of(context.database)
    now = moment_text(context.clock())
    if not await context.database.write(lambda c: decide(c, code, user_id, now)):
        raise ApiError(
            ErrorCode.NOT_FOUND, "No device waits with this code. It may have expired.", "user_code"
        )


def refused(error: str, description: str) -> ApiError:
    """Return the error of the token operation, whose `error` is the code of the RFC."""
    return ApiError(ErrorCode.INVALID_REQUEST, error, description)


_UNKNOWN = _Outcome(error=wire.INVALID_GRANT, description="device_code: not known, or used already")


def _refusal(row: DeviceRow, now: str, soon: str) -> _Outcome | None:
    """Return why a poll changes nothing, if so."""
    if row.expires_at <= now:
        return _Outcome(error=wire.EXPIRED_TOKEN, description="Ask for a new device code.")
    if row.denied:
        return _Outcome(
            error=wire.ACCESS_DENIED, description="The owner has turned this device away."
        )
    if row.user_id is None and row.polled_at is not None and row.polled_at > soon:
        return _Outcome(
            error=wire.SLOW_DOWN, description="Wait five seconds longer between requests."
        )
    return None


def _poll(connection: Connection, row: DeviceRow, now: str, soon: str) -> _Outcome:
    if (refusal := _refusal(row, now, soon)) is not None:
        return refusal
    if row.user_id is not None:
        return _Outcome(row.user_id) if take_device(connection, row.id) else _UNKNOWN
    note_poll(connection, row.id, now)
    return _Outcome(error=wire.AUTHORIZATION_PENDING, description="Not approved yet; ask again.")


def _new_user_code() -> str:
    halves = ("".join(secrets.choice(LETTERS) for _ in range(HALF)) for _ in range(2))
    return "-".join(halves)
