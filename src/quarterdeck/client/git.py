"""Repositories, git in a replica, its `origin` and pull requests."""

# `list` in annotations is the type, also in classes with a method `list`.
from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal
from uuid import UUID

from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.paths import segment
from quarterdeck.wire.base import Success
from quarterdeck.wire.git import (
    Against,
    Checkpoint,
    Checkpoints,
    CommitChanges,
    Committed,
    GitState,
    GitStates,
    MergeMethod,
    MergePullRequest,
    OpenPullRequest,
    OriginPushed,
    OriginUpdate,
    PullRequestDetail,
    PullRequestList,
    PushBranch,
    Pushed,
    PushOrigin,
    Rewind,
    Rewound,
    SourceRefs,
    UpdateBranch,
    Updated,
)
from quarterdeck.wire.repositories import (
    BranchList,
    ChangeRepositorySet,
    ConnectRepository,
    CreateRepositorySet,
    Repository,
    RepositoryAnswer,
    RepositoryList,
    RepositorySet,
    RepositorySetAnswer,
    RepositorySetList,
)

VERSION_2 = {"Git-Protocol": "version=2"}
PUSH_SECONDS = 1800.0
HOOK_SECONDS = 600.0
"""A commit and an update run hooks of the repository."""


class GitApi:
    """`/v1/replica/{id}/git`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def states(self, replica_id: UUID) -> list[GitState]:
        """Return the state of every repository; does not wake the replica."""
        answer = await self._connection.call("GET", f"/v1/replica/{replica_id}/git", GitStates)
        return answer.repositories

    def diff(
        self,
        replica_id: UUID,
        repository: str,
        *,
        against: Against = Against.BASE,
        path: str | None = None,
        checkpoint: str | None = None,
    ) -> AbstractAsyncContextManager[AsyncGenerator[bytes]]:
        """Open a patch for `git apply`; the block gets it in parts.

        With `checkpoint`, the id of one, it has the changes since then.

        Raises:
            NotFoundError: the replica has no such repository or checkpoint.
            NotActiveError: its files are packed or not made yet.
            ConflictError: git refused.
        """
        query = {"against": against.value, "path": path, "checkpoint": checkpoint}
        return self._connection.download(f"{_git_path(replica_id, repository)}/diff", query)

    def refs(
        self, replica_id: UUID, repository: str
    ) -> AbstractAsyncContextManager[AsyncGenerator[bytes]]:
        """Open the first answer of git's protocol, version 2, for a fetch from the replica.

        Raises:
            NotFoundError: the replica has no such repository.
            NotActiveError: its files are packed or not made yet.
        """
        path = f"{_git_path(replica_id, repository)}/repo.git/info/refs"
        query = {"service": "git-upload-pack"}
        return self._connection.download(path, query, headers=VERSION_2)

    def upload_pack(
        self, replica_id: UUID, repository: str, request: bytes
    ) -> AbstractAsyncContextManager[AsyncGenerator[bytes]]:
        """Open the answer to one request of git's protocol, version 2.

        Raises:
            ConflictError: git refused.
        """
        path = f"{_git_path(replica_id, repository)}/repo.git/git-upload-pack"
        return self._connection.download(path, content=request, headers=VERSION_2)

    async def commit(
        self,
        replica_id: UUID,
        repository: str,
        message: str | None = None,
        paths: Sequence[str] | None = None,
    ) -> Committed:
        """Commit everything, or some files; without a message the chat's title is used.

        Raises:
            ConflictError: there is nothing to commit, or a hook refused.
        """
        return await self._connection.call(
            "POST",
            f"{_git_path(replica_id, repository)}/commit",
            Committed,
            body=CommitChanges(message=message, paths=list(paths) if paths else None),
            timeout=HOOK_SECONDS,
        )

    async def update(
        self,
        replica_id: UUID,
        repository: str,
        strategy: Literal["merge", "rebase"] = "merge",
        *,
        autostash: bool = False,
    ) -> Updated:
        """Merge the base branch, as its source has it now, or rebase onto it.

        Raises:
            ConflictError: `conflicts` has the files, and nothing was changed; or the source cannot be
                reached; or uncommitted changes are in the way, with `UNCOMMITTED_CHANGES`.
        """
        return await self._connection.call(
            "POST",
            f"{_git_path(replica_id, repository)}/update",
            Updated,
            body=UpdateBranch(strategy=strategy, autostash=autostash),
            timeout=HOOK_SECONDS,
        )

    async def push(
        self, replica_id: UUID, repository: str, branch: str | None = None, *, force: bool = False
    ) -> Pushed:
        """Push a branch to the source with the person's credentials, which stay with the service.

        Args:
            branch: by default the one that is checked out.
            force: replace other commits at the source, if they are the ones last seen.

        Raises:
            ConflictError: the source refused, or the branch is checked out there.
        """
        return await self._connection.call(
            "POST",
            f"{_git_path(replica_id, repository)}/push",
            Pushed,
            body=PushBranch(branch=branch, force=force),
            timeout=PUSH_SECONDS,
        )

    async def checkpoints(self, replica_id: UUID) -> list[Checkpoint]:
        """Return the checkpoints of the files, one for each turn, the newest first.

        Raises:
            NotActiveError: the files are packed or not made yet.
        """
        answer = await self._connection.call(
            "GET", f"/v1/replica/{replica_id}/checkpoints", Checkpoints, timeout=HOOK_SECONDS
        )
        return answer.checkpoints

    async def rewind(self, replica_id: UUID, checkpoint: str, *, chat: bool = False) -> Rewound:
        """Restore the files and branches of a checkpoint; the answer names one that undoes it.

        With `chat`, each chat shows a line about it, and each agent's next message mentions it.

        Raises:
            NotFoundError: the checkpoint does not exist.
            ConflictError: a turn is running, or git refused.
        """
        return await self._connection.call(
            "POST",
            f"/v1/replica/{replica_id}/rewind",
            Rewound,
            body=Rewind(checkpoint=checkpoint, chat=chat),
            timeout=HOOK_SECONDS,
        )


def _git_path(replica_id: UUID, repository: str) -> str:
    return f"/v1/replica/{replica_id}/git/{segment(repository)}"


TRANSFER_SECONDS = 1800.0
ANSWER_SECONDS = 86_400.0
"""A push may wait for a person."""


class OriginApi:
    """`/v1/origin/{repository}`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def source_refs(self, repository: str) -> dict[str, str]:
        """Return commits of branches, tags and HEAD of the source, by their full names.

        Raises:
            ConflictError: the source cannot be reached.
        """
        path = f"{_origin_path(repository)}/refs"
        return (await self._connection.call("GET", path, SourceRefs, timeout=TRANSFER_SECONDS)).refs

    def refs(self, repository: str) -> AbstractAsyncContextManager[AsyncGenerator[bytes]]:
        """Open the first answer of git's protocol, version 2, for a fetch from the source.

        Raises:
            ConflictError: the source cannot be reached.
        """
        query = {"service": "git-upload-pack"}
        return self._connection.download(
            f"{_origin_path(repository)}/info/refs", query, headers=VERSION_2
        )

    def upload_pack(
        self, repository: str, request: bytes
    ) -> AbstractAsyncContextManager[AsyncGenerator[bytes]]:
        """Open the answer to one request of git's protocol, version 2."""
        path = f"{_origin_path(repository)}/git-upload-pack"
        return self._connection.download(path, content=request, headers=VERSION_2)

    async def push(
        self, repository: str, updates: Sequence[OriginUpdate], chat_id: UUID | None = None
    ) -> str:
        """Push to the source; return git's output. A person may be asked in the chat.

        Raises:
            ForbiddenError: the push policy or the person refused.
            ConflictError: the source refused.
        """
        answer = await self._connection.call(
            "POST",
            f"{_origin_path(repository)}/push",
            OriginPushed,
            body=PushOrigin(updates=list(updates), chat_id=chat_id),
            timeout=ANSWER_SECONDS,
        )
        return answer.message


