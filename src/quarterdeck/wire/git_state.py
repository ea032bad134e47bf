"""Repositories of a workspace and their state (docs/interface.md 11).

The engine gets an `EngineRepository` and reports an `EventRepository`; records and git operations have
a `RepositoryState`.
"""

from typing import Any

from quarterdeck.wire.base import (
    CamelRecord,
    Id,
    Record,
    Timestamp,
)


class GitCommit(Record):
    """A commit as lists show it."""

    sha: str
    """Name of the commit."""
    title: str
    """First line of its message."""
    author: str
    """Name of its author."""
    at: Timestamp
    """When it was written."""


class Uncommitted(Record):
    """Uncommitted changes of a work tree, new files included."""

    files: int
    """Files that differ from the newest commit."""
    added: int
    """Lines added."""
    removed: int
    """Lines removed."""


class RepositoryState(Record):
    """The state of one repository of a replica."""

    repository: str
    """Name of the repository."""
    branch: str | None = None
    """Branch that is checked out; null on a detached head."""
    base_branch: str | None = None
    """Branch of the source that `ahead` and `behind` count against."""
    base_commit: str | None = None
    """Newest commit of the base branch that the checked-out branch has; null if there is none."""
    head: str | None = None
    """Commit that is checked out; null before the first one."""
    ahead: int | None = None
    """Number of commits that are not on the base branch; null if there is no base branch."""
    behind: int | None = None
    """Number of commits of the base branch that are not here, as of the last fetch."""
    upstream: str | None = None
    """Remote branch that the current one follows."""
    unpushed: int | None = None
    """Number of commits that the upstream, or without one the base branch, does not have."""
    uncommitted: Uncommitted | None = None
    """Uncommitted changes; null while they are not known."""
    conflicts: list[str] = []
    """Files with conflicts."""
    operation: str | None = None
    """`merge` or `rebase` while one waits to be finished."""
    commits: list[GitCommit] = []
    """Newest commits that are not on the base branch, at most fifty."""


class GitDiff(CamelRecord):
    """Changed lines of a repository against its base; `fullDiff` only when asked for."""

    added: int
    """Lines added."""
    removed: int
    """Lines removed."""
    full_diff: str | None = None
    """The whole diff as text; only when it was asked for."""


class UncommittedState(CamelRecord):
    """Uncommitted changes of a work tree, new files included."""

    files: int
    """Files that differ from the last commit."""
    added: int
    """Lines added."""
    removed: int
    """Lines removed."""


class RepositoryCommit(CamelRecord):
    """A commit as lists show it."""

    sha: str
    """Name of the commit."""
    title: str
    """First line of its message."""
    author: str
    """Name of its author."""
    at: Timestamp
    """When it was written."""


class RepositoryStatus(RepositoryState):
    """State of a repository of the workspace, as the engine last reported it."""

    default_branch: str | None = None
    """Branch that changes are compared with."""
    pr_urls: list[str] = []
    """Pages of the pull requests opened from the workspace."""
    start_hooks_completed: bool = False
    """Whether the start hooks of the repository have run."""
    git_diff: dict[str, Any] | None = None
    """Changed lines; null while they are not known."""

    @property
    def changed_lines(self) -> tuple[int, int]:
        """Added and removed lines; 0 where the service gives no number."""
        counts = [(self.git_diff or {}).get(name) for name in ("added", "removed")]
        added, removed = (count if isinstance(count, int) else 0 for count in counts)
        return added, removed


class EventRepository(CamelRecord):
    """A repository as events carry it."""

    name: str
    """Name of the repository."""
    path: str
    """Directory in the workspace."""
    default_branch: str | None = None
    """Branch that changes are compared with."""
    current_branch: str | None = None
    """Branch that is checked out."""
    pr_urls: list[str] = []
    """Pages of the pull requests opened from the workspace."""
    git_diff: GitDiff | None = None
    """Changed lines; null while they are not known."""
    start_hooks_completed: bool = False
    """Whether the start hooks of the repository have run."""
    untracked: list[str] = []
    """Untracked files (own field), repository-relative, the first hundred."""
    head: str | None = None
    """Commit that is checked out (own field); null before the first one."""
    base_branch: str | None = None
    """Branch of the source that `ahead` and `behind` count against (own field)."""
    base_commit: str | None = None
    """Newest commit of the base branch that the current branch has (own field)."""
    base_head: str | None = None
    """Newest commit of the base branch (own field), as of the last fetch; null unless `ahead`."""
    ahead: int | None = None
    """Commits that the base branch lacks (own field); null where it is not known."""
    behind: int | None = None
    """Commits of the base branch that are missing here (own field), as of the last fetch."""
    upstream: str | None = None
    """Remote branch that the current one follows (own field)."""
    unpushed: int | None = None
    """Commits that the upstream, else the base branch, lacks (own field)."""
    uncommitted: UncommittedState | None = None
    """Uncommitted changes (own field); null while they are not known."""
    conflicts: list[str] = []
    """Files with conflicts (own field), repository-relative."""
    operation: str | None = None
    """`merge` or `rebase` while one waits to be finished (own field)."""
    commits: list[RepositoryCommit] = []
    """Newest commits that the base branch lacks (own field), at most fifty."""

    def status(self) -> RepositoryStatus:
        """Return the state as in a replica's record, without the full diff."""
        values = self.model_dump(include=_OF_RECORDS, by_alias=False)
        if self.git_diff is not None:
            values["git_diff"] = {"added": self.git_diff.added, "removed": self.git_diff.removed}
        return RepositoryStatus.model_validate(
            {**values, "repository": self.name, "branch": self.current_branch}
        )


_OF_RECORDS = set(EventRepository.model_fields) & set(RepositoryStatus.model_fields) - {"git_diff"}
"""Fields with the same name and meaning."""


class ReposChanged(CamelRecord):
    """Payload of `repo.discovered` and `repo.status.changed`: all repositories, each time."""

    repos: list[EventRepository]
    """All repositories of the workspace."""


class EngineRepository(CamelRecord):
    """A repository that was put into the workspace. `path` is absolute, as the engine sees it."""

    id: Id
    name: str
    path: str
    default_branch: str
    base_commit: str | None = None
    """The commit the workspace's branch started from; changed lines are counted against it."""
    base_branch: str | None = None
    """The branch that it started from and that commits are counted against; null: the default one."""


class CheckoutDiff(CamelRecord):
    """Differences of a repository's checkout from the commit it started from, as git shows them."""

    name: str
    diff: str


class RepositoryDiffs(CamelRecord):
    """Answer of `repos.diffs`."""

    diffs: list[CheckoutDiff]
