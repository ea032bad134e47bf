"""Routes of sign-in, API keys and people."""

from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import ValidationError
from sqlalchemy import Connection

from quarterdeck.service.context import Context, parts
from quarterdeck.service.db.records import as_record
from quarterdeck.service.description import fails
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.authentication import AuthenticatorDep
from quarterdeck.service.identity.rows import (
    KeyScope,
    find_user,
    organization_name,
    organizations_of,
)
from quarterdeck.service.identity.service import (
    AdminDep,
    Caller,
    CallerDep,
    CallerKind,
    OwnerDep,
    UserDep,
)
from quarterdeck.service.identity.sign_in import (
    DeviceRequests,
    begin,
    collect,
    create_key,
    delete_key,
    key_organization,
    list_keys,
    peer_of,
    refused,
    settle,
)
from quarterdeck.service.listeners import is_loopback
from quarterdeck.service.routing import admits
from quarterdeck.wire import account
from quarterdeck.wire.account import (
    ApiKeyList,
    ApiKeyMade,
    CreateApiKey,
    Organization,
    OrganizationList,
    UserProfile,
)
from quarterdeck.wire.base import DIGITS, GivenId, Success
from quarterdeck.wire.errors import ErrorCode

FORM = "application/x-www-form-urlencoded"


async def _devices(request: Request) -> DeviceRequests:
    return parts(request).devices


DevicesDep = Annotated[DeviceRequests, Depends(_devices)]
"""Annotation of a route's parameter that takes the counter of device logins."""

VERIFY = """\
A device shows a code and waits for approval.

Where the service runs, as the user who runs it:

    qd auth approve CODE
"""

_SCHEMA: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/TokenRequest"}}
_BODY = {"required": True, "content": {"application/json": _SCHEMA, FORM: _SCHEMA}}

auth_router = APIRouter(prefix="/v1/auth", tags=["auth"])


async def _only_owner(owner: OwnerDep) -> None:
    if not owner:
        raise ApiError(
            ErrorCode.FORBIDDEN,
            "Only the owner may approve, where the service runs: qd auth approve CODE.",
        )


@auth_router.post("/device", responses=fails(403, 429))
@admits(public=True)
async def ask(
    request: Request, context: Context, devices: DevicesDep, owner: OwnerDep
) -> account.DeviceCode:
    """Open a request for a user token; the installation's owner is approved immediately."""
    if "origin" in request.headers:
        # Only browsers send it; any page that somebody visits could use up the logins of their machine.
        raise ApiError(ErrorCode.FORBIDDEN, "Web pages may not ask for logins.", "Origin: is set")
    host = "" if request.client is None else request.client.host
    if not owner:
        devices.take(*peer_of(host, ",".join(request.headers.getlist("x-forwarded-for"))))
    base = request.base_url
    if is_loopback(host) and request.headers.get("x-forwarded-proto") == "https":
        base = base.replace(scheme="https")  # a proxy on this machine ends TLS
    return await begin(context, str(base), owner)


@auth_router.post("/token", openapi_extra={"requestBody": _BODY})
@admits(public=True)
async def take_token(
    request: Request, response: Response, context: Context, authenticator: AuthenticatorDep
) -> account.AccessToken:
    """Return the token of an approved request. Until then 400, and `error` is the code of RFC 8628."""
    request_body = _token_request(request.headers.get("content-type", ""), await request.body())
    response.headers["Cache-Control"] = "no-store"
    return await collect(context, authenticator.tokens, request_body.device_code)


@auth_router.get("/verify", response_class=PlainTextResponse)
@admits(public=True)
async def explain() -> str:
    """Return how a person approves a user code."""
    return VERIFY


@auth_router.post("/approve")
@admits(organization=False)
async def approve(
    body: account.ApproveDevice, context: Context, _: Annotated[None, Depends(_only_owner)]
) -> Success:
    """Let a waiting device in as the owner, or turn it away; for the owner's own socket."""
    await settle(context, body.user_code, body.deny)
    return Success()


