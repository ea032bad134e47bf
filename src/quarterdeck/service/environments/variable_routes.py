"""Routes of the variables of an environment."""

from quarterdeck.service.context import Context
from quarterdeck.service.environments.parts import (
    VARIABLES,
    add_variable,
    change_variable,
    list_variables,
)
from quarterdeck.service.environments.routes import EnvironmentRef, environment_router
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.environment_parts import (
    ChangeVariable,
    CreateVariable,
    EnvironmentVariableAnswer,
    EnvironmentVariableList,
)

router = environment_router()


@router.get("/variables")
async def list_all(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentVariableList:
    """Return the environment's own ones, without what it inherits."""
    variables = await list_variables(context, caller, environment)
    return EnvironmentVariableList(environment_variables=variables)


@router.post("/variables", status_code=201)
async def add(
    environment: EnvironmentRef, body: CreateVariable, context: Context, caller: CallerDep
) -> EnvironmentVariableAnswer:
    """Add one."""
    variable = await add_variable(context, caller, environment, body)
    return EnvironmentVariableAnswer(environment_variable=variable)


@router.patch("/variables/{id}")
async def change(
    environment: EnvironmentRef,
    id: GivenId,
    body: ChangeVariable,
    context: Context,
    caller: CallerDep,
) -> EnvironmentVariableAnswer:
    """Edit an environment."""
    changed = await change_variable(context, caller, environment, str(id), body)
    return EnvironmentVariableAnswer(environment_variable=changed)


@router.delete("/variables/{id}")
async def remove(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Remove one."""
    await VARIABLES.remove(context, caller, environment, str(id))
    return Success()
