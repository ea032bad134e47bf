"""Files of an environment (specification, operation 8; INTERFACE 7)."""

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.environments.files import (
    add_file,
    change_file,
    list_files,
    remove_file,
)
from quarterdeck.service.routes.environment_paths import EnvironmentRef, environment_router
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.environment_files import (
    ChangeFile,
    CreateFile,
    EnvironmentFileAnswer,
    EnvironmentFileList,
)

router = environment_router()


@router.get("/files")
async def list_all(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentFileList:
    """The environment's own ones, without what it inherits."""
    found = await list_files(context, caller, environment)
    return EnvironmentFileList(environment_files=found)


@router.post("/files", status_code=201)
async def add(
    environment: EnvironmentRef, body: CreateFile, context: Context, caller: CallerDep
) -> EnvironmentFileAnswer:
    """Adds one."""
    made = await add_file(context, caller, environment, body)
    return EnvironmentFileAnswer(environment_file=made)


@router.patch("/files/{id}")
async def change(
    environment: EnvironmentRef, id: GivenId, body: ChangeFile, context: Context, caller: CallerDep
) -> EnvironmentFileAnswer:
    """Changes what is given of one."""
    changed = await change_file(context, caller, environment, str(id), body)
    return EnvironmentFileAnswer(environment_file=changed)


@router.delete("/files/{id}")
async def remove(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Removes one."""
    await remove_file(context, caller, environment, str(id))
    return Success()
