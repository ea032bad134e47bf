"""Connected repositories, and sets of them (INTERFACE 7)."""

from fastapi import APIRouter

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.records.repositories import list_repositories
from quarterdeck.service.records.repository_sets import list_repository_sets
from quarterdeck.service.repositories import connect_repository
from quarterdeck.service.repository_sets import (
    create_repository_set,
    delete_repository_set,
    disconnect_repository,
)
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.repositories import (
    ConnectRepository,
    CreateRepositorySet,
    RepositoryAnswer,
    RepositoryList,
    RepositorySetAnswer,
    RepositorySetList,
)

router = APIRouter(tags=["repositories"])

REPOSITORIES = "/v1/replica/repositories"
SETS = "/v1/replica/repository-sets"


@router.get(REPOSITORIES)
async def list_all(context: Context, caller: CallerDep) -> RepositoryList:
    """The organization's repositories, by name."""
    found = await context.database.read(lambda c: list_repositories(c, caller.organization_id))
    return RepositoryList(repositories=found)


@router.post(REPOSITORIES, status_code=201)
async def connect(body: ConnectRepository, context: Context, caller: CallerDep) -> RepositoryAnswer:
    """Connects a git URL or a local path; one that is connected already is answered as it is."""
    return RepositoryAnswer(repository=await connect_repository(context, caller, body))


@router.delete(REPOSITORIES + "/{id}")
async def disconnect(id: GivenId, context: Context, caller: CallerDep) -> Success:
    """Disconnects a repository; 409 while an environment is bound to it."""
    await disconnect_repository(context, caller, str(id))
    return Success()


@router.get(SETS)
async def list_sets(context: Context, caller: CallerDep) -> RepositorySetList:
    """The organization's sets, by name."""
    found = await context.database.read(lambda c: list_repository_sets(c, caller.organization_id))
    return RepositorySetList(repository_sets=found)


@router.post(SETS, status_code=201)
async def create_set(
    body: CreateRepositorySet, context: Context, caller: CallerDep
) -> RepositorySetAnswer:
    """Makes a set of connected repositories."""
    made = await create_repository_set(context, caller, body)
    return RepositorySetAnswer(repository_set=made)


@router.delete(SETS + "/{id}")
async def delete_set(id: GivenId, context: Context, caller: CallerDep) -> Success:
    """Removes a set; 409 while an environment is bound to it."""
    await delete_repository_set(context, caller, str(id))
    return Success()
