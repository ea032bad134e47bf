"""Pull requests of a replica's branches: list, open, merge.

Only their URLs are stored here (`EventRepository.pr_urls`); everything else is at the host.
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.git.operations import GitOperations, store_repositories
from quarterdeck.service.hosts.api import HostApis, HostRefusedError, RepositoryApi, token_setting
from quarterdeck.service.hosts.events import as_line
from quarterdeck.service.hosts.pull_requests import (
    HostPullRequests,
    PullRequestsOfHostA,
    PullRequestsOfHostB,
    if_visible,
    together,
)
from quarterdeck.service.hosts.settings import HOST_A, HOST_B, address_of, hosts_of
from quarterdeck.service.replicas.rows import (
    WorkspaceRow,
    find_workspace,
    pull_requests_of,
    seen_repositories,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.git import (
    LONGEST_BODY,
    LONGEST_TITLE,
    GitState,
    MergePullRequest,
    OpenPullRequest,
    PullRequestChecks,
    PullRequestDetail,
    PullRequestList,
    PushBranch,
)
from quarterdeck.wire.git_state import EventRepository, ReposChanged

logger = logging.getLogger(__name__)

MOST_SHOWN = 20
"""Maximum number of pull requests of one repository in a list."""
KINDS: dict[str, Callable[[RepositoryApi, str], HostPullRequests]] = {
    HOST_A: PullRequestsOfHostA,
    HOST_B: PullRequestsOfHostB,
}
_NOT_MERGED = (400, 405, 406, 409, 422)
"""Statuses of a refused merge: not mergeable, a draft, a changed head, merged already."""
_NOT_MADE = (400, 409, 422)
"""Statuses of a refused pull request, perhaps because there is one."""


@dataclass(frozen=True)
class _Place:
    """A repository of the replica at its host. `seen` is its last known state."""

    name: str
    host: str
    full_name: str
    default_branch: str
    pull_requests: HostPullRequests
    seen: EventRepository | None

    @property
    def base(self) -> str:
        """The target branch of pull requests."""
        return (self.seen and self.seen.base_branch) or self.default_branch

    @property
    def branch(self) -> str | None:
        """The branch that is checked out, unless it is the target branch."""
        branch = self.seen and self.seen.current_branch
        return branch if branch not in (None, self.base, self.default_branch) else None

    @property
    def numbers(self) -> list[int]:
        """Numbers of the replica's known pull requests."""
        below = f"{self.full_name}/".lower()
        return [
            one.number
            for one in (pull_requests_of(self.seen) if self.seen else ())
            if (address_of(one.url) or ("", ""))[1].lower().startswith(below)
        ]


