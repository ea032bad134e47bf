"""Routes of agents and the credentials of their providers.

Keys of providers (specification, operations 11 and 22; INTERFACE 9).

The provider is where other routes have their first path segment, so this router comes last, and
those segments are not providers.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Path

from quarterdeck.service.agents.rows import announced_models
from quarterdeck.service.agents.service import (
    agents_for,
    credential_status,
    delete_credential,
    set_credential,
)
from quarterdeck.service.context import Context
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.service import AdminDep, CallerDep, UserDep
from quarterdeck.wire.agents import (
    NO_PROVIDERS,
    PROVIDER_PATTERN,
    AgentList,
    AgentModels,
    CredentialSet,
    CredentialStatus,
    SetCredential,
)
from quarterdeck.wire.base import Success
from quarterdeck.wire.errors import ErrorCode

agents_router = APIRouter(tags=["agents"])


@agents_router.get("/v1/agents")
async def list_agents(context: Context, caller: CallerDep) -> AgentList:
    """Return the known agents, usable or not, with the reason where not."""
    return AgentList(agents=await agents_for(context, caller.organization_id, caller.user_id))


@agents_router.get("/v1/agents/{agent}/models")
async def list_models(agent: str, context: Context, caller: CallerDep) -> AgentModels:
    """Return the models that an agent is known to offer; others may be requested too.

    They are those that it announced in a replica of the caller, before that those that it usually
    has.
    """
    matching = [one for one in await asyncio.to_thread(context.agents) if one.id == agent]
    if not matching:
        raise ApiError(ErrorCode.NOT_FOUND, "No agent has this id.", f"agent: {agent}")
    announced = await context.database.read(
        lambda c: announced_models(c, caller.organization_id, caller.user_id, agent)
    )
    models = announced.models or matching[0].models
    usual = matching[0].default_model
    default = usual if usual in {model.id for model in models} else None
    return AgentModels(
        models=models,
        default_model=announced.default_model or default,
        announced=bool(announced.models),
    )


credentials_router = APIRouter(prefix="/v1/{provider}", tags=["credentials"])


async def _provider(provider: Annotated[str, Path(pattern=PROVIDER_PATTERN)]) -> str:
    if provider in NO_PROVIDERS:
        raise ApiError(ErrorCode.NOT_FOUND, "There is no such route.")
    return provider


Provider = Annotated[str, Depends(_provider)]


@credentials_router.get("/user/credentials", response_model_exclude_none=True)
async def read_own(provider: Provider, context: Context, caller: UserDep) -> CredentialStatus:
    """Return whether the user has a key of the provider."""
    return await credential_status(context, caller.organization_id, caller.user_id, provider)


@credentials_router.post("/user/credentials")
async def set_own(
    provider: Provider, body: SetCredential, context: Context, caller: UserDep
) -> CredentialSet:
    """Set the user's key; it comes before the organization's."""
    return await set_credential(
        context, caller.organization_id, caller.user_id, provider, body.api_key
    )


@credentials_router.delete("/user/credentials")
async def delete_own(provider: Provider, context: Context, caller: UserDep) -> Success:
    """Remove the user's key."""
    await delete_credential(context, caller.organization_id, caller.user_id, provider)
    return Success()


@credentials_router.get("/credentials", response_model_exclude_none=True)
async def read_shared(provider: Provider, context: Context, caller: AdminDep) -> CredentialStatus:
    """Return whether the organization has a key of the provider."""
    return await credential_status(context, caller.organization_id, None, provider)


@credentials_router.post("/credentials")
async def set_shared(
    provider: Provider, body: SetCredential, context: Context, caller: AdminDep
) -> CredentialSet:
    """Set the organization's key."""
    return await set_credential(context, caller.organization_id, None, provider, body.api_key)


@credentials_router.delete("/credentials")
async def delete_shared(provider: Provider, context: Context, caller: AdminDep) -> Success:
    """Remove the organization's key."""
    await delete_credential(context, caller.organization_id, None, provider)
    return Success()
