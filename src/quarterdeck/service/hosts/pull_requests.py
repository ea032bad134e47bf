"""Pull requests of one repository at a source host, the same for both hosts."""

import asyncio
from collections.abc import Awaitable, Coroutine, Generator, Iterable
from contextlib import contextmanager
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import AfterValidator, Field

from quarterdeck.service.errors import ApiError
from quarterdeck.service.hosts.api import MOST_PAGES, HostRefusedError, RepositoryApi
from quarterdeck.service.hosts.events import EventShape, Number, as_line
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.git import (
    LONGEST_TITLE,
    ChecksState,
    FailedCheck,
    MergeMethod,
    PullRequestChecks,
    PullRequestDetail,
    PullRequestState,
    ReviewState,
)

MOST_FAILED = 50
LONGEST_NAME = 200
LONGEST_URL = 2_000
THREADS_SECONDS = 120.0
"""How long a number of threads counts while nothing else says that the pull request has changed."""
THREADS_WAIT = 5.0
"""Seconds after which a pull request is shown without the number of its threads."""
HIDDEN = (403, 404)
"""Statuses for resources that the token may not read, or that the host's edition does not have."""

T = TypeVar("T")


class HostPullRequests(Protocol):
    """Pull requests of a repository whose branches are in the repository itself.

    Every method raises the errors of `service.hosts.api.RepositoryApi`.
    """

    async def of_branch(self, head: str, *, now: bool = False) -> list[PullRequestDetail]:
        """Return those of a branch, newest first; without mergeability, review and checks."""
        ...

    async def look(self, number: int, *, now: bool = False) -> PullRequestDetail:
        """Return one with all details."""
        ...

    async def create(
        self, head: str, base: str, title: str, body: str, *, draft: bool
    ) -> PullRequestDetail:
        """Open one; without mergeability, review and checks."""
        ...

    async def merge(self, number: int, head_sha: str, method: MergeMethod) -> None:
        """Merge one, if its branch still has that commit."""
        ...


async def if_visible(reading: Awaitable[T]) -> T | None:
    """Return the result of a read; None when the token may not read it."""
    try:
        return await reading
    except HostRefusedError as error:
        if error.host_status in HIDDEN:
            return None
        raise


async def with_state(
    detail: PullRequestDetail,
    mergeable: bool | None,
    review: Coroutine[Any, Any, ReviewState | None],
    checks: Coroutine[Any, Any, PullRequestChecks],
    threads: Coroutine[Any, Any, int | None],
) -> PullRequestDetail:
    """Add the details of an open pull request, which are read concurrently."""
    with _first_error():
        async with asyncio.TaskGroup() as group:
            reviewed, checked = group.create_task(review), group.create_task(checks)
            unresolved = group.create_task(threads)
    return detail.model_copy(
        update={
            "mergeable": mergeable,
            "review": reviewed.result(),
            "unresolved_threads": unresolved.result(),
            "checks": checked.result(),
        }
    )


async def if_counted(counting: Awaitable[int]) -> int | None:
    """Return a number of threads; None when the host does not tell it, for whatever reason."""
    try:
        async with asyncio.timeout(THREADS_WAIT):
            return await counting
    except (ApiError, TimeoutError):
        return None


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of concurrent reads; the first error cancels all."""
    with _first_error():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in work]
    return [task.result() for task in tasks]


@contextmanager
def _first_error() -> Generator[None]:
    try:
        yield
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors


def checks_of(states: Iterable[tuple[ChecksState | None, FailedCheck]]) -> PullRequestChecks:
    """Sum up checks: `failing` before `pending` before `passing`; None is ignored."""
    present: set[ChecksState | None] = set()
    failed: list[FailedCheck] = []
    for state, check in states:
        present.add(state)
        if state == "failing":
            failed.append(check)
    order: tuple[ChecksState, ...] = ("failing", "pending", "passing")
    for state in order:
        if state in present:
            return PullRequestChecks(state=state, failed=failed[:MOST_FAILED])
    return PullRequestChecks()


def named(name: str | None, url: str | None) -> FailedCheck:
    """Return a check's name and page, sanitized."""
    return FailedCheck(name=(as_line(name) or "check")[:LONGEST_NAME], url=as_url(url))


def as_url(text: str | None) -> str | None:
    """Return the URL of a page if a browser may open it, else None."""
    if text is None or not text.startswith(("http://", "https://")) or len(text) > LONGEST_URL:
        return None
    return text if text.isascii() and text.isprintable() and " " not in text else None


def _page_url(text: str) -> str:
    url = as_url(text)
    if url is None:
        raise ValueError("it is not an http(s) address")
    return url


