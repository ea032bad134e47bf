"""Environments (INTERFACE 7)."""

from typing import Literal

from fastapi import APIRouter

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.environments.changing import change_environment, remove_environment
from quarterdeck.service.environments.creating import create_environment
from quarterdeck.service.errors import ApiError
from quarterdeck.service.records.environments import find_environment, list_environments
from quarterdeck.service.routes.environment_paths import EnvironmentRef
from quarterdeck.wire.base import Success
from quarterdeck.wire.environments import (
    ChangeEnvironment,
    CreateEnvironment,
    EnvironmentAnswer,
    EnvironmentList,
)
from quarterdeck.wire.errors import ErrorCode

router = APIRouter(prefix="/v1/environments", tags=["environments"])


@router.get("")
async def list_all(
    context: Context, caller: CallerDep, scope: Literal["org", "user", "all"] = "all"
) -> EnvironmentList:
    """The environments that the caller may use."""
    found = await context.database.read(
        lambda c: list_environments(c, caller.organization_id, caller.user_id, scope)
    )
    return EnvironmentList(environments=found)


@router.post("", status_code=201)
async def create(body: CreateEnvironment, context: Context, caller: CallerDep) -> EnvironmentAnswer:
    """Makes an environment."""
    return EnvironmentAnswer(environment=await create_environment(context, caller, body))


@router.get("/{environment_id}")
async def read(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentAnswer:
    """One environment; `global` names the organization's global one."""
    found = await context.database.read(
        lambda c: find_environment(c, caller.organization_id, caller.user_id, environment)
    )
    if found is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No environment has this id.")
    return EnvironmentAnswer(environment=found)


@router.patch("/{environment_id}")
async def change(
    environment: EnvironmentRef, body: ChangeEnvironment, context: Context, caller: CallerDep
) -> EnvironmentAnswer:
    """Changes what is given; the global one is 400."""
    changed = await change_environment(context, caller, environment, body)
    return EnvironmentAnswer(environment=changed)


@router.delete("/{environment_id}")
async def remove(environment: EnvironmentRef, context: Context, caller: CallerDep) -> Success:
    """Removes an environment with its parts; 409 for the global one and one that is in use."""
    await remove_environment(context, caller, environment)
    return Success()