def _token_request(content_type: str, body: bytes) -> account.TokenRequest:
    try:
        if content_type.partition(";")[0].strip().lower() == FORM:
            request = account.TokenRequest.model_validate(dict(parse_qsl(body.decode())))
        else:
            request = account.TokenRequest.model_validate_json(body)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise refused(account.INVALID_REQUEST, f"{where}: {first['msg']}") from e
    except ValueError as e:
        raise refused(account.INVALID_REQUEST, "body: not a form") from e
    if request.grant_type != account.DEVICE_GRANT:
        raise refused(account.UNSUPPORTED_GRANT_TYPE, f"grant_type: must be {account.DEVICE_GRANT}")
    return request


Page = Annotated[int, Query(ge=1, le=1_000_000), DIGITS]
Limit = Annotated[int, Query(ge=1, le=100), DIGITS]

api_keys_router = APIRouter(tags=["api-keys"])


@api_keys_router.post("/v1/user/api-keys", status_code=201)
@admits(keys=False, organization=False)
async def create_own(body: CreateApiKey, context: Context, caller: UserDep) -> ApiKeyMade:
    """Create a personal key, for the organization of the header or the user's only one."""
    organization_id = await key_organization(context, caller)
    return await create_key(context, KeyScope(organization_id, caller.user_id), body.name)


@api_keys_router.get("/v1/user/api-keys")
@admits(organization=False)
async def list_own(
    context: Context, caller: UserDep, page: Page = 1, limit: Limit = 10
) -> ApiKeyList:
    """Return a page of the user's own keys, newest first."""
    return await list_keys(context, _own_api_keys(caller), page, limit)


@api_keys_router.delete("/v1/user/api-keys/{id}")
@admits(organization=False)
async def delete_own(
    id: GivenId, context: Context, caller: UserDep, authenticator: AuthenticatorDep
) -> Success:
    """Revoke one of the user's own keys immediately."""
    await delete_key(context, authenticator.keys, _own_api_keys(caller), str(id))
    return Success()


@api_keys_router.post("/v1/organization/api-keys", status_code=201)
async def create_shared(body: CreateApiKey, context: Context, caller: AdminDep) -> ApiKeyMade:
    """Create an organization key."""
    return await create_key(context, _shared(caller), body.name)


@api_keys_router.get("/v1/organization/api-keys")
async def list_shared(
    context: Context, caller: AdminDep, page: Page = 1, limit: Limit = 10
) -> ApiKeyList:
    """Return a page of the organization's keys, newest first."""
    return await list_keys(context, _shared(caller), page, limit)


@api_keys_router.delete("/v1/organization/api-keys/{id}")
async def delete_shared(
    id: GivenId, context: Context, caller: AdminDep, authenticator: AuthenticatorDep
) -> Success:
    """Revoke one of the organization's keys immediately."""
    await delete_key(context, authenticator.keys, _shared(caller), str(id))
    return Success()


def _own_api_keys(caller: Caller) -> KeyScope:
    return KeyScope(caller.organization_id, caller.user_id)


def _shared(caller: Caller) -> KeyScope:
    return KeyScope(caller.organization_id, None)


users_router = APIRouter(tags=["users"])


@users_router.get("/v1/user/profile")
@admits(organization=False)
async def read_profile(context: Context, caller: UserDep) -> UserProfile:
    """Return the caller's user."""
    user_id = caller.user_id or ""
    user = await context.database.read(lambda c: find_user(c, user_id))
    if user is None:
        raise ApiError(ErrorCode.NOT_FOUND, "The user of this key was deleted.")
    return UserProfile(user=user)


@users_router.get("/v1/organizations")
@admits(organization=False)
async def list_organizations(context: Context, caller: CallerDep) -> OrganizationList:
    """Return the organizations of a user token's user; of a key, the one that it fixes."""

    def run(connection: Connection) -> list[Organization]:
        if caller.kind is CallerKind.USER_TOKEN:
            return organizations_of(connection, caller.user_id or "")
        name = organization_name(connection, caller.organization_id)
        organization = {"id": caller.organization_id, "name": name, "role": caller.role}
        return [as_record(Organization, organization)]

    return OrganizationList(organizations=await context.database.read(run))