PageUrl = Annotated[str, AfterValidator(_page_url)]
Sha = Annotated[str, Field(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")]


_VERDICTS = ("CHANGES_REQUESTED", "APPROVED", "DISMISSED")
"""States of a review that decide; a comment does not change the reviewer's earlier verdict."""
_FAILED = ("failure", "error", "timed_out", "cancelled", "action_required", "startup_failure")
_PASSED = ("success", "neutral", "skipped")


class _Repository(EventShape):
    full_name: str


class _Branch(EventShape):
    ref: str
    sha: Sha
    repo: _Repository | None = None


class _Pull(EventShape):
    number: Number
    html_url: PageUrl
    title: str
    state: str
    draft: bool = False
    merged_at: str | None = None
    head: _Branch
    base: _Branch
    mergeable: bool | None = None
    requested_reviewers: list[object] = []
    requested_teams: list[object] = []
    review_comments: int | None = None
    updated_at: str | None = None


class _User(EventShape):
    id: int


class _Review(EventShape):
    user: _User | None = None
    state: str


class _CheckRun(EventShape):
    name: str
    status: str
    conclusion: str | None = None
    html_url: str | None = None


class _CheckRuns(EventShape):
    check_runs: list[_CheckRun] = []


class _Status(EventShape):
    context: str
    state: str
    target_url: str | None = None


class _Statuses(EventShape):
    statuses: list[_Status] = []


class _Merged(EventShape):
    merged: bool = True


_THREADS = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100, after: $after) {
        nodes { isResolved }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}"""
"""The REST API does not say which threads are resolved."""


class _Thread(EventShape):
    is_resolved: bool = Field(alias="isResolved")


class _Page(EventShape):
    has_next: bool = Field(alias="hasNextPage")
    end: str | None = Field(alias="endCursor")


class _Threads(EventShape):
    nodes: list[_Thread]
    page: _Page = Field(alias="pageInfo")


class _PullThreads(EventShape):
    threads: _Threads = Field(alias="reviewThreads")


class _RepositoryThreads(EventShape):
    pull: _PullThreads = Field(alias="pullRequest")


class _ThreadsData(EventShape):
    repository: _RepositoryThreads


class _ThreadsAnswer(EventShape):
    data: _ThreadsData


class PullRequestsOfHostA:
    """`HostPullRequests` of host A. `name` is the replica's name of the repository."""

    def __init__(self, api: RepositoryApi, name: str) -> None:
        self._api = api
        self._name = name

    async def of_branch(self, head: str, *, now: bool = False) -> list[PullRequestDetail]:
        """Return those of a branch, newest first."""
        owner = self._api.repository.partition("/")[0]
        query = {"head": f"{owner}:{head}", "state": "all"}
        pages = await self._api.pages("/pulls", list[_Pull], query, now=now)
        # A host without the filter would return all.
        return [
            self._detail(pull)
            for page in pages
            for pull in page
            if pull.head.ref == head and self._is_own(pull)
        ]

    async def look(self, number: int, *, now: bool = False) -> PullRequestDetail:
        """Return one with all details."""
        pull = await self._api.get(f"/pulls/{number}", _Pull, now=now)
        detail = self._detail(pull)
        if detail.state != "open":
            return detail
        review, checks = self._review(pull, now), self._checks(pull.head.sha, now)
        return await with_state(detail, pull.mergeable, review, checks, self._unresolved(pull, now))

    async def create(
        self, head: str, base: str, title: str, body: str, *, draft: bool
    ) -> PullRequestDetail:
        """Open one."""
        fields = {"title": title, "head": head, "base": base, "body": body, "draft": draft}
        return self._detail(await self._api.send("POST", "/pulls", fields, _Pull))

    async def merge(self, number: int, head_sha: str, method: MergeMethod) -> None:
        """Merge one, if its branch still has that commit."""
        fields = {"merge_method": method, "sha": head_sha}
        await self._api.send("PUT", f"/pulls/{number}/merge", fields, _Merged)

    def _is_own(self, pull: _Pull) -> bool:
        repository = pull.head.repo and pull.head.repo.full_name
        return repository is None or repository.lower() == self._api.repository.lower()

    def _detail(self, pull: _Pull) -> PullRequestDetail:
        state: PullRequestState = "open"
        if pull.state != "open":
            state = "merged" if pull.merged_at is not None else "closed"
        return PullRequestDetail(
            repository=self._name,
            number=pull.number,
            url=pull.html_url,
            title=as_line(pull.title) or "",
            state=state,
            draft=pull.draft,
            base=as_line(pull.base.ref) or "",
            head=as_line(pull.head.ref) or "",
            head_sha=pull.head.sha,
        )

    async def _review(self, pull: _Pull, now: bool) -> ReviewState | None:
        """Return the review state by each reviewer's last verdict; one negative one decides."""
        pages = await if_visible(
            self._api.pages(f"/pulls/{pull.number}/reviews", list[_Review], now=now)
        )
        last = {
            review.user.id if review.user else None: review.state
            for page in pages or []
            for review in page
            if review.state in _VERDICTS
        }
        if "CHANGES_REQUESTED" in last.values():
            return "changes_requested"
        if "APPROVED" in last.values():
            return "approved"
        return "required" if pull.requested_reviewers or pull.requested_teams else None

    async def _unresolved(self, pull: _Pull, now: bool) -> int | None:
        """Return the number of unresolved threads, without a query where nobody has commented."""
        if not pull.review_comments:
            return pull.review_comments
        name = f"threads {pull.number} {pull.updated_at} {pull.review_comments}"
        return await self._api.cached(
            name, lambda: if_counted(self._count(pull.number)), THREADS_SECONDS, now=now
        )

    async def _count(self, number: int) -> int:
        owner, _, name = self._api.repository.partition("/")
        count, after = 0, None
        for _ in range(MOST_PAGES):
            variables = {"owner": owner, "name": name, "number": number, "after": after}
            answer = await self._api.query(_THREADS, variables, _ThreadsAnswer)
            threads = answer.data.repository.pull.threads
            count += sum(not thread.is_resolved for thread in threads.nodes)
            after = threads.page.end
            if not threads.page.has_next:
                break
        return count

    async def _checks(self, sha: str, now: bool) -> PullRequestChecks:
        """Return the check runs, and the statuses that older tools set."""
        commit = f"/commits/{sha}"
        runs = await if_visible(self._api.pages(f"{commit}/check-runs", _CheckRuns, now=now))
        statuses = await if_visible(self._api.pages(f"{commit}/status", _Statuses, now=now))
        results = [
            (check_run.conclusion or check_run.status, check_run.name, check_run.html_url)
            for page in runs or []
            for check_run in page.check_runs
        ]
        results += [
            (status.state, status.context, status.target_url)
            for page in statuses or []
            for status in page.statuses
        ]
        return checks_of((_state(state), named(name, url)) for state, name, url in results)


def _state(result: str) -> ChecksState:
    if result in _FAILED:
        return "failing"
    return "passing" if result in _PASSED else "pending"


_STATES: dict[str, PullRequestState] = {"merged": "merged", "closed": "closed"}
"""Other states (`opened`, and `locked` while it is being merged) are open."""
_MERGEABLE = {"can_be_merged": True, "cannot_be_merged": False, "cannot_be_merged_recheck": False}
_REBASED = ("rebase_merge", "ff")
"""Merge methods of a project that keep its history linear."""


class _Pipeline(EventShape):
    status: str
    web_url: str | None = None


class _MergeRequest(EventShape):
    iid: Number
    web_url: PageUrl
    title: str
    state: str
    draft: bool = False
    source_branch: str
    target_branch: str
    source_project_id: int | None = None
    target_project_id: int | None = None
    sha: Sha | None = None
    merge_status: str | None = None
    detailed_merge_status: str | None = None
    has_conflicts: bool | None = None
    reviewers: list[object] | None = None
    head_pipeline: _Pipeline | None = None
    user_notes_count: int | None = None
    updated_at: str | None = None


class _Approvals(EventShape):
    approvals_left: int | None = None
    approved_by: list[object] = []


class _StatusB(EventShape):
    name: str
    status: str
    target_url: str | None = None
    allow_failure: bool | None = None


class _Note(EventShape):
    resolvable: bool = False
    resolved: bool = False


class _Discussion(EventShape):
    notes: list[_Note] = []


class _Project(EventShape):
    merge_method: str | None = None


class PullRequestsOfHostB:
    """`HostPullRequests` of host B. `name` is the replica's name of the repository."""

    def __init__(self, api: RepositoryApi, name: str) -> None:
        self._api = api
        self._name = name

    async def of_branch(self, head: str, *, now: bool = False) -> list[PullRequestDetail]:
        """Return those of a branch, newest first."""
        query = {"source_branch": head, "state": "all", "scope": "all"}
        pages = await self._api.pages("/merge_requests", list[_MergeRequest], query, now=now)
        return [
            self._detail(request)
            for page in pages
            for request in page
            if request.source_branch == head
            and request.source_project_id == request.target_project_id
        ]

    async def look(self, number: int, *, now: bool = False) -> PullRequestDetail:
        """Return one with all details."""
        request = await self._api.get(f"/merge_requests/{number}", _MergeRequest, now=now)
        detail = self._detail(request)
        if detail.state != "open":
            return detail
        mergeable = _MERGEABLE.get(request.merge_status or "")
        if request.has_conflicts:
            mergeable = False
        review, checks = self._review(request, now), self._checks(request, now)
        return await with_state(detail, mergeable, review, checks, self._unresolved(request, now))

    async def create(
        self, head: str, base: str, title: str, body: str, *, draft: bool
    ) -> PullRequestDetail:
        """Open one. A draft is marked in its title here."""
        fields = {
            "source_branch": head,
            "target_branch": base,
            "title": f"Draft: {title}"[:LONGEST_TITLE] if draft else title,
            "description": body,
        }
        return self._detail(await self._api.send("POST", "/merge_requests", fields, _MergeRequest))

    async def merge(self, number: int, head_sha: str, method: MergeMethod) -> None:
        """Merge one, if its branch still has that commit.

        Raises:
            ApiError: CONFLICT when the project does not merge this way.
        """
        if method == "rebase":
            project = await self._api.get("", _Project)
            if project.merge_method not in _REBASED:
                raise ApiError(
                    ErrorCode.CONFLICT,
                    "host-b merges this project with merge commits, and cannot rebase at a merge.",
                    "Use merge or squash, or change the merge method in the project's settings.",
                )
        fields = {"sha": head_sha, "squash": method == "squash"}
        path = f"/merge_requests/{number}/merge"
        await self._api.send("PUT", path, fields, _MergeRequest)

    def _detail(self, request: _MergeRequest) -> PullRequestDetail:
        return PullRequestDetail(
            repository=self._name,
            number=request.iid,
            url=request.web_url,
            title=as_line(request.title) or "",
            state=_STATES.get(request.state, "open"),
            draft=request.draft,
            base=as_line(request.target_branch) or "",
            head=as_line(request.source_branch) or "",
            head_sha=request.sha,
        )

    async def _review(self, request: _MergeRequest, now: bool) -> ReviewState | None:
        if request.detailed_merge_status == "requested_changes":
            return "changes_requested"
        path = f"/merge_requests/{request.iid}/approvals"
        approvals = await if_visible(self._api.get(path, _Approvals, now=now))
        if approvals is not None and approvals.approved_by and not approvals.approvals_left:
            return "approved"
        left = approvals is not None and approvals.approvals_left
        required = request.detailed_merge_status == "not_approved"
        return "required" if left or required or request.reviewers else None

    async def _unresolved(self, request: _MergeRequest, now: bool) -> int | None:
        """Return the number of unresolved threads, without a call where nobody has commented.

        `blocking_discussions_resolved` is true also where the project does not require it.
        """
        if request.user_notes_count == 0:
            return 0
        name = f"threads {request.iid} {request.updated_at} {request.user_notes_count}"
        return await self._api.cached(
            name, lambda: if_counted(self._count(request.iid)), THREADS_SECONDS, now=now
        )

    async def _count(self, number: int) -> int:
        path = f"/merge_requests/{number}/discussions"
        pages = await self._api.pages(path, list[_Discussion], now=True)
        return sum(
            any(note.resolvable and not note.resolved for note in discussion.notes)
            for page in pages
            for discussion in page
        )

    async def _checks(self, request: _MergeRequest, now: bool) -> PullRequestChecks:
        """Return the statuses of the newest commit: jobs of pipelines, and those of other tools."""
        statuses: list[list[_StatusB]] | None = None
        if request.sha is not None:
            path = f"/repository/commits/{request.sha}/statuses"
            statuses = await if_visible(self._api.pages(path, list[_StatusB], now=now))
        collected = [status for page in statuses or [] for status in page]
        pipeline = request.head_pipeline
        if pipeline is not None and not collected:
            # A status of the merged result is of another commit.
            collected = [
                _StatusB(name="pipeline", status=pipeline.status, target_url=pipeline.web_url)
            ]
        return checks_of(
            (_state_b(status), named(status.name, status.target_url)) for status in collected
        )


def _state_b(status: _StatusB) -> ChecksState | None:
    match status.status:
        case "failed" | "canceled" if not status.allow_failure:
            return "failing"
        case "success" | "failed" | "canceled":
            return "passing"
        case "skipped" | "manual":  # does not block the caller
            return None
        case _:
            return "pending"
