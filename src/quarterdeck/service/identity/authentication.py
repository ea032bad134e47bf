"""Authenticate callers."""

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from hmac import compare_digest
from math import ceil
from time import monotonic
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from quarterdeck.service.caches import Remembered
from quarterdeck.service.context import ServiceContext, parts
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.faults import log_storage_error
from quarterdeck.service.db.records import stored_word
from quarterdeck.service.errors import ApiError, StorageError
from quarterdeck.service.formats import now_text
from quarterdeck.service.identity.rows import KeyRow, find_key, store_uses
from quarterdeck.service.identity.service import (
    NO_ORGANIZATION,
    Caller,
    CallerKind,
    MemberRole,
    Users,
)
from quarterdeck.service.identity.tokens import (
    USE,
    KeySet,
    OutsideIssuer,
    RefusedTokenError,
    Tokens,
    is_token,
)
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.service.routing import Access, FoundRoute
from quarterdeck.service.vault import Vault
from quarterdeck.wire.base import CANONICAL_ID
from quarterdeck.wire.errors import ErrorCode


async def engine_caller(
    database: Database, vault: Vault, secret: str, workspace: str
) -> Caller | None:
    """Return the caller of a workspace's secret, or None when it is wrong."""
    try:
        workspace_id = str(UUID(workspace))
    except ValueError:
        return None
    row = await database.read(lambda c: find_workspace(c, workspace_id))
    if row is None:
        return None
    own = vault.unseal(row.id, row.engine_secret_sealed)
    if not compare_digest(own.encode(), secret.encode()):
        return None
    return Caller(row.organization_id, None, CallerKind.ENGINE, MemberRole.MEMBER, row.id)


PAUSE_SECONDS = 60.0
"""How often the use of a key is stored at most."""

log = logging.getLogger(__name__)


class KeyUse:
    """Collects uses of keys; `run` stores them, the last ones when it is cancelled."""

    def __init__(self, database: Database, pause: float = PAUSE_SECONDS) -> None:
        self._database = database
        self._pause = pause
        self._uses: dict[str, str] = {}
        self._used = asyncio.Event()

    def note(self, key_id: str) -> None:
        """Note that a key was used at this moment."""
        self._uses[key_id] = now_text()
        self._used.set()

    async def run(self) -> None:
        """Store uses soon after the first one, then regularly while there are more."""
        try:
            while True:
                await self._used.wait()
                await self.store()
                await asyncio.sleep(self._pause)
        finally:
            await self.store()

    async def store(self) -> None:
        """Store the collected uses. They are dropped when that fails: they are informational."""
        uses, self._uses = self._uses, {}
        self._used.clear()
        if not uses:
            return
        try:
            await self._database.write(lambda c: store_uses(c, uses))
        except StorageError as e:
            log_storage_error(log, "When keys were last used could not be stored", e)


KEY_MARK = "sk_"


def new_key() -> str:
    """Return a random key of 256 bits."""
    return KEY_MARK + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """Return the digest of a key that is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def shown_prefix(key: str) -> str:
    """Return the part of a key that lists may show."""
    return key[: len(KEY_MARK) + 4]


class Keys:
    """Finds the caller of a key; callers are cached for a few seconds.

    The key is only ever compared as a digest, inside an index look-up, so the time of a look-up
    reveals nothing about existing keys.
    """

    def __init__(self, database: Database, now: Callable[[], float] = monotonic) -> None:
        self._database = database
        self._found: Remembered[str, Caller] = Remembered(now, lost=lambda: database.lost)

    async def caller_of(self, key: str) -> Caller | None:
        """Return the caller of a key, or None."""
        digest = hash_of(key)
        return await self._found.get(digest, lambda: self._look(digest))

    def forget(self) -> None:
        """Make the next request of every key look again; call after a key was removed."""
        self._found.forget()

    async def _look(self, digest: str) -> Caller | None:
        row = await self._database.read(lambda c: find_key(c, digest))
        return None if row is None else _caller(row)


def _caller(row: KeyRow) -> Caller | None:
    if row.user_id is None:
        kind = CallerKind.ORGANIZATION_KEY
        return Caller(row.organization_id, None, kind, MemberRole.ADMIN, key_id=row.id)
    if row.role is None:
        return None
    kind = CallerKind.PERSONAL_KEY
    return Caller(
        row.organization_id, row.user_id, kind, stored_word(row.role, MemberRole), key_id=row.id
    )


MINUTE = 60.0
ENTRIES = 10_000


class RateLimit:
    """A token bucket of a minute's requests per key, user or engine."""

    def __init__(self, per_minute: int, now: Callable[[], float] = monotonic) -> None:
        self._size = float(per_minute)
        self._fill = per_minute / MINUTE
        self._now = now
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: Caller) -> None:
        """Count one request.

        Raises:
            ApiError: RATE_LIMITED, with the whole seconds after which one is allowed again.
        """
        who = caller.key_id or caller.workspace_id or caller.user_id or caller.organization_id
        now = self._now()
        left, since = self._buckets.pop(who, (self._size, now))
        left = min(self._size, left + (now - since) * self._fill)
        allowed = left >= 1.0
        self._keep(who, left - 1.0 if allowed else left, now)
        if not allowed:
            wait = max(1, ceil((1.0 - left) / self._fill))
            raise ApiError(
                ErrorCode.RATE_LIMITED,
                "Too many requests with this key. Wait a little.",
                f"at most {self._size:.0f} a minute",
                retry_after=wait,
            )

    def _keep(self, who: str, left: float, now: float) -> None:
        # The least recently used one is removed first: each use moves its bucket to the end.
        if len(self._buckets) >= ENTRIES:
            self._buckets.pop(next(iter(self._buckets)))
        self._buckets[who] = (left, now)


