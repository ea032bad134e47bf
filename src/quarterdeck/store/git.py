"""Get changes out of a replica: git operations there and in the person's checkout.

dialog -> GetChanges -> client.git          (the replica's repositories)
-> local.checkout      (the repository the cockpit was started in)
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import EEXIST
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

from quarterdeck.client.errors import ClientError, InvalidRequestError, ResponseError
from quarterdeck.local.checkout import (
    OWN_PREFIX,
    ConflictingLinesError,
    DivergedError,
    LocalCheckout,
    OverlapError,
)
from quarterdeck.local.git import CheckoutError, NoRepositoryError, read_patch
from quarterdeck.local.repository import CheckoutState
from quarterdeck.store.pull_requests import PullRequestStore
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.environments import Environment
from quarterdeck.wire.git import Committed, GitState, PullRequestDetail, Pushed
from quarterdeck.wire.repositories import ConnectRepository, CreateRepositorySet, Repository

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.app_state import AppState


MOST_COPIES = 1000
"""File names tried for a patch."""

SILENT = {"GIT_TERMINAL_PROMPT": "0", "GPG_TTY": ""}
"""Variables that keep git and GPG from prompting on the terminal of the cockpit."""

Failed = (ClientError, CheckoutError, OSError)
"""Errors of an operation; `failure_of` describes them."""


@dataclass(frozen=True)
class OperationFailure:
    """Why an operation failed. `files` overlap or conflict; `diverged`: a forced fetch helps.

    `same_lines`: they were changed here and in the replica.
    """

    message: str
    details: str = ""
    files: tuple[str, ...] = ()
    diverged: bool = False
    same_lines: bool = False


def failure_of(error: ClientError | CheckoutError | OSError) -> OperationFailure:
    """Return the description of an error."""
    match error:
        case OverlapError(files=files):
            same_lines = isinstance(error, ConflictingLinesError)
            return OperationFailure(str(error), files=tuple(files), same_lines=same_lines)
        case CheckoutError(details=details):
            return OperationFailure(
                str(error), details or "", diverged=isinstance(error, DivergedError)
            )
        case ResponseError(details=details, conflicts=conflicts) if details or conflicts:
            return OperationFailure(
                str(error), "" if conflicts else details or "", tuple(conflicts)
            )
        case ClientError(next_step=next_step):
            return OperationFailure(str(error), next_step)
        case OSError(filename=filename, strerror=reason):
            return OperationFailure(f"{filename}: {reason}" if filename else reason or str(error))


def has_pull_requests(replica: ReplicaState | None, repository: str) -> bool:
    """Return whether the source of a repository can have pull requests: it is not a directory."""
    repositories = replica.record.repositories if replica else []
    source = next((candidate.url for candidate in repositories if candidate.name == repository), "")
    return not source.startswith(("/", "~", "file://"))


def local_branch(state: GitState) -> str:
    """Return the local name of a replica's branch; empty on a detached head."""
    return OWN_PREFIX + state.branch.removeprefix(OWN_PREFIX) if state.branch else ""


