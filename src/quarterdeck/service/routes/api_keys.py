"""API keys of users and of organizations (specification, operations 2 and 3; INTERFACE 9)."""

from typing import Annotated

from fastapi import APIRouter, Query

from quarterdeck.service.auth import AdminDep, Caller, UserDep
from quarterdeck.service.context import Context
from quarterdeck.service.identity.authenticator import AuthenticatorDep
from quarterdeck.service.identity.doors import admits
from quarterdeck.service.identity.managing_keys import (
    create_key,
    delete_key,
    key_organization,
    list_keys,
)
from quarterdeck.service.records.api_keys import KeyScope
from quarterdeck.wire.api_keys import ApiKeyList, ApiKeyMade, CreateApiKey
from quarterdeck.wire.base import GivenId, GivenWhole, Success

Page = Annotated[GivenWhole, Query(ge=1, le=1_000_000)]
Limit = Annotated[GivenWhole, Query(ge=1, le=100)]

router = APIRouter(tags=["api-keys"])


@router.post("/v1/user/api-keys", status_code=201)
@admits(keys=False, organization=False)
async def create_own(body: CreateApiKey, context: Context, caller: UserDep) -> ApiKeyMade:
    """Makes a personal key, for the organization of the header or the user's only one."""
    organization_id = await key_organization(context, caller)
    return await create_key(context, KeyScope(organization_id, caller.user_id), body.name)


@router.get("/v1/user/api-keys")
@admits(organization=False)
async def list_own(
    context: Context, caller: UserDep, page: Page = 1, limit: Limit = 10
) -> ApiKeyList:
    """A page of the user's own keys, newest first."""
    return await list_keys(context, _own(caller), page, limit)


@router.delete("/v1/user/api-keys/{id}")
@admits(organization=False)
async def delete_own(
    id: GivenId, context: Context, caller: UserDep, authenticator: AuthenticatorDep
) -> Success:
    """Takes one of the user's own keys away, at once."""
    await delete_key(context, authenticator.keys, _own(caller), str(id))
    return Success()


@router.post("/v1/organization/api-keys", status_code=201)
async def create_shared(body: CreateApiKey, context: Context, caller: AdminDep) -> ApiKeyMade:
    """Makes an organization key."""
    return await create_key(context, _shared(caller), body.name)


@router.get("/v1/organization/api-keys")
async def list_shared(
    context: Context, caller: AdminDep, page: Page = 1, limit: Limit = 10
) -> ApiKeyList:
    """A page of the organization's keys, newest first."""
    return await list_keys(context, _shared(caller), page, limit)


@router.delete("/v1/organization/api-keys/{id}")
async def delete_shared(
    id: GivenId, context: Context, caller: AdminDep, authenticator: AuthenticatorDep
) -> Success:
    """Takes one of the organization's keys away, at once."""
    await delete_key(context, authenticator.keys, _shared(caller), str(id))
    return Success()


def _own(caller: Caller) -> KeyScope:
    return KeyScope(caller.organization_id, caller.user_id)


def _shared(caller: Caller) -> KeyScope:
    return KeyScope(caller.organization_id, None)
