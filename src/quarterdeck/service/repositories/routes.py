"""Routes of repositories and repository sets."""

from fastapi import APIRouter

from quarterdeck.service.context import Context
from quarterdeck.service.description import fails
from quarterdeck.service.identity.service import AdminDep, CallerDep
from quarterdeck.service.repositories import service
from quarterdeck.service.repositories.rows import list_repositories, list_repository_sets
from quarterdeck.service.repositories.service import branches_of, connect_repository
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.repositories import (
    BranchList,
    ChangeRepositorySet,
    ConnectRepository,
    CreateRepositorySet,
    RepositoryAnswer,
    RepositoryList,
    RepositorySetAnswer,
    RepositorySetList,
)

repositories_router = APIRouter(tags=["repositories"])

REPOSITORIES = "/v1/replica/repositories"
SETS = "/v1/replica/repository-sets"


@repositories_router.get(REPOSITORIES)
async def list_all(context: Context, caller: CallerDep) -> RepositoryList:
    """List the organization's repositories by name."""
    repositories = await context.database.read(
        lambda c: list_repositories(c, caller.organization_id)
    )
    return RepositoryList(repositories=repositories)


@repositories_router.post(REPOSITORIES, status_code=201)
async def connect(body: ConnectRepository, context: Context, caller: AdminDep) -> RepositoryAnswer:
    """Connect a git URL or a local path. One that is connected already is answered as it is."""
    return RepositoryAnswer(repository=await connect_repository(context, caller, body))


@repositories_router.get(REPOSITORIES + "/{id}/branches", responses=fails(409))
async def list_branches(id: GivenId, context: Context, caller: CallerDep) -> BranchList:
    """List the branches of a repository's source, the one with the newest commit first."""
    return await branches_of(context, caller, id)


@repositories_router.delete(REPOSITORIES + "/{id}", responses=fails(409))
async def disconnect(id: GivenId, context: Context, caller: AdminDep) -> Success:
    """Disconnect a repository; 409 while an environment or a set uses it."""
    await service.disconnect_repository(context, caller, str(id))
    return Success()


@repositories_router.get(SETS)
async def list_sets(context: Context, caller: CallerDep) -> RepositorySetList:
    """List the organization's repository sets by name."""
    sets = await context.database.read(lambda c: list_repository_sets(c, caller.organization_id))
    return RepositorySetList(repository_sets=sets)


@repositories_router.post(SETS, status_code=201, responses=fails(409))
async def create_set(
    body: CreateRepositorySet, context: Context, caller: AdminDep
) -> RepositorySetAnswer:
    """Create a set of connected repositories."""
    created = await service.create_set(context, caller, body)
    return RepositorySetAnswer(repository_set=created)


@repositories_router.get(SETS + "/{id}")
async def read_set(id: GivenId, context: Context, caller: CallerDep) -> RepositorySetAnswer:
    """Read a repository set."""
    repository_set = await service.read_set(context, caller, str(id))
    return RepositorySetAnswer(repository_set=repository_set)


@repositories_router.patch(SETS + "/{id}", responses=fails(409))
async def change_set(
    id: GivenId, body: ChangeRepositorySet, context: Context, caller: AdminDep
) -> RepositorySetAnswer:
    """Change the name or the repositories of a set."""
    changed = await service.change_set(context, caller, str(id), body)
    return RepositorySetAnswer(repository_set=changed)


@repositories_router.delete(SETS + "/{id}", responses=fails(409))
async def delete_set(id: GivenId, context: Context, caller: AdminDep) -> Success:
    """Delete a repository set; 409 while an environment is bound to it."""
    await service.delete_set(context, caller, str(id))
    return Success()
