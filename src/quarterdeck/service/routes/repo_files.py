"""Searching and reading the files of a workspace's repositories (operation 13; INTERFACE 6)."""

from typing import Annotated, cast

from fastapi import Depends, Query, Request

from quarterdeck.service.context import Workspace
from quarterdeck.service.files.search import Asked, FileSearch
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.base import GivenWhole
from quarterdeck.wire.files import DEFAULT_FILES, MOST_FILES, FileContent, FoundFiles

LONGEST_QUERY = 1_000
LONGEST_PATH = 4_096

_replica = replica_router("files")


async def _file_search(request: Request) -> FileSearch:
    return cast("FileSearch", request.app.state.file_search)


@_replica.get("/repo-files/search", response_model_exclude_unset=True)
async def search(
    workspace: Workspace,
    file_search: Annotated[FileSearch, Depends(_file_search)],
    q: Annotated[str, Query(max_length=LONGEST_QUERY)] = "",
    prefix: Annotated[str, Query(max_length=LONGEST_PATH)] = "",
    limit: GivenWhole = DEFAULT_FILES,
    cursor: str | None = None,
    refresh: bool = False,
) -> FoundFiles:
    """Files whose names or paths match, best first; works in every state and wakes nobody."""
    bounded = min(max(limit, 1), MOST_FILES)
    asked = Asked(q=q, prefix=prefix, limit=bounded, cursor=cursor or None, refresh=refresh)
    return await file_search.search(workspace, asked)


@_replica.get("/repo-files/content", response_model_exclude_none=True)
async def content(
    workspace: Workspace,
    fleet: FleetDep,
    repo_name: Annotated[str, Query(alias="repoName")],
    path: Annotated[str, Query(max_length=LONGEST_PATH)],
) -> FileContent:
    """A file's first MiB; the replica must be active."""
    return await fleet.of(workspace.id).call(
        workspace, lambda link: link.files_read(repo_name, path)
    )


router = both_families(_replica)
