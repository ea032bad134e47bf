"""Routes of the files of an environment."""

from quarterdeck.service.context import Context
from quarterdeck.service.environments.parts import FILES, add_file, change_file
from quarterdeck.service.environments.routes import EnvironmentRef, environment_router
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.environment_parts import (
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
    """Return the environment's own ones, without what it inherits."""
    files = await FILES.list_own(context, caller, environment)
    return EnvironmentFileList(environment_files=files)


@router.post("/files", status_code=201)
async def add(
    environment: EnvironmentRef, body: CreateFile, context: Context, caller: CallerDep
) -> EnvironmentFileAnswer:
    """Add one."""
    file = await add_file(context, caller, environment, body)
    return EnvironmentFileAnswer(environment_file=file)


@router.patch("/files/{id}")
async def change(
    environment: EnvironmentRef, id: GivenId, body: ChangeFile, context: Context, caller: CallerDep
) -> EnvironmentFileAnswer:
    """Edit an environment."""
    changed = await change_file(context, caller, environment, str(id), body)
    return EnvironmentFileAnswer(environment_file=changed)


@router.delete("/files/{id}")
async def remove(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Remove one."""
    await FILES.remove(context, caller, environment, str(id))
    return Success()
