"""Who asks, as routes see it. How they are known: `service.identity`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Request

from quarterdeck.service.context import provide_caller
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode

NO_ORGANIZATION = ""
"""The organization of a user token on a route that needs none, and no header named one."""

FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-real-ip")

OWNER = "owner"
"""In a request's state: it came over a unix socket from the user who runs the service."""

INSIDE = "inside"
"""In a request's state: it came over the socket for callers inside workspaces."""


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

    An organization key has no user and is an admin; an engine has no user, and `workspace_id`.
    `key_id` is that of the key that was shown.
    """

    organization_id: str
    user_id: str | None
    kind: CallerKind
    role: Role = Role.ADMIN
    workspace_id: str | None = None
    key_id: str | None = None


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


async def _owner(request: Request) -> bool:
    # What a proxy passes on is not the proxy's own, whoever runs it.
    passed_on = any(name in request.headers for name in FORWARDED)
    return not passed_on and bool(request.scope.get("state", {}).get(OWNER))


AdminDep = Annotated[Caller, Depends(_admin)]
"""As `CallerDep`; FORBIDDEN for who is no admin."""

UserDep = Annotated[Caller, Depends(_user)]
"""As `CallerDep`; USER_REQUIRED for a caller without a user."""

OwnerDep = Annotated[bool, Depends(_owner)]
"""Whether the owner of the installation asks, over a unix socket that is theirs alone."""


def bearer_of(header: str | None) -> str | None:
    """The token of an `Authorization` header, or None when it holds no bearer."""
    scheme, _, token = (header or "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token else None