class PullRequestService:
    """Pull requests of one workspace, asleep or awake."""

    def __init__(
        self,
        context: ServiceContext,
        operations: GitOperations,
        apis: HostApis,
        row: WorkspaceRow,
    ) -> None:
        self._context = context
        self._operations = operations
        self._apis = apis
        self._row = row

    async def list(self) -> PullRequestList:
        """Return the pull requests of checked-out branches, and those opened before.

        Raises:
            ApiError: CONFLICT when no repository has a usable host or a host cannot be reached,
                RATE_LIMITED while it limits requests, NOT_FOUND when it hides the repository.
        """
        shown = await together(self._of_place(place) for place in self._places())
        found = [one for group in shown for one in group]
        await self._keep(found)
        return PullRequestList(pull_requests=found)

    async def open(self, body: OpenPullRequest) -> PullRequestDetail:
        """Push the branch, and open a pull request of it unless there is one.

        Raises:
            ApiError: NOT_FOUND, CONFLICT when the push or the host refused, INVALID_REQUEST with
                the host's reason; as `list`.
        """
        place = self._place(self._entry(body.repository))
        branch, base = await self._branch(place.name), body.base or place.base
        # Checked before the push, which would otherwise push to the base branch itself.
        if branch is None or branch in (base, place.base, place.default_branch):
            raise ApiError(
                ErrorCode.CONFLICT,
                f"A pull request needs its own branch; checked out: {branch or 'none'}.",
                "Ask the agent to move the work to another branch.",
            )
        # Concurrent callers get the same one.
        async with self._apis.lock(f"{place.host} {place.full_name.lower()} {branch}"):
            await self._operations.push(place.name, PushBranch(branch=branch))
            pull_request = await self._find_open(place, branch, body.base)
            if pull_request is None:
                pull_request = await self._create(place, branch, base, body)
                opened = "Opened draft" if pull_request.draft else "Opened"
                await self._record("pull_request", opened, place, pull_request)
        await self._keep([pull_request])
        return await self._looked(place, pull_request)

    async def merge(self, number: int, body: MergePullRequest) -> PullRequestDetail:
        """Merge one, if its branch still has the given commit.

        Raises:
            ApiError: CONFLICT with the host's reason when it does not merge; as `list`.
        """
        place = await self._place_of(number, body.repository)
        looked = await place.pull_requests.look(number, now=True)
        if looked.state == "merged":
            return looked
        if looked.state == "closed" or looked.head_sha is None:
            raise _not_merged(place, number, "It is closed.")
        if body.head_sha not in (None, looked.head_sha):
            reason = f"{looked.head} has changed since. Refresh and check it again."
            raise _not_merged(place, number, reason)
        try:
            await place.pull_requests.merge(number, looked.head_sha, body.method)
        except HostRefusedError as error:
            if error.host_status not in _NOT_MERGED:
                raise
            after = await place.pull_requests.look(number, now=True)
            if after.state != "merged":
                raise _not_merged(place, number, error.details) from error
            await self._record("merge", "Merged", place, after)
            return after
        await self._record("merge", "Merged", place, looked)
        merged = looked.model_copy(
            update={
                "state": "merged",
                "mergeable": None,
                "review": None,
                "unresolved_threads": None,
                "checks": PullRequestChecks(),
            }
        )
        return await self._looked(place, merged)

    async def _record(
        self, operation: str, done: str, place: _Place, pull_request: PullRequestDetail
    ) -> None:
        title = as_line(pull_request.title) or ""
        text = f"{done} pull request {pull_request.number} of {place.name}: {title}"
        await self._operations.record(operation, f"{text} ({pull_request.url})", place.name)

    async def _looked(self, place: _Place, done: PullRequestDetail) -> PullRequestDetail:
        """Return the current pull request from its host, or at least the operation's result."""
        try:
            return await place.pull_requests.look(done.number, now=True)
        except ApiError as error:
            logger.warning("pull request %s could not be looked at: %s", done.url, error)
            return done

    async def _of_place(self, place: _Place) -> "list[PullRequestDetail]":
        found: dict[int, PullRequestDetail] = {}
        if place.branch is not None:
            of_branch = await place.pull_requests.of_branch(place.branch)
            found = {one.number: one for one in of_branch}
        numbers = sorted({*found, *place.numbers}, reverse=True)[:MOST_SHOWN]
        # For one that is not open the list is complete.
        shown = await together(
            if_visible(place.pull_requests.look(number))
            for number in numbers
            if number not in found or found[number].state == "open"
        )
        found |= {one.number: one for one in shown if one is not None}
        return [found[number] for number in numbers if number in found]

    async def _find_open(
        self, place: _Place, branch: str, base: str | None
    ) -> PullRequestDetail | None:
        for one in await place.pull_requests.of_branch(branch, now=True):
            if one.state == "open" and base in (None, one.base):
                return one
        return None

    async def _create(
        self, place: _Place, branch: str, base: str, body: OpenPullRequest
    ) -> PullRequestDetail:
        title = body.title or (as_line(await self._operations.title()) or branch)[:LONGEST_TITLE]
        text = await self._titles(place.name) if body.body is None else body.body
        try:
            return await place.pull_requests.create(branch, base, title, text, draft=body.draft)
        except HostRefusedError as error:
            if error.host_status not in _NOT_MADE:
                raise
            found = await self._find_open(place, branch, body.base)
            if found is None:
                raise
            return found

    async def _state(self, name: str) -> GitState | None:
        states = (await self._operations.states()).repositories
        return next((one for one in states if one.repository == name), None)

    async def _branch(self, name: str) -> str | None:
        state = await self._state(name)
        return state and state.branch

    async def _titles(self, name: str) -> str:
        """Return the titles of the branch's commits as a list, oldest first."""
        state = await self._state(name)
        commits = state.commits if state else []
        titles = [as_line(one.title) or one.sha for one in reversed(commits)]
        return "\n".join(f"- {title}" for title in titles)[:LONGEST_BODY]

    def _entry(self, name: str) -> dict[str, str]:
        entries = json.loads(self._row.repositories_json)
        for entry in entries:
            if entry["name"] == name:
                return entry
        names = ", ".join(entry["name"] for entry in entries) or "none"
        raise ApiError(
            ErrorCode.NOT_FOUND, f"The replica has no repository {name}.", f"repositories: {names}"
        )

    def _places(self) -> Sequence[_Place]:
        """Return the repositories with a usable host; raise an error when there are only others."""
        places: list[_Place] = []
        refused: ApiError | None = None
        for entry in json.loads(self._row.repositories_json):
            try:
                places.append(self._place(entry))
            except ApiError as error:
                refused = refused or error
        if refused is not None and not places:
            raise refused
        return places

    def _place(self, entry: dict[str, str]) -> _Place:
        name, url = entry["name"], entry["url"]
        served = hosts_of(self._context.hosts, url)
        for host, full_name in served:
            if self._context.hosts.of(host).writable:
                api = self._apis.of(host, full_name)
                seen = {one.name: one for one in seen_repositories(self._row)}
                return _Place(
                    name=name,
                    host=host,
                    full_name=full_name,
                    default_branch=entry["default_branch"],
                    pull_requests=KINDS[host](api, name),
                    seen=seen.get(name),
                )
        if served:
            host = served[0][0]
            message = f"No token is configured for {host}. Set {token_setting(host)}."
        elif (address := address_of(url)) is not None:
            message = (
                f"No host is configured for {address[0]}. Set `api_url` and a token in [host-a] or"
                " [host-b] of the configuration file."
            )
        else:
            message = (
                f"The source of {name} is a local path, which has no pull requests. Create the"
                " replica from the URL of the remote to push and open pull requests there, or use"
                " qd replica fetch, qd replica apply or qd replica merge."
            )
        raise ApiError(ErrorCode.CONFLICT, message, f"repository: {name}")

    async def _place_of(self, number: int, repository: str | None) -> _Place:
        """Return the repository that has this replica's pull request of a number."""
        places = self._places() if repository is None else [self._place(self._entry(repository))]
        matching = [place for place in places if await self._has(place, number)]
        if not matching:
            raise ApiError(ErrorCode.NOT_FOUND, f"The replica has no pull request {number}.")
        if len(matching) > 1:
            names = ", ".join(place.name for place in matching)
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Several repositories have a pull request {number}. Name one.",
                f"repository: {names}",
            )
        return matching[0]

    async def _has(self, place: _Place, number: int) -> bool:
        if number in place.numbers:
            return True
        if place.branch is None:
            return False
        of_branch = await place.pull_requests.of_branch(place.branch, now=True)
        return any(one.number == number for one in of_branch)

    async def _keep(self, pull_requests: Iterable[PullRequestDetail]) -> None:
        """Store the addresses of those that are not known yet."""
        known = {url for one in seen_repositories(self._row) for url in one.pr_urls}
        new = [one for one in pull_requests if one.url not in known]
        if new:
            await self._context.event_log.write(lambda writer: self._store(writer, new))

    def _store(self, writer: LogWriter, pull_requests: Iterable[PullRequestDetail]) -> None:
        row = find_workspace(writer.connection, self._row.id)
        if row is None:
            return  # deleted in the meantime
        seen = {one.name: one for one in seen_repositories(row)}
        changed = False
        for one in reversed([*pull_requests]):  # the newest is kept last
            repository = seen.get(one.repository)
            if repository is not None and one.url not in repository.pr_urls:
                repository.pr_urls.append(one.url)
                changed = True
        if changed:
            store_repositories(writer, row.id, ReposChanged(repos=[*seen.values()]))


def _not_merged(place: _Place, number: int, reason: str | None) -> ApiError:
    message = f"Pull request {number} of {place.name} was not merged."
    return ApiError(ErrorCode.CONFLICT, message, reason)
