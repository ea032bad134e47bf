"""How a device gets a user token (RFC 8628): it asks, the owner approves, it collects."""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import owner_of
from quarterdeck.service.identity.keys import hash_of
from quarterdeck.service.identity.settings import DeviceSettings
from quarterdeck.service.identity.tokens import LIFETIME_SECONDS, Tokens
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.device_codes import (
    DeviceRow,
    add_device,
    count_waiting,
    decide,
    find_device,
    forget_expired,
    note_poll,
    take_device,
)
from quarterdeck.wire import auth as wire
from quarterdeck.wire.errors import ErrorCode

SETTINGS = DeviceSettings()
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so that no words come out, and nothing that is taken for a digit."""
HALF = 4
KEPT = timedelta(hours=1)
"""For so long a device that comes too late is told so."""


@dataclass(frozen=True)
class _Outcome:
    user_id: str | None = None
    error: str = ""
    told: str = ""


async def begin(
    context: ServiceContext, base_url: str, by_owner: bool, settings: DeviceSettings = SETTINGS
) -> wire.DeviceCode:
    """Opens a request. One that the owner makes is approved at once.

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
            raise ApiError(
                ErrorCode.RATE_LIMITED,
                "Too many devices wait to be let in. Try again later.",
                retry_after=settings.expires_in,
            )
        user_code = _new_user_code()
        add_device(connection, hash_of(device_code), user_code, expires, user_id)
        return user_code

    try:
        user_code = await context.database.write(run)
    except IntegrityError:
        # The code is another device's: one in ten thousand million.
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
    """The token of an approved request, once.

    Raises:
        ApiError: INVALID_REQUEST whose text is the code of RFC 8628 or 6749.
    """
    now = context.clock()
    soon = moment_text(now - timedelta(seconds=settings.interval))
    digest = hash_of(device_code)

    def run(connection: Connection) -> _Outcome:
        row = find_device(connection, digest)
        return _UNKNOWN if row is None else _poll(connection, row, moment_text(now), soon)

    # Only what is known is written about: anybody may ask.
    known = await context.database.read(lambda c: find_device(c, digest))
    outcome = _UNKNOWN if known is None else await context.database.write(run)
    if outcome.user_id is None:
        raise refused(outcome.error, outcome.told)
    return wire.AccessToken(access_token=tokens.issue(outcome.user_id), expires_in=LIFETIME_SECONDS)


async def settle(context: ServiceContext, user_code: str, deny: bool) -> None:
    """Lets the device with a code in as the owner, or turns it away.

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


def refused(error: str, told: str) -> ApiError:
    """The answer of the token operation, whose `error` is the code of the RFC."""
    return ApiError(ErrorCode.INVALID_REQUEST, error, told)


_UNKNOWN = _Outcome(error=wire.INVALID_GRANT, told="device_code: not known, or used already")


def _poll(connection: Connection, row: DeviceRow, now: str, soon: str) -> _Outcome:
    if row.expires_at <= now:
        return _Outcome(error=wire.EXPIRED_TOKEN, told="Ask for a new device code.")
    if row.denied:
        return _Outcome(error=wire.ACCESS_DENIED, told="The owner has turned this device away.")
    if row.user_id is not None:
        return _Outcome(row.user_id) if take_device(connection, row.id) else _UNKNOWN
    note_poll(connection, row.id, now)
    if row.polled_at is not None and row.polled_at > soon:
        return _Outcome(error=wire.SLOW_DOWN, told="Wait five seconds longer between requests.")
    return _Outcome(error=wire.AUTHORIZATION_PENDING, told="Not approved yet; ask again.")


def _new_user_code() -> str:
    halves = ("".join(secrets.choice(LETTERS) for _ in range(HALF)) for _ in range(2))
    return "-".join(halves)
