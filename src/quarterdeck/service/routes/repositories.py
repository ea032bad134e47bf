"""Connected repositories (INTERFACE 7)."""

from fastapi import APIRouter

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.records.repositories import list_repositories
from quarterdeck.service.repositories import connect_repository
from quarterdeck.wire.repositories import ConnectRepository, RepositoryAnswer, RepositoryList

router = APIRouter(prefix="/v1/replica/repositories", tags=["repositories"])


@router.get("")
async def list_all(context: Context, caller: CallerDep) -> RepositoryList:
    """The organization's repositories, by name."""
    found = await context.database.read(lambda c: list_repositories(c, caller.organization_id))
    return RepositoryList(repositories=found)


@router.post("", status_code=201)
async def connect(body: ConnectRepository, context: Context, caller: CallerDep) -> RepositoryAnswer:
    """Connects a git URL or a local path; one that is connected already is answered as it is."""
    return RepositoryAnswer(repository=await connect_repository(context, caller, body))
