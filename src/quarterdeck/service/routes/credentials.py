"""Keys of providers (specification, operations 11 and 22; INTERFACE 9).

The provider stands where other routes have their first word, so this router comes last, and those
words are no providers.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from quarterdeck.service.auth import AdminDep, UserDep
from quarterdeck.service.context import Context
from quarterdeck.service.credentials import credential_status, delete_credential, set_credential
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.base import Success
from quarterdeck.wire.credentials import (
    NO_PROVIDERS,
    PROVIDER_PATTERN,
    CredentialSet,
    CredentialStatus,
    SetCredential,
)
from quarterdeck.wire.errors import ErrorCode

router = APIRouter(prefix="/v1/{provider}", tags=["credentials"])


async def _provider(provider: Annotated[str, Path(pattern=PROVIDER_PATTERN)]) -> str:
    if provider in NO_PROVIDERS:
        raise ApiError(ErrorCode.NOT_FOUND, "There is no such route.")
    return provider


Provider = Annotated[str, Depends(_provider)]


@router.get("/user/credentials", response_model_exclude_none=True)
async def read_own(provider: Provider, context: Context, caller: UserDep) -> CredentialStatus:
    """Whether the user has a key of the provider."""
    return await credential_status(context, caller.organization_id, caller.user_id, provider)


@router.post("/user/credentials")
async def set_own(
    provider: Provider, body: SetCredential, context: Context, caller: UserDep
) -> CredentialSet:
    """Sets the user's key; it comes before the organization's."""
    return await set_credential(
        context, caller.organization_id, caller.user_id, provider, body.api_key
    )


@router.delete("/user/credentials")
async def delete_own(provider: Provider, context: Context, caller: UserDep) -> Success:
    """Removes the user's key."""
    await delete_credential(context, caller.organization_id, caller.user_id, provider)
    return Success()


@router.get("/credentials", response_model_exclude_none=True)
async def read_shared(provider: Provider, context: Context, caller: AdminDep) -> CredentialStatus:
    """Whether the organization has a key of the provider."""
    return await credential_status(context, caller.organization_id, None, provider)


@router.post("/credentials")
async def set_shared(
    provider: Provider, body: SetCredential, context: Context, caller: AdminDep
) -> CredentialSet:
    """Sets the organization's key."""
    return await set_credential(context, caller.organization_id, None, provider, body.api_key)


@router.delete("/credentials")
async def delete_shared(provider: Provider, context: Context, caller: AdminDep) -> Success:
    """Removes the organization's key."""
    await delete_credential(context, caller.organization_id, None, provider)
    return Success()
