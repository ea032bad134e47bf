"""Git in a replica, its `origin`, and pull requests."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from quarterdeck.wire.base import (
    NO_NUL,
    NOT_BLANK,
    ONE_LINE,
    Body,
    CamelRecord,
    GivenId,
    Record,
    Timestamp,
)
from quarterdeck.wire.git_state import EngineRepository, GitCommit, RepositoryState

LONGEST_MESSAGE = 100_000
"""Longest commit message, in characters."""
LONGEST_BRANCH = 250
"""Longest name of a branch, in characters."""
LONGEST_REF = 1_000
"""Longest full name of a branch, tag or checkpoint, in characters."""
MOST_PATHS = 10_000
"""Most paths of one request."""


class Against(StrEnum):
    """Base of a difference."""

    BASE = "base"
    """All changes: commits, uncommitted changes and new files, against the base branch."""
    HEAD = "head"
    """Commits alone, against the base branch."""
    UNCOMMITTED = "uncommitted"
    """Uncommitted changes and new files, against the newest commit."""


class GitState(RepositoryState):
    """The state of one repository as it is now."""

    path: str | None = None
    """Where the files are on the service's machine; null while they are packed."""


class GitStates(Record):
    """Answer of `GET /v1/replica/{id}/git`."""

    repositories: list[GitState]
    """Every repository of the replica."""


class GitCall(CamelRecord):
    """One operation of the service's, carried out by `engine.git_tool` in the workspace's sandbox."""

    operation: Literal["look", "commit", "update", "pack", "checkpoints", "rewind"]
    repositories: list[EngineRepository]
    """All of the workspace for `look` and `checkpoints`, else the one that is meant."""
    hooks_completed: bool = False
    """What `look` reports: whether the start hooks have run."""
    message: str | None = None
    paths: list[str] = []
    base: str | None = None
    """Newest commit of the base branch."""
    branch: str | None = None
    """Branch of the replica that is pushed; the one that is checked out when it is null."""
    commits: list[str] = []
    """Commits and tags to pack in place of a branch."""
    rebase: bool = False
    autostash: bool = False
    checkpoint: str | None = None
    """Id of the checkpoint that is rewound to."""
    undo: str | None = None
    """Id of the checkpoint that is made before."""


class PackHeader(CamelRecord):
    """First line that `pack` prints, before the pack itself."""

    branch: str
    commit: str


class GitFailure(CamelRecord):
    """Last line of standard error of `engine.git_tool` when the operation was refused."""

    kind: Literal["nothing", "conflict", "uncommitted", "failed"]
    message: str
    conflicts: list[str] = []


class Checkpoint(Record):
    """The files of a replica's repositories at one moment, ignored ones excepted."""

    id: str
    """`turns/` and the id of the message whose turn began then, or one that a rewind made."""
    at: Timestamp
    """When it was created."""
    title: str
    """First line of the message."""
    commits: dict[str, str]
    """Commit that holds the files, by the name of the repository."""


class Checkpoints(Record):
    """Answer of `GET /v1/replica/{id}/checkpoints`."""

    checkpoints: list[Checkpoint]
    """The newest first."""


class Rewind(Body):
    """Body of `POST /v1/replica/{id}/rewind`."""

    checkpoint: Annotated[str, Field(min_length=1, max_length=LONGEST_REF), NO_NUL]
    """Id of the checkpoint."""
    chat: bool = False
    """Note it in the chats, and inform each agent before its next message."""


class Rewound(Record):
    """Answer of a rewind."""

    undo: str
    """Checkpoint of the files as they were before, which undoes it."""


class CommitChanges(Body):
    """Body of `POST .../git/{repository}/commit`."""

    message: (
        Annotated[str, Field(min_length=1, max_length=LONGEST_MESSAGE), NO_NUL, NOT_BLANK] | None
    ) = None
    """Message of the commit; the chat's title when it is left out."""
    paths: Annotated[list[str], Field(min_length=1, max_length=MOST_PATHS)] | None = None
    """Files and directories to commit; everything when it is left out."""


class Committed(Record):
    """Answer of a commit."""

    commit: GitCommit
    """The new commit."""
    branch: str | None = None
    """Branch that it is on; null on a detached head."""


class UpdateBranch(Body):
    """Body of `POST .../git/{repository}/update`."""

    strategy: Literal["merge", "rebase"] = "merge"
    """How the base branch comes in."""
    autostash: bool = False
    """Put uncommitted changes aside meanwhile; without it they may be in the way."""


class Updated(Record):
    """Answer of an update."""

    head: str
    """Commit that is checked out now."""
    base: str
    """Commit of the base branch that came in."""
    changed: bool
    """Whether there was anything to bring in."""
    conflicts: list[str] = []
    """Files in which the stashed changes conflict with what came in; they are still in the stash, too."""


class PushBranch(Body):
    """Body of `POST .../git/{repository}/push`."""

    branch: Annotated[str, Field(min_length=1, max_length=LONGEST_BRANCH), NO_NUL] | None = None
    """Branch of the replica; the one that is checked out when it is left out."""
    force: bool = False
    """Replace other commits at the source, if they are the ones that were last seen."""


