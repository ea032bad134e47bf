"""Repositories and repository sets."""

import os
from asyncio import Lock
from collections.abc import Sequence
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from sqlalchemy import ColumnElement, Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.sandboxes.errors import CloneError, NotARepositoryError, UnknownBranchError
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.sandboxes.source_port import MirrorInfo
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import environments
from quarterdeck.service.environments.rows import names_bound_to
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import reaches_private
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.repositories.rows import (
    add_repository,
    add_repository_set,
    change_repository_set,
    find_by_url,
    find_repository,
    find_repository_set,
    has_repository,
    remove_repository,
    remove_repository_set,
    sets_with,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.repositories import (
    BranchList,
    ChangeRepositorySet,
    ConnectRepository,
    CreateRepositorySet,
    Repository,
    RepositorySet,
)

_connecting: WeakValueDictionary[tuple[str, str], Lock] = WeakValueDictionary()


async def connect_repository(
    context: ServiceContext, caller: Caller, body: ConnectRepository
) -> Repository:
    """Connect a repository, or find the one connected under the same URL.

    A repeated call is not an error, so that a cockpit can pass its directory without a check; the
    stored name and branch do not change.

    Raises:
        ApiError: INVALID_REQUEST when there is no repository, it has no such branch, or it cannot be
            mirrored.
        SandboxError: the mirror cannot be kept here, for instance on a full disk.
    """
    url = _same_for_same_place(body.url)
    # Held by concurrent calls for the same URL: one creates the mirror, the others find it.
    lock = _connecting.setdefault((caller.organization_id, url), Lock())
    async with lock:
        known = await context.database.read(lambda c: find_by_url(c, caller.organization_id, url))
        return known or await _connect(context, caller, body, url)


async def branches_of(context: ServiceContext, caller: Caller, repository_id: UUID) -> BranchList:
    """Return the branches of a repository's source, or of its mirror.

    Raises:
        ApiError: NOT_FOUND; CONFLICT when there is no mirror, and none can be created.
    """
    row = await context.database.read(
        lambda c: find_repository(c, caller.organization_id, str(repository_id))
    )
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No repository has this id.")
    source = RepositorySource.from_json(row.model_dump(mode="json"))
    try:
        names = await context.sources.branches(source)
    except (NotARepositoryError, CloneError) as e:
        raise ApiError(ErrorCode.CONFLICT, str(e), e.details) from e
    return BranchList(branches=names, default_branch=row.default_branch)


async def _connect(
    context: ServiceContext, caller: Caller, body: ConnectRepository, url: str
) -> Repository:
    repository_id = uuid4()
    private = await reaches_private(context.database, context.outgoing_private, caller.user_id)
    info = await _mirror(context, str(repository_id), url, body.default_branch, private)
    repository = Repository(
        id=repository_id,
        name=body.name or info.suggested_name,
        url=url,
        default_branch=body.default_branch or info.default_branch,
    )
    now = moment_text(context.clock())
    await context.database.write(
        lambda c: add_repository(c, caller.organization_id, repository, now)
    )
    return repository


async def _mirror(
    context: ServiceContext, repository_id: str, url: str, branch: str | None, private: bool
) -> MirrorInfo:
    try:
        return await context.sources.connect_repository(repository_id, url, branch, private)
    except UnknownBranchError as e:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(e), f"default_branch: {branch}") from e
    except (NotARepositoryError, CloneError) as e:
        details = f"url: {e.details}" if e.details else "url"
        raise ApiError(ErrorCode.INVALID_REQUEST, str(e), details) from e


def _same_for_same_place(url: str) -> str:
    """Return one spelling for a local path; other URLs are not changed."""
    text = url.strip()
    if text.startswith("~"):
        text = os.path.expanduser(text)  # noqa: PTH111 - a Path would touch URLs
    return os.path.normpath(text) if text.startswith("/") else text


