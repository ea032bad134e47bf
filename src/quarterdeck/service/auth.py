"""Who asks: bearer keys, looked up by their SHA-256."""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from typing import Annotated

from fastapi import Depends
from sqlalchemy import Connection, select

from quarterdeck.service.context import provide_caller
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import api_keys
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode

KEY_MARK = "sk_"
REMEMBERED_SECONDS = 5.0
"""A key taken away is refused after this long at the latest."""
REMEMBERED_KEYS = 1_000


class CallerKind(StrEnum):
    """What the bearer was."""

    ORGANIZATION_KEY = "organization_key"
    PERSONAL_KEY = "personal_key"
    USER_TOKEN = "user_token"
    ENGINE = "engine"


class Role(StrEnum):
    """What a member of an organization may do."""

    ADMIN = "admin"
    MEMBER = "member"


@dataclass(frozen=True)
class Caller:
    """The authenticated side of a request.

    An organization key has no user and is an admin; an engine has neither, and `workspace_id`.
    """

    organization_id: str
    user_id: str | None
    kind: CallerKind
    role: Role = Role.ADMIN
    workspace_id: str | None = None


CallerDep = Annotated[Caller, Depends(provide_caller)]
"""Annotation of a route's parameter that takes the caller."""


async def _admin(caller: CallerDep) -> Caller:
    if caller.role is not Role.ADMIN:
        raise ApiError(ErrorCode.FORBIDDEN, "Only an admin of the organization may do this.")
    return caller


async def _user(caller: CallerDep) -> Caller:
    if caller.user_id is None:
        raise ApiError(
            ErrorCode.USER_REQUIRED, "This belongs to a user; an organization key has none."
        )
    return caller


AdminDep = Annotated[Caller, Depends(_admin)]
"""As `CallerDep`; FORBIDDEN for who is no admin."""

UserDep = Annotated[Caller, Depends(_user)]
"""As `CallerDep`; USER_REQUIRED for a caller without a user."""


def new_key() -> str:
    """A key with 256 bits of chance."""
    return KEY_MARK + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def shown_prefix(key: str) -> str:
    """The part of a key that lists may show."""
    return key[: len(KEY_MARK) + 4]


def bearer_of(header: str | None) -> str | None:
    """The token of an `Authorization` header, or None when it holds no bearer."""
    scheme, _, token = (header or "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token else None


class Keys:
    """Finds the caller of a key; a found one is remembered for a few seconds.

    The key is only ever compared as a digest, inside an index look-up, so the time a look-up takes
    tells nothing about the keys there are.
    """

    def __init__(self, database: Database, now: Callable[[], float] = monotonic) -> None:
        self._database = database
        self._now = now
        self._found: dict[str, tuple[float, Caller]] = {}

    async def caller_of(self, key: str) -> Caller | None:
        """The caller that a key stands for, or None."""
        digest = hash_of(key)
        expires, remembered = self._found.get(digest, (0.0, None))
        if remembered is not None and self._now() < expires:
            return remembered
        self._found.pop(digest, None)
        found = await self._database.read(_lookup(digest))
        if found is not None:
            self._remember(digest, found)
        return found

    def forget(self) -> None:
        """Makes the next request of every key look again; call after a key was taken away."""
        self._found.clear()

    def _remember(self, digest: str, found: Caller) -> None:
        if len(self._found) >= REMEMBERED_KEYS:
            self._found.clear()
        self._found[digest] = (self._now() + REMEMBERED_SECONDS, found)


def _lookup(digest: str) -> Callable[[Connection], Caller | None]:
    statement = select(api_keys.c.organization_id, api_keys.c.user_id).where(
        api_keys.c.key_hash == digest
    )

    def run(connection: Connection) -> Caller | None:
        row = connection.execute(statement).first()
        if row is None:
            return None
        kind = CallerKind.ORGANIZATION_KEY if row.user_id is None else CallerKind.PERSONAL_KEY
        return Caller(row.organization_id, row.user_id, kind)

    return run