class Pushed(Record):
    """Answer of a push."""

    repository: str
    """Name of the repository."""
    branch: str
    """Branch at the source, called as in the replica."""
    commit: str
    """Its newest commit."""
    changed: bool
    """Whether the source did not have it before."""
    message: str
    """Messages of git and of the source."""


MOST_UPDATES = 1_000
"""Most branches and tags of one push."""
_OBJECT = r"^[0-9a-f]{40}([0-9a-f]{24})?$"


class SourceRefs(Record):
    """Answer of `GET /v1/origin/{repository}/refs`."""

    refs: dict[str, str]
    """Branches, tags and HEAD of the source, by their full names."""


class OriginUpdate(Body):
    """A branch or tag of the source that is to change."""

    ref: Annotated[str, Field(min_length=1, max_length=LONGEST_REF), NO_NUL]
    """Full name, such as `refs/heads/main`."""
    commit: Annotated[str, Field(pattern=_OBJECT)] | None = None
    """New value; null removes it."""
    force: bool = False
    """Replace other commits, if they are `known`."""
    known: Annotated[str, Field(pattern=_OBJECT)] | None = None
    """Last known value."""


class PushOrigin(Body):
    """Body of `POST /v1/origin/{repository}/push`."""

    updates: Annotated[list[OriginUpdate], Field(min_length=1, max_length=MOST_UPDATES)]
    """All of them happen or none."""
    chat_id: GivenId | None = None
    """Chat in which a person is asked."""


class OriginPushed(Record):
    """Answer of a push from within a replica."""

    message: str
    """Messages of git and of the source."""


LONGEST_TITLE = 255
"""Longest title of a pull request, in characters."""
LONGEST_BODY = 60_000
"""Longest description of a pull request, in characters."""

PullRequestState = Literal["open", "closed", "merged"]
ReviewState = Literal["approved", "changes_requested", "required"]
ChecksState = Literal["pending", "passing", "failing"]
MergeMethod = Literal["merge", "squash", "rebase"]

BranchName = Annotated[str, Field(min_length=1, max_length=LONGEST_BRANCH), ONE_LINE]
RepositoryName = Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]


class FailedCheck(Record):
    """A check of a pull request that has failed."""

    name: str
    """Name of the check."""
    url: str | None = None
    """Page with its result; null when the host names none."""


class PullRequestChecks(Record):
    """Combined result of the checks of a pull request's newest commit."""

    state: ChecksState | None = None
    """`failing` when one has failed, else `pending` while one runs, else `passing`; null when there
    are none, when the token may not read them, and when the pull request is not open."""
    failed: list[FailedCheck] = []
    """Those that have failed, at most fifty."""


class PullRequestDetail(Record):
    """A pull request as its host has it."""

    repository: str
    """Name of the repository in the replica."""
    number: int
    """Number of the pull request at its host."""
    url: str
    """Page of the pull request."""
    title: str
    """Title of the pull request."""
    state: PullRequestState
    """Whether it is open, closed without a merge, or merged."""
    draft: bool
    """Whether it is a draft, which cannot be merged."""
    base: str
    """Branch that it is to be merged into."""
    head: str
    """Branch with the changes."""
    head_sha: str | None = None
    """Newest commit of that branch at the host; null when the host names none."""
    mergeable: bool | None = None
    """Whether it merges without conflicts; null while the host does not know it, and when the pull
    request is not open."""
    review: ReviewState | None = None
    """`changes_requested` when a reviewer wants changes, else `approved`, else `required` while a
    review is requested; null when there is none, and when the pull request is not open."""
    unresolved_threads: int | None = None
    """How many threads of its reviews are not resolved; null when that cannot be read, and when the
    pull request is not open."""
    # Constructed, not validated: that would build the model when this is imported.
    checks: PullRequestChecks = PullRequestChecks.model_construct()
    """Combined result of its checks."""


class PullRequestList(Record):
    """Answer of `GET /v1/replica/{id}/pull-requests`."""

    pull_requests: list[PullRequestDetail]
    """Those of the current branches and those opened from the replica, newest first by repository."""


class OpenPullRequest(Body):
    """Body of `POST /v1/replica/{id}/pull-requests`."""

    repository: RepositoryName
    """Name of the repository in the replica."""
    title: (
        Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE), ONE_LINE, NOT_BLANK] | None
    ) = None
    """Title; the chat's title when it is left out."""
    body: Annotated[str, Field(max_length=LONGEST_BODY), NO_NUL] | None = None
    """Description; the titles of the commits when it is left out."""
    base: BranchName | None = None
    """Branch that it is to be merged into; the repository's base branch when it is left out."""
    draft: bool = False
    """Whether to open it as a draft."""


class MergePullRequest(Body):
    """Body of `POST /v1/replica/{id}/pull-requests/{number}/merge`."""

    repository: RepositoryName | None = None
    """Name of the repository in the replica; needed where several have a pull request of the number."""
    method: MergeMethod = "merge"
    """How it is merged."""
    head_sha: Annotated[str, Field(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")] | None = None
    """Commit that was looked at: when the branch has another one by now, nothing is merged. Without
    it that is the one that the service sees just before."""