async def create_set(
    context: ServiceContext, caller: Caller, body: CreateRepositorySet
) -> RepositorySet:
    """Store a set; a repository that is given twice is in it once.

    Raises:
        ApiError: CONFLICT for a name that is taken, INVALID_REQUEST for a repository that does not
            exist.
    """
    set_id, now = str(uuid4()), moment_text(context.clock())

    def run(connection: Connection) -> RepositorySet:
        wanted = _known(connection, caller, body.repositories)
        add_repository_set(connection, set_id, caller.organization_id, body.name, wanted, now)
        return _require(connection, caller, set_id)

    try:
        return await context.database.write(run)
    except IntegrityError as e:
        raise _name_conflict(body.name) from e


async def read_set(context: ServiceContext, caller: Caller, set_id: str) -> RepositorySet:
    """Return a set.

    Raises:
        ApiError: NOT_FOUND.
    """
    return await context.database.read(lambda c: _require(c, caller, set_id))


async def change_set(
    context: ServiceContext, caller: Caller, set_id: str, body: ChangeRepositorySet
) -> RepositorySet:
    """Give a set another name or other repositories. Existing workspaces keep theirs.

    Raises:
        ApiError: NOT_FOUND; as `create_set`.
    """

    def run(connection: Connection) -> RepositorySet:
        _require(connection, caller, set_id)
        given = body.repositories
        wanted = None if given is None else _known(connection, caller, given)
        change_repository_set(connection, set_id, body.name, wanted)
        return _require(connection, caller, set_id)

    try:
        return await context.database.write(run)
    except IntegrityError as e:
        raise _name_conflict(str(body.name)) from e


async def delete_set(context: ServiceContext, caller: Caller, set_id: str) -> None:
    """Remove a set; its repositories stay connected.

    Raises:
        ApiError: NOT_FOUND, CONFLICT while an environment is bound to it.
    """

    def run(connection: Connection) -> None:
        _require(connection, caller, set_id)
        bound = _bound(connection, caller, environments.c.repository_set_id, set_id)
        _check_unused("repository set", bound)
        remove_repository_set(connection, set_id)

    await context.database.write(run)


async def disconnect_repository(
    context: ServiceContext, caller: Caller, repository_id: str
) -> None:
    """Disconnect a repository; workspaces that have it keep it.

    Clones in workspaces borrow the objects of its mirror. A starting service removes unused
    mirrors.

    Raises:
        ApiError: NOT_FOUND, CONFLICT while an environment is bound to it or a set has it.
    """

    def run(connection: Connection) -> None:
        if not has_repository(connection, caller.organization_id, repository_id):
            raise ApiError(ErrorCode.NOT_FOUND, "No repository has this id.")
        bound = _bound(connection, caller, environments.c.repository_id, repository_id)
        _check_unused("repository", bound, sets_with(connection, repository_id))
        remove_repository(connection, repository_id)

    await context.database.write(run)


def _require(connection: Connection, caller: Caller, set_id: str) -> RepositorySet:
    repository_set = find_repository_set(connection, caller.organization_id, set_id)
    if repository_set is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No repository set has this id.")
    return repository_set


def _known(connection: Connection, caller: Caller, given: Sequence[UUID]) -> list[str]:
    wanted = list(dict.fromkeys(str(member_id) for member_id in given))
    for repository_id in wanted:
        if find_repository(connection, caller.organization_id, repository_id) is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "No repository has this id.",
                f"repositories: {repository_id}",
            )
    return wanted


def _name_conflict(name: str) -> ApiError:
    return ApiError(ErrorCode.CONFLICT, "A repository set has this name already.", f"name: {name}")


def _bound(
    connection: Connection, caller: Caller, column: ColumnElement[str | None], id: str
) -> list[str]:
    """Return the names of the bound environments; those of others are only counted."""
    names, hidden = names_bound_to(connection, column, id, caller.user_id)
    return [*names, *([f"{hidden} of other users"] if hidden else [])]


def _check_unused(noun: str, bound: Sequence[str], sets: Sequence[str] = ()) -> None:
    used = {"environments": bound, "repository sets": sets}
    uses = [f"{kind}: {', '.join(names)}" for kind, names in used.items() if names]
    if uses:
        raise ApiError(ErrorCode.CONFLICT, f"This {noun} is in use.", "; ".join(uses))
