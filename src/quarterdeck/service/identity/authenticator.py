"""Turns what a request shows into its caller, or refuses it."""

from dataclasses import dataclass, replace
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request
from starlette.types import Scope

from quarterdeck.service.auth import NO_ORGANIZATION, Caller, CallerKind, Role
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.doors import Door, Doors
from quarterdeck.service.identity.engines import engine_caller
from quarterdeck.service.identity.issuer import OutsideIssuer
from quarterdeck.service.identity.jwks import KeySet
from quarterdeck.service.identity.key_use import KeyUse
from quarterdeck.service.identity.keys import KEY_MARK, Keys
from quarterdeck.service.identity.rate import RateLimit
from quarterdeck.service.identity.tokens import USE, RefusedTokenError, Tokens, is_token
from quarterdeck.service.identity.users import Users
from quarterdeck.wire.errors import ErrorCode


@dataclass(frozen=True)
class Shown:
    """The headers that tell who asks; `inside` over the socket for callers inside workspaces."""

    bearer: str | None
    organization: str | None = None
    workspace: str | None = None
    inside: bool = False


class Authenticator:
    """Every kind of bearer, and when keys were used."""

    def __init__(self, context: ServiceContext) -> None:
        """
        Raises:
            StartError: the outside issuer's key URL is not safe.
        """
        settings = context.identity
        outside = settings.issuer and OutsideIssuer(
            settings.issuer, KeySet(settings.issuer.jwks_url)
        )
        limit = settings.requests_per_minute
        self._database = context.database
        self.tokens = Tokens(context.vault.derived(USE))
        self.keys = Keys(context.database)
        self.users = Users(context.database, self.tokens, outside)
        self.uses = KeyUse(context.database)
        self._rate = None if limit is None else RateLimit(limit)

    async def caller_of(self, shown: Shown, doors: Doors, scope: Scope) -> Caller:
        """Who asks.

        Raises:
            ApiError: UNAUTHORIZED and its kin, ORG_HEADER_REQUIRED, INVALID_REQUEST for a malformed
                header, NOT_FOUND for an organization of others, API_KEY_REQUIRED, RATE_LIMITED;
                INTERNAL_ERROR when an outside issuer's keys cannot be fetched.
        """
        caller = await self._known(shown)
        door, parameters = doors.of(scope)
        _check(caller, door, str(parameters.get("id", "")))
        if caller.kind is CallerKind.USER_TOKEN:
            caller = await self._placed(caller, shown.organization, door)
        if self._rate is not None:
            self._rate.take(caller)
        if caller.key_id is not None:
            self.uses.note(caller.key_id)
        return caller

    async def _known(self, shown: Shown) -> Caller:
        bearer = shown.bearer
        if bearer is None:
            raise ApiError(ErrorCode.UNAUTHORIZED, "Send a key as a bearer token.")
        if shown.inside:
            return await self._engine(bearer, shown.workspace)
        if is_token(bearer):
            return await self._token(bearer)
        if shown.workspace is not None and not bearer.startswith(KEY_MARK):
            found = await engine_caller(self._database, bearer, shown.workspace)
        else:
            found = await self.keys.caller_of(bearer)
        if found is None:
            raise ApiError(ErrorCode.UNAUTHORIZED, "This key is not valid.")
        return found

    async def _engine(self, secret: str, workspace: str | None) -> Caller:
        found = workspace and await engine_caller(self._database, secret, workspace)
        if not found:
            raise ApiError(
                ErrorCode.UNAUTHORIZED,
                "Here only a workspace's own secret is taken, with the header X-Workspace-Id.",
            )
        return found

    async def _token(self, token: str) -> Caller:
        try:
            user_id = await self.users.user_of(token)
        except RefusedTokenError as e:
            raise ApiError(
                ErrorCode.UNAUTHORIZED, "This token is not valid. Get a new one.", str(e)
            ) from e
        return Caller(NO_ORGANIZATION, user_id, CallerKind.USER_TOKEN, Role.MEMBER)

    async def _placed(self, caller: Caller, header: str | None, door: Door) -> Caller:
        """A user, in the organization that the header names."""
        if header is None:
            if door.organization:
                raise ApiError(
                    ErrorCode.ORG_HEADER_REQUIRED,
                    "With a user token, name the organization in the header Service-Org-Id.",
                )
            return caller
        try:
            organization_id = str(UUID(header))
        except ValueError as e:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "The organization's id is not one.",
                "Service-Org-Id: must be a UUID",
            ) from e
        assert caller.user_id is not None
        role = await self.users.role_of(caller.user_id, organization_id)
        if role is None:
            raise ApiError(ErrorCode.NOT_FOUND, "No organization has this id.", "Service-Org-Id")
        return replace(caller, organization_id=organization_id, role=role)


def _check(caller: Caller, door: Door, path_id: str) -> None:
    """Refuses a bearer of a kind that the route does not take."""
    match caller.kind:
        case CallerKind.ENGINE:
            own = path_id.lower() in ("", caller.workspace_id)
            if not (door.engines and own):
                raise ApiError(
                    ErrorCode.UNAUTHORIZED, "A workspace's own secret does not open this."
                )
        case CallerKind.USER_TOKEN if not door.tokens:
            raise _only_keys() if door.keys else _only_engines()
        case CallerKind.ORGANIZATION_KEY | CallerKind.PERSONAL_KEY if not door.keys:
            raise _only_tokens() if door.tokens else _only_engines()
        case _:
            pass


def _only_keys() -> ApiError:
    return ApiError(ErrorCode.API_KEY_REQUIRED, "This takes an API key, not a user token.")


def _only_tokens() -> ApiError:
    return ApiError(ErrorCode.JWT_REQUIRED, "This takes a user token, not an API key.")


def _only_engines() -> ApiError:
    return ApiError(
        ErrorCode.UNAUTHORIZED,
        "This is for callers inside a workspace: its secret and the header X-Workspace-Id.",
    )


async def _provide(request: Request) -> Authenticator:
    return request.app.state.authenticator


AuthenticatorDep = Annotated[Authenticator, Depends(_provide)]
"""Annotation of a route's parameter that takes the service's authenticator."""