class GetChanges:
    """The operations on one replica. Those with a `GitState` are about that repository.

    Each may raise `ClientError`, `CheckoutError` or `OSError`.
    """

    def __init__(self, owner: "AppState", replica_id: UUID, variables: Mapping[str, str]) -> None:
        """`variables` configure the service for `git-remote-qd`."""
        self._owner = owner
        self._variables = {**variables, **SILENT}
        self.replica_id = replica_id
        self.repositories: list[GitState] = []
        self.checkout: LocalCheckout | None = None
        self.checkout_state: CheckoutState | None = None
        self._foreign: set[str] = set()
        self.no_checkout = ""
        """Why there is no checkout."""

    @property
    def replica(self) -> ReplicaState | None:
        """The replica; None when it has been deleted."""
        return self._owner.replicas.get(self.replica_id)

    @property
    def name(self) -> str:
        """Name of the replica."""
        return self.replica.name if self.replica else str(self.replica_id)

    @property
    def title(self) -> str:
        """Default commit message."""
        return self.replica.newest_title if self.replica else self.name

    def source(self, repository: str) -> str:
        """Return the URL that a repository was cloned from; empty when unknown."""
        repositories = self.replica.record.repositories if self.replica else []
        return next(
            (candidate.url for candidate in repositories if candidate.name == repository), ""
        )

    @property
    def pulls(self) -> PullRequestStore:
        """The pull requests at the source hosts."""
        return self._owner.pull_requests

    def pull_request(self, repository: str) -> PullRequestDetail | None:
        """Return the open pull request of a repository, if it was read."""
        known = (self.replica.pull_requests if self.replica else None) or []
        ours = (pull for pull in known if pull.repository == repository)
        return next((pull for pull in ours if pull.state == "open"), None)

    async def look(self) -> None:
        """Read the state of the replica's repositories and of the checkout."""
        self.repositories = await self._owner.client.git.states(self.replica_id)
        directory = self._owner.directory
        try:
            self.checkout = await LocalCheckout.find(directory or Path.cwd(), self._variables)
            self.checkout_state = await self.checkout.state()
            self._foreign = {
                repository.repository
                for repository in self.repositories
                if not await self.checkout.is_clone(
                    self.source(repository.repository), repository.base_commit or repository.head
                )
            }
        except NoRepositoryError:
            self.no_checkout = "qd was not started in a git repository"
        except CheckoutError as error:
            self.no_checkout = error.details or str(error)

    def is_foreign(self, state: GitState) -> bool:
        """Return whether the checkout is of a different repository."""
        return self.checkout is not None and state.repository in self._foreign

    def likeliest(self) -> int:
        """Return the index of the first repository that the checkout is a clone of."""
        clones = (
            n for n, candidate in enumerate(self.repositories) if not self.is_foreign(candidate)
        )
        return next(clones, 0)

    async def fetch(self, state: GitState, *, force: bool = False) -> str:
        """Fetch the replica's branch into the checkout's repository; return the newest commit."""
        return await self._checkout().fetch(
            self._address(state), state.branch or "", local_branch(state), force=force
        )

    async def merge(self, state: GitState) -> str | None:
        """Fetch the branch and merge it into the one checked out; None when it was merged before."""
        await self.fetch(state)
        branch = local_branch(state)
        return await self._checkout().merge(
            branch, "merge", f"Merge {branch}", self._address(state)
        )

    async def apply(self, state: GitState) -> list[str]:
        """Apply all changes to the files of the checkout; return the files that changed."""
        async with self._owner.client.git.diff(self.replica_id, state.repository) as parts:
            patch = await read_patch(parts)
        return await self._checkout().apply(patch, self._address(state)) if patch else []

    async def commit(self, state: GitState, message: str) -> Committed:
        """Commit all uncommitted changes in the replica."""
        return await self._owner.client.git.commit(self.replica_id, state.repository, message)

    async def push(self, state: GitState) -> Pushed:
        """Push the branch to the source of the repository."""
        return await self._owner.client.git.push(self.replica_id, state.repository)

    @property
    def patch(self) -> Path:
        """The file that `save` writes, unless it exists."""
        directory = self._owner.directory or Path.cwd()
        return directory / f"{self.name.replace(os.sep, '-')}.patch"

    async def save(self, state: GitState) -> Path | None:
        """Write all changes to a new file and return its path; None when there are none."""
        client = self._owner.client
        async with client.git.diff(self.replica_id, state.repository) as parts:
            file = await asyncio.to_thread(_create, self.patch)
            path = Path(file.name)
            written = 0
            try:
                with file:
                    async for part in parts:
                        written += await asyncio.to_thread(file.write, part)
            except BaseException:
                await asyncio.to_thread(path.unlink, missing_ok=True)
                raise
        if not written:
            await asyncio.to_thread(path.unlink, missing_ok=True)
            return None
        return path

    def _address(self, state: GitState) -> str:
        """Return the URL of a repository for git."""
        return f"qd::{self.replica_id}/{state.repository}"

    def _checkout(self) -> LocalCheckout:
        if self.checkout is None:
            raise NoRepositoryError(self.no_checkout)
        return self.checkout


def _create(wanted: Path) -> BinaryIO:
    """Create a file with this name, or with the first free number."""
    for number in range(1, MOST_COPIES):
        path = wanted if number == 1 else wanted.with_name(f"{wanted.stem}-{number}.patch")
        with suppress(FileExistsError):
            return path.open("xb")
    raise FileExistsError(EEXIST, "too many patches have this name", str(wanted))


@dataclass(frozen=True)
class RequestedRepository:
    """A path or URL, and the branch to start from; None for the default branch."""

    url: str
    branch: str | None = None


@dataclass(frozen=True)
class Binding:
    """The binding of an environment: one repository, or a set."""

    repository_id: UUID | None = None
    repository_set_id: UUID | None = None

    def fits(self, environment: Environment) -> bool:
        """Return whether an environment has this binding."""
        return (environment.repository_id, environment.repository_set_id) == (
            self.repository_id,
            self.repository_set_id,
        )


async def connected(
    client: "Client", first: RequestedRepository, others: Sequence[RequestedRepository]
) -> list[Repository]:
    """Connect repositories.

    Raises:
        InvalidRequestError: one is not a repository, or is connected with another branch; `details`
            starts with `url` or `branch` for the first, with `others` for the rest.
        ClientError: refused or unreachable.
    """
    repositories = [await _connected(client, first)]
    for requested in others:
        try:
            repositories.append(await _connected(client, requested))
        except InvalidRequestError as error:
            error.details = f"others: {requested.url}"
            raise
    return list({repository.id: repository for repository in repositories}.values())


async def _connected(client: "Client", requested: RequestedRepository) -> Repository:
    body = ConnectRepository(url=requested.url, default_branch=requested.branch)
    repository = await client.repositories.connect(body)
    if requested.branch is not None and repository.default_branch != requested.branch:
        raise InvalidRequestError(
            f"{repository.name} is connected with the branch {repository.default_branch} already.",
            status=400,
            details="branch",
            next_step="Leave the branch out, or disconnect the repository first.",
        )
    return repository


async def binding(client: "Client", repositories: Sequence[Repository]) -> Binding:
    """Return one repository, or the set of exactly these; the set is created when there is none.

    Raises:
        ClientError: refused or unreachable.
    """
    if len(repositories) == 1:
        return Binding(repository_id=repositories[0].id)
    wanted = [repository.id for repository in repositories]
    sets = await client.repository_sets.list()
    for repository_set in sets:
        if repository_set.repositories == wanted:
            return Binding(repository_set_id=repository_set.id)
    name = _free(
        "-".join(repository.name for repository in repositories)[:80],
        {repository_set.name for repository_set in sets},
    )
    created = await client.repository_sets.create(
        CreateRepositorySet(name=name, repositories=wanted)
    )
    return Binding(repository_set_id=created.id)


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
