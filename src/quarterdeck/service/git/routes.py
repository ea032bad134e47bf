"""Routes of git and pull requests."""

import asyncio
from typing import Annotated, Literal

from fastapi import Depends, Header, Path, Query, Request, Response

from quarterdeck.service.context import Context, Workspace, parts
from quarterdeck.service.description import fails
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.git.operations import GitOperations
from quarterdeck.service.git.pull_requests import PullRequestService
from quarterdeck.service.middleware import decompressed
from quarterdeck.service.routing import both_families, replica_router
from quarterdeck.service.streams import StreamResponse
from quarterdeck.wire.base import DIGITS
from quarterdeck.wire.files import LONGEST_PATH
from quarterdeck.wire.git import (
    LONGEST_REF,
    Against,
    Checkpoints,
    CommitChanges,
    Committed,
    GitStates,
    MergePullRequest,
    OpenPullRequest,
    PullRequestDetail,
    PullRequestList,
    PushBranch,
    Pushed,
    Rewind,
    Rewound,
    UpdateBranch,
    Updated,
)

ADVERTISED = "application/x-git-upload-pack-advertisement"
UPLOADED = "application/x-git-upload-pack-result"
_PATCH = {"content-type": "text/x-diff; charset=utf-8", "cache-control": "no-store"}

_git_replica = replica_router("git")


async def _operations(context: Context, fleet: FleetDep, workspace: Workspace) -> GitOperations:
    return GitOperations(context, fleet, workspace)


GitProtocol = Annotated[str, Header(description="The versions that git speaks: `version=2`.")]
Operations = Annotated[GitOperations, Depends(_operations)]


@_git_replica.get("/git", response_model_exclude_none=False)
async def states(operations: Operations) -> GitStates:
    """Tell the state of every repository: branch, commits, uncommitted changes, conflicts."""
    return await operations.states()


@_git_replica.get(
    "/git/{repository}/diff",
    response_class=Response,
    responses={200: {"content": {"text/x-diff": {}}, "description": "A patch for `git apply`."}},
)
async def diff(
    repository: str,
    operations: Operations,
    context: Context,
    against: Annotated[Against, Query(description="What the difference is taken against.")] = (
        Against.BASE
    ),
    path: Annotated[
        str | None, Query(max_length=LONGEST_PATH, description="One file or directory only.")
    ] = None,
    checkpoint: Annotated[
        str | None, Query(max_length=LONGEST_REF, description="Id of one to take it against.")
    ] = None,
) -> StreamResponse:
    """Stream a patch that `git apply` takes, binary files included."""
    parts = await operations.diff(repository, against, path, checkpoint)
    return StreamResponse(parts, context.stopping, _PATCH)


@_git_replica.get(
    "/git/{repository}/repo.git/info/refs",
    response_class=Response,
    responses={200: {"content": {ADVERTISED: {}}, "description": "What can be fetched."}},
)
async def advertise(
    repository: str,
    operations: Operations,
    context: Context,
    service: Annotated[
        Literal["git-upload-pack"], Query(description="Fetching only; a push is another operation.")
    ],
    git_protocol: GitProtocol = "",
) -> StreamResponse:
    """Begin a `git fetch` or `git clone` of the replica's branches and tags."""
    parts = await operations.upload_pack(repository, None, git_protocol)
    if "version=2" not in git_protocol:  # as git's own server does
        parts.prepend(b"001e# service=git-upload-pack\n0000")
    headers = {"content-type": ADVERTISED, "cache-control": "no-cache"}
    return StreamResponse(parts, context.stopping, headers)


@_git_replica.post(
    "/git/{repository}/repo.git/git-upload-pack",
    response_class=Response,
    responses={200: {"content": {UPLOADED: {}}, "description": "The answer of git."}},
)
async def upload_pack(
    repository: str,
    operations: Operations,
    context: Context,
    request: Request,
    git_protocol: GitProtocol = "",
) -> StreamResponse:
    """Go on with a `git fetch`: a request of git's smart HTTP protocol."""
    encoding = request.headers.get("content-encoding")
    body = await asyncio.to_thread(decompressed, await request.body(), encoding)
    parts = await operations.upload_pack(repository, body, git_protocol)
    headers = {"content-type": UPLOADED, "cache-control": "no-cache"}
    return StreamResponse(parts, context.stopping, headers)


@_git_replica.post("/git/{repository}/commit")
async def commit(repository: str, body: CommitChanges, operations: Operations) -> Committed:
    """Commit changes in the replica; a conflict when there is nothing to commit."""
    return await operations.commit(repository, body)


@_git_replica.post("/git/{repository}/update")
async def update(repository: str, body: UpdateBranch, operations: Operations) -> Updated:
    """Bring the base branch in by a merge or a rebase; all or nothing."""
    return await operations.update(repository, body)


@_git_replica.post("/git/{repository}/push")
async def push(repository: str, body: PushBranch, operations: Operations) -> Pushed:
    """Push a branch to the repository's source with the person's credentials."""
    return await operations.push(repository, body)


@_git_replica.get("/checkpoints")
async def checkpoints(operations: Operations) -> Checkpoints:
    """List the checkpoints: the files as they were when each turn began."""
    return await operations.checkpoints()


@_git_replica.post("/rewind")
async def rewind(body: Rewind, operations: Operations) -> Rewound:
    """Restore files and branches of a checkpoint; the answer names one that undoes it."""
    return await operations.rewind(body)


git_router = both_families(_git_replica)


_FAILS = fails(400, 404, 409, 429)

_pull_requests_replica = replica_router("git")


async def _pull_requests(
    request: Request, context: Context, operations: Operations, workspace: Workspace
) -> PullRequestService:
    return PullRequestService(context, operations, parts(request).host_apis, workspace)


PullRequestsDep = Annotated[PullRequestService, Depends(_pull_requests)]
Number = Annotated[
    int, Path(ge=1, le=1 << 53, description="Number of the pull request at its host."), DIGITS
]


@_pull_requests_replica.get("/pull-requests", response_model_exclude_none=False, responses=_FAILS)
async def list_pull_requests(pull_requests: PullRequestsDep) -> PullRequestList:
    """List the pull requests of the replica's branches as their hosts have them."""
    return await pull_requests.list()


@_pull_requests_replica.post("/pull-requests", response_model_exclude_none=False, responses=_FAILS)
async def open_pull_request(
    body: OpenPullRequest, pull_requests: PullRequestsDep
) -> PullRequestDetail:
    """Push a branch and open a pull request of it, or return the one that is open.

    Uncommitted changes are not part of it.
    """
    return await pull_requests.open(body)


@_pull_requests_replica.post(
    "/pull-requests/{number}/merge", response_model_exclude_none=False, responses=_FAILS
)
async def merge_pull_request(
    number: Number, body: MergePullRequest, pull_requests: PullRequestsDep
) -> PullRequestDetail:
    """Merge a pull request at its host; one that is merged already is returned as it is."""
    return await pull_requests.merge(number, body)


pull_requests_router = both_families(_pull_requests_replica)
