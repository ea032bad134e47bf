"""Sign-in, API keys and people."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from time import monotonic
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.caches import Remembered
from quarterdeck.service.context import provide_caller
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.records import stored_word
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import now_text
from quarterdeck.service.identity.rows import (
    Person,
    add_member,
    add_user,
    find_user,
    known_user,
    only_organization,
    rename_user,
    role_of,
)
from quarterdeck.service.identity.tokens import ISSUER as OWN
from quarterdeck.service.identity.tokens import OutsideIssuer, RefusedTokenError, Tokens, issuer_of
from quarterdeck.wire.errors import ErrorCode

NO_ORGANIZATION = ""
"""The organization of a user token without the header, on a route that needs none."""

FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-real-ip")

BROWSER = ("origin", "sec-fetch-site")
"""Headers that only browsers send. Where the owner's socket is forwarded to a port, any web page may write
to it, and read its answers when it changes what its own name resolves to."""

OWNER = "owner"
"""In a request's state: it came over a unix socket from the user who runs the service."""

INSIDE = "inside"
"""In a request's state: it came over the socket for callers inside workspaces."""


class CallerKind(StrEnum):
    """The kind of a bearer."""

    ORGANIZATION_KEY = "organization_key"
    PERSONAL_KEY = "personal_key"
    USER_TOKEN = "user_token"
    ENGINE = "engine"


class MemberRole(StrEnum):
    """The role of a member of an organization."""

    ADMIN = "admin"
    MEMBER = "member"


@dataclass(frozen=True)
class Caller:
    """The authenticated side of a request.

    An organization key has no user and is an admin; an engine has no user, and `workspace_id`.
    `key_id` is the id of the key, if one was used.
    """

    organization_id: str
    user_id: str | None
    kind: CallerKind
    role: MemberRole = MemberRole.ADMIN
    workspace_id: str | None = None
    key_id: str | None = None


CallerDep = Annotated[Caller, Depends(provide_caller)]
"""Annotation of a route's parameter that takes the caller."""


def require_admin(caller: Caller, act: str) -> None:
    """Refuse a caller who is not an admin; `act` names the action.

    Raises:
        ApiError: FORBIDDEN.
    """
    if caller.role is not MemberRole.ADMIN:
        raise ApiError(ErrorCode.FORBIDDEN, f"Only an admin of the organization may {act}.")


async def _admin(caller: CallerDep) -> Caller:
    require_admin(caller, "do this")
    return caller


async def _user(caller: CallerDep) -> Caller:
    if caller.user_id is None:
        raise ApiError(
            ErrorCode.USER_REQUIRED, "This belongs to a user; an organization key has none."
        )
    return caller


async def _owner(request: Request) -> bool:
    # A forwarded request does not come from the user who runs the proxy.
    passed_on = any(name in request.headers for name in (*FORWARDED, *BROWSER))
    return not passed_on and bool(request.scope.get("state", {}).get(OWNER))


AdminDep = Annotated[Caller, Depends(_admin)]
"""As `CallerDep`; FORBIDDEN for a caller who is not an admin."""

UserDep = Annotated[Caller, Depends(_user)]
"""As `CallerDep`; USER_REQUIRED for a caller without a user."""

OwnerDep = Annotated[bool, Depends(_owner)]
"""Whether the caller is the owner of the installation, over a unix socket of their own."""


def bearer_of(header: str | None) -> str | None:
    """Return the token of an `Authorization` header, or None when it has no bearer."""
    scheme, _, token = (header or "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token else None


class Users:
    """Finds the user of a token; results are cached for a few seconds."""

    def __init__(
        self,
        database: Database,
        tokens: Tokens,
        outside: OutsideIssuer | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._database = database
        self._tokens = tokens
        self._outside = outside
        self._users: Remembered[bytes, str] = Remembered(now, lost=lambda: database.lost)
        self._roles: Remembered[tuple[str, str], MemberRole] = Remembered(
            now, lost=lambda: database.lost
        )

    async def user_of(self, token: str) -> str:
        """Return the id of a token's user; one of the outside issuer may be new.

        Raises:
            RefusedTokenError: it is not valid, or its user was deleted.
            ApiError: INTERNAL_ERROR: the outside issuer's keys cannot be fetched.
        """
        digest = sha256(token.encode()).digest()
        user = await self._users.get(digest, lambda: self._look(token))
        if user is None:
            raise RefusedTokenError("Its user was deleted")
        return user

    async def role_of(self, user_id: str, organization_id: str) -> MemberRole | None:
        """Return a user's role in an organization; None for a non-member."""

        async def look() -> MemberRole | None:
            read = self._database.read
            role = await read(lambda c: role_of(c, organization_id, user_id))
            return None if role is None else stored_word(role, MemberRole)

        return await self._roles.get((user_id, organization_id), look)

    def forget(self) -> None:
        """Clear the cache; call after a membership was removed."""
        self._users.forget()
        self._roles.forget()

    async def _look(self, token: str) -> str | None:
        issuer = issuer_of(token)
        if issuer == OWN:
            user_id = self._tokens.user_of(token)
            user = await self._database.read(lambda c: find_user(c, user_id))
            return None if user is None else user_id
        if self._outside is None or issuer != self._outside.settings.issuer:
            raise RefusedTokenError("Its issuer is not known here")
        person = await self._outside.person_of(token)
        return await self._known(person, self._outside.settings.new_users)

    async def _known(self, person: Person, role: str | None) -> str:
        user = await self._database.read(lambda c: known_user(c, person))
        if user is not None and user[1]:
            return user[0]
        try:
            return await self._database.write(lambda c: _store(c, person, role))
        except IntegrityError:
            # Another request of the same user was first.
            return await self._database.write(lambda c: _store(c, person, role))


def _store(connection: Connection, person: Person, role: str | None) -> str:
    user = known_user(connection, person)
    if user is not None:
        rename_user(connection, user[0], person)
        return user[0]
    now = now_text()
    user_id = add_user(connection, person, now)
    organization_id = only_organization(connection)
    if role is not None and organization_id is not None:
        add_member(connection, organization_id, user_id, role, now)
    return user_id