def _origin_path(repository: str) -> str:
    return f"/v1/origin/{segment(repository)}"


HOST_SECONDS = 300.0
"""One request includes a push and several calls to a host."""


class PullRequestsApi:
    """`/v1/replica/{id}/pull-requests`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(self, replica_id: UUID) -> list[PullRequestDetail]:
        """Return the pull requests of the replica's branches as their hosts have them.

        Raises:
            ConflictError: no repository is of a configured host, or the host cannot be used now.
            RateLimitedError: the host limits requests.
        """
        answer = await self._connection.call(
            "GET", _pull_requests_path(replica_id), PullRequestList, timeout=HOST_SECONDS
        )
        return answer.pull_requests

    async def create(
        self,
        replica_id: UUID,
        repository: str,
        *,
        title: str | None = None,
        body: str | None = None,
        base: str | None = None,
        draft: bool = False,
    ) -> PullRequestDetail:
        """Push the branch and open a pull request of it; return the open one if there is one.

        Safe to repeat: there is one pull request afterwards.

        Raises:
            NotFoundError: the replica has no such repository, or its host denies access to it.
            ConflictError: as `list`, or the push was refused.
            InvalidRequestError: the host did not accept it; `details` says why.
        """
        request = OpenPullRequest(
            repository=repository, title=title, body=body, base=base, draft=draft
        )
        return await self._connection.call(
            "POST",
            _pull_requests_path(replica_id),
            PullRequestDetail,
            body=request,
            timeout=HOST_SECONDS,
        )

    async def merge(
        self,
        replica_id: UUID,
        number: int,
        method: MergeMethod = "merge",
        *,
        repository: str | None = None,
        head_sha: str | None = None,
    ) -> PullRequestDetail:
        """Merge a pull request, if the head of its branch is still `head_sha`.

        Safe to repeat: one that is already merged is returned.

        Raises:
            NotFoundError: the replica has no such pull request.
            ConflictError: the host did not merge it, with its reason in `details`; as `list`.
        """
        return await self._connection.call(
            "POST",
            f"{_pull_requests_path(replica_id)}/{number}/merge",
            PullRequestDetail,
            body=MergePullRequest(method=method, repository=repository, head_sha=head_sha),
            timeout=HOST_SECONDS,
        )


def _pull_requests_path(replica_id: UUID) -> str:
    return f"/v1/replica/{replica_id}/pull-requests"


PATH = "/v1/replica/repositories"
SETS = "/v1/replica/repository-sets"
FETCH_SECONDS = 180.0
MIRROR_SECONDS = 600.0
"""Connecting is answered after the whole repository has been mirrored."""


class RepositoriesApi:
    """`/v1/replica/repositories`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(self) -> list[Repository]:
        """Return every connected repository."""
        return (await self._connection.call("GET", PATH, RepositoryList)).repositories

    async def connect(self, repository: ConnectRepository) -> Repository:
        """Connect a git URL or a local path.

        Raises:
            InvalidRequestError: it is not a repository.
        """
        answer = await self._connection.call(
            "POST", PATH, RepositoryAnswer, body=repository, timeout=MIRROR_SECONDS
        )
        return answer.repository

    async def branches(self, repository_id: UUID) -> BranchList:
        """Return the branches of the source, the one with the newest commit first.

        Raises:
            ConflictError: it cannot be reached, and was never fetched.
        """
        path = f"{PATH}/{repository_id}/branches"
        return await self._connection.call("GET", path, BranchList, timeout=FETCH_SECONDS)

    async def disconnect(self, repository_id: UUID) -> None:
        """Disconnect one. Raises `ConflictError` while an environment or a set uses it."""
        await self._connection.call("DELETE", f"{PATH}/{repository_id}", Success)


class RepositorySetsApi:
    """`/v1/replica/repository-sets`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(self) -> list[RepositorySet]:
        """Return every set with the ids of its repositories."""
        return (await self._connection.call("GET", SETS, RepositorySetList)).repository_sets

    async def create(self, repository_set: CreateRepositorySet) -> RepositorySet:
        """Create one. Raises `ConflictError` when the name is taken."""
        answer = await self._connection.call("POST", SETS, RepositorySetAnswer, body=repository_set)
        return answer.repository_set

    async def get(self, set_id: UUID) -> RepositorySet:
        """Return one set. Raises `NotFoundError`."""
        answer = await self._connection.call("GET", f"{SETS}/{set_id}", RepositorySetAnswer)
        return answer.repository_set

    async def change(self, set_id: UUID, change: ChangeRepositorySet) -> RepositorySet:
        """Change its name or repositories. Raises `ConflictError` when the name is taken."""
        answer = await self._connection.call(
            "PATCH", f"{SETS}/{set_id}", RepositorySetAnswer, body=change
        )
        return answer.repository_set

    async def delete(self, set_id: UUID) -> None:
        """Remove one. Raises `ConflictError` while an environment is bound to it."""
        await self._connection.call("DELETE", f"{SETS}/{set_id}", Success)
