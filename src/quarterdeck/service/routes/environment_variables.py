"""Variables of an environment (specification, operation 7; INTERFACE 7)."""

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.environments.variables import (
    add_variable,
    change_variable,
    list_variables,
    remove_variable,
)
from quarterdeck.service.routes.environment_paths import EnvironmentRef, environment_router
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.environment_variables import (
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
    """The environment's own ones, without what it inherits."""
    found = await list_variables(context, caller, environment)
    return EnvironmentVariableList(environment_variables=found)


@router.post("/variables", status_code=201)
async def add(
    environment: EnvironmentRef, body: CreateVariable, context: Context, caller: CallerDep
) -> EnvironmentVariableAnswer:
    """Adds one."""
    made = await add_variable(context, caller, environment, body)
    return EnvironmentVariableAnswer(environment_variable=made)


@router.patch("/variables/{id}")
async def change(
    environment: EnvironmentRef,
    id: GivenId,
    body: ChangeVariable,
    context: Context,
    caller: CallerDep,
) -> EnvironmentVariableAnswer:
    """Changes what is given of one."""
    changed = await change_variable(context, caller, environment, str(id), body)
    return EnvironmentVariableAnswer(environment_variable=changed)


@router.delete("/variables/{id}")
async def remove(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Removes one."""
    await remove_variable(context, caller, environment, str(id))
    return Success()