@dataclass(frozen=True)
class CallerHeaders:
    """The headers that identify the caller; `inside` over the socket for workspaces."""

    bearer: str | None
    organization: str | None = None
    workspace: str | None = None
    inside: bool = False


class Authenticator:
    """Authenticates every kind of bearer, and notes uses of keys."""

    def __init__(self, context: ServiceContext) -> None:
        """Read the issuers from the context's settings.

        Raises:
            StartError: the outside issuer's key URL is not safe.
        """
        settings = context.identity
        outside = settings.issuer and OutsideIssuer(
            settings.issuer, KeySet(settings.issuer.jwks_url)
        )
        limit = settings.requests_per_minute
        self._database = context.database
        self._vault = context.vault
        self.tokens = Tokens(context.vault.derived(USE))
        self.keys = Keys(context.database)
        self.users = Users(context.database, self.tokens, outside)
        self.uses = KeyUse(context.database)
        self._rate = None if limit is None else RateLimit(limit)

    async def caller_of(self, shown: CallerHeaders, route: FoundRoute) -> Caller:
        """Return the caller.

        Raises:
            ApiError: UNAUTHORIZED and its kin, ORG_HEADER_REQUIRED, INVALID_REQUEST for a malformed
                header, NOT_FOUND for another's organization, API_KEY_REQUIRED, RATE_LIMITED;
                INTERNAL_ERROR when an outside issuer's keys cannot be fetched.
        """
        caller = await self._admitted(shown, route)
        if self._rate is not None:
            self._rate.take(caller)
        if caller.key_id is not None:
            self.uses.note(caller.key_id)
        return caller

    async def still_admits(self, shown: CallerHeaders, route: FoundRoute) -> bool:
        """Return whether the caller of a request that goes on would still be admitted.

        True when this cannot be found out now.
        """
        try:
            await self._admitted(shown, route)
        except ApiError as e:
            return e.code is ErrorCode.INTERNAL_ERROR
        except StorageError:
            return True
        return True

    async def _admitted(self, shown: CallerHeaders, route: FoundRoute) -> Caller:
        caller = await self._known(shown)
        _check(caller, route)
        organization_id = _organization_of(shown)
        if caller.kind is CallerKind.USER_TOKEN:
            return await self._placed(caller, organization_id, route.access)
        return caller

    async def _known(self, shown: CallerHeaders) -> Caller:
        bearer = shown.bearer
        if bearer is None:
            raise ApiError(ErrorCode.UNAUTHORIZED, "Send a key as a bearer token.")
        if shown.inside:
            return await self._engine(bearer, shown.workspace)
        if is_token(bearer):
            return await self._token(bearer)
        if shown.workspace is not None and not bearer.startswith(KEY_MARK):
            caller = await engine_caller(self._database, self._vault, bearer, shown.workspace)
        else:
            caller = await self.keys.caller_of(bearer)
        if caller is None:
            raise ApiError(ErrorCode.UNAUTHORIZED, "This key is not valid.")
        return caller

    async def _engine(self, secret: str, workspace: str | None) -> Caller:
        caller = workspace and await engine_caller(self._database, self._vault, secret, workspace)
        if not caller:
            raise ApiError(
                ErrorCode.UNAUTHORIZED,
                "This route accepts only a workspace's own secret, with the header X-Workspace-Id.",
            )
        return caller

    async def _token(self, token: str) -> Caller:
        try:
            user_id = await self.users.user_of(token)
        except RefusedTokenError as e:
            raise ApiError(
                ErrorCode.UNAUTHORIZED, "This token is not valid. Get a new one.", str(e)
            ) from e
        return Caller(NO_ORGANIZATION, user_id, CallerKind.USER_TOKEN, MemberRole.MEMBER)

    async def _placed(self, caller: Caller, organization_id: str | None, access: Access) -> Caller:
        """Return a user, in the organization that the header names."""
        if organization_id is None:
            if access.organization:
                raise ApiError(
                    ErrorCode.ORG_HEADER_REQUIRED,
                    "With a user token, name the organization in the header Service-Org-Id.",
                )
            return caller
        assert caller.user_id is not None
        role = await self.users.role_of(caller.user_id, organization_id)
        if role is None:
            raise ApiError(ErrorCode.NOT_FOUND, "No organization has this id.", "Service-Org-Id")
        return replace(caller, organization_id=organization_id, role=role)


def _organization_of(shown: CallerHeaders) -> str | None:
    """Return the organization that the header names, for every caller, although keys fix theirs."""
    if shown.organization is None:
        return None
    if not CANONICAL_ID.fullmatch(shown.organization):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "The organization's id is not valid.",
            "Service-Org-Id: must be a UUID",
        )
    return shown.organization.lower()


def _check(caller: Caller, route: FoundRoute) -> None:
    """Refuse a bearer of a kind that the route does not accept."""
    access = route.access
    match caller.kind:
        case CallerKind.ENGINE:
            own = route.path_id.lower() in ("", caller.workspace_id)
            if not (access.engines and own):
                raise ApiError(
                    ErrorCode.UNAUTHORIZED, "A workspace's own secret does not open this."
                )
        case CallerKind.USER_TOKEN if not access.tokens:
            raise _only_keys() if access.keys else _only_engines()
        case CallerKind.ORGANIZATION_KEY | CallerKind.PERSONAL_KEY if not access.keys:
            raise _only_tokens() if access.tokens else _only_engines()
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
    return parts(request).authenticator


AuthenticatorDep = Annotated[Authenticator, Depends(_provide)]
"""Annotation of a route's parameter that takes the service's authenticator."""
