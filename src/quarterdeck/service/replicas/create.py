"""Create replicas: from a starting point or as a fork.

The start of a replica: a branch, tag, commit or pull request, and uncommitted changes.

The person's git makes a bundle of one commit, which is uploaded first:

upload_uncommitted -> (id) -> create: find_start, then claimed with the replica's row -> provision
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.sandboxes.errors import CloneError, NotARepositoryError, UnknownBaseError
from quarterdeck.sandboxes.port import RepositorySource, StartPoint
from quarterdeck.service.agents.service import usable_agent
from quarterdeck.service.chats.messages import ComposedMessage, compose, email_of, goal_agents
from quarterdeck.service.chats.rows import add_message, list_chats, newest_message_chat
from quarterdeck.service.chats.service import store_chat
from quarterdeck.service.checks.service import head_refs
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.service import repositories_for, usable_environment_id
from quarterdeck.service.environments.warm_pool_rows import claim_one
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.first_start import reaches_private
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.saving import save_now
from quarterdeck.service.fleet.transitions import append_status_event, check_limit
from quarterdeck.service.formats import moment_text
from quarterdeck.service.git.inside import require_files
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.notifications.targets import check_webhook_url
from quarterdeck.service.quotas import require_replica_room
from quarterdeck.service.replicas.rows import (
    UNCLAIMED_KEPT,
    Uploaded,
    WorkspaceRow,
    add_uncommitted,
    add_workspace,
    claim_uncommitted,
    drop_unclaimed,
    find_unclaimed,
    make_room_for_upload,
    names_like,
)
from quarterdeck.service.vault import webhook_place
from quarterdeck.wire.agents import BUILTIN
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import (
    CreateReplica,
    ForkReplica,
    ReplicaConfig,
    UncommittedChanges,
    WorkspaceStatus,
)

_SIGNATURE = b"# v2 git bundle\n"
_HEADER_BYTES = 4096
_BASE = re.compile(rb"-([0-9a-f]{40}(?:[0-9a-f]{24})?)(?: [^\n]*)?")
_TIP = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) [^\n]+")


@dataclass(frozen=True)
class RepositoryStart:
    """The start of one repository; `point` is None for its default branch."""

    repository_id: str
    point: StartPoint | None
    upload_id: str | None = None


async def upload_uncommitted(
    context: ServiceContext, caller: Caller, bundle: bytes
) -> UncommittedChanges:
    """Keep a bundle for a replica that is created next.

    Raises:
        ApiError: INVALID_REQUEST when it is not a bundle of one commit on top of another.
    """
    base, commit, pack = read_bundle(bundle)
    upload_id, now = uuid4(), context.clock()

    def store(connection: Connection) -> None:
        drop_unclaimed(connection, moment_text(now - UNCLAIMED_KEPT))
        make_room_for_upload(connection, caller.organization_id, caller.user_id)
        add_uncommitted(
            connection,
            id=str(upload_id),
            organization_id=caller.organization_id,
            user_id=caller.user_id,
            base_commit=base,
            commit_id=commit,
            pack=pack,
            created_at=moment_text(now),
        )

    await context.database.write(store)
    return UncommittedChanges(id=upload_id, base=base, size_bytes=len(bundle))


def read_bundle(bundle: bytes) -> tuple[str, str, bytes]:
    """Return the prerequisite of a bundle, its only commit, and its pack, which is not checked.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    end = bundle.find(b"\n\n", 0, _HEADER_BYTES)
    lines = bundle[len(_SIGNATURE) : max(end, 0)].split(b"\n")
    if bundle.startswith(_SIGNATURE) and end > 0 and len(lines) == 2:
        base, tip = _BASE.fullmatch(lines[0]), _TIP.fullmatch(lines[1])
        pack = bundle[end + 2 :]
        if base and tip and pack.startswith(b"PACK"):
            return base[1].decode(), tip[1].decode(), pack
    raise ApiError(
        ErrorCode.INVALID_REQUEST,
        "The body is not a git bundle of uncommitted changes.",
        "body: a bundle, version 2, with one prerequisite commit and one reference",
    )


async def find_start(
    context: ServiceContext, caller: Caller, body: CreateReplica, known: Collection[str]
) -> RepositoryStart | None:
    """Find the start of the repository that a request names; None when it names none.

    Args:
        known: ids of repositories that have a start already.

    Raises:
        ApiError: INVALID_REQUEST for an unknown name, and for an invalid combination; NOT_FOUND
            for an unknown environment.
    """
    config = body.config
    if config is None or not (config.base or config.pull_request or config.uncommitted):
        return None
    if config.pull_request and (config.base or config.uncommitted):
        raise _refused(
            "A pull request is a base itself.",
            "config.pull_request: neither `base` nor `uncommitted` can go with it",
        )

    def read(connection: Connection) -> tuple[list[dict[str, str]] | None, Uploaded | None]:
        owner = (caller.organization_id, caller.user_id)
        bound = repositories_for(connection, *owner, str(body.environment_id))
        upload = config.uncommitted and find_unclaimed(connection, str(config.uncommitted), *owner)
        return bound, upload or None

    bound, upload = await context.database.read(read)
    source = _requested_repository(bound, config, body.environment_id)
    if source.id in known:
        return None
    if config.uncommitted and upload is None:
        raise no_upload(config.uncommitted)
    point = await _found(context, source, config, upload)
    return RepositoryStart(source.id, point, upload and upload.id)


def _requested_repository(
    bound: list[dict[str, str]] | None, config: ReplicaConfig, environment_id: UUID
) -> RepositorySource:
    """Return the repository that a request is about."""
    if bound is None:
        raise ApiError(
            ErrorCode.NOT_FOUND, "No environment has this id.", f"environment_id: {environment_id}"
        )
    for repository in bound:
        if config.repository in (None, UUID(repository["id"])):
            return RepositorySource.from_json(repository)
    raise _refused(
        "The environment has no such repository.",
        f"config.repository: {config.repository or 'the environment has no repositories'}",
    )


async def _found(
    context: ServiceContext,
    source: RepositorySource,
    config: ReplicaConfig,
    upload: Uploaded | None,
) -> StartPoint | None:
    commit = upload and upload.base_commit
    field = "uncommitted" if upload and not config.base else "base"
    try:
        if config.pull_request:
            field, refs = "pull_request", head_refs(config.pull_request)
            await context.sources.require_ref(source, refs)
            return StartPoint(refs)
        base = config.base or commit
        assert base is not None
        return await context.sources.find_base(source, base, commit)
    except (UnknownBaseError, CloneError, NotARepositoryError) as e:
        details = f"config.{field}: {e.details}" if e.details else f"config.{field}"
        raise _refused(str(e), details) from e


def no_upload(upload_id: UUID | str) -> ApiError:
    """Return the error for a missing upload."""
    return _refused(
        "There are no such uncommitted changes. Upload them again.",
        f"config.uncommitted: {upload_id}",
    )


def _refused(text: str, details: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text, details)


@dataclass(frozen=True)
class Making:
    """One request, checked as far as possible without the database."""

    workspace_id: str
    home_id: str
    driver: str
    body: CreateReplica
    agent: str
    composed: ComposedMessage
    caller: Caller
    now: str
    limit: int
    source: str
    engine_secret_sealed: str
    webhook_url_sealed: str | None
    starts: Mapping[str, StartPoint] = field(default_factory=dict[str, StartPoint])
    """Starts of repositories, by id; the others start at their default branch."""
    start: RepositoryStart | None = None
    """The start of the request's repository."""
    fork: WorkspaceRow | None = None
    """The workspace whose files it gets."""


@dataclass(frozen=True)
class StoredReplica:
    """A stored replica; `message_id` is None without a message."""

    workspace_id: str
    chat_id: str
    message_id: str | None
    claimed: bool


async def create_replica(
    context: ServiceContext, fleet: Fleet, caller: Caller, body: CreateReplica
) -> str:
    """Store a replica and start to prepare it; return its id.

    An unknown agent and one that cannot be used are both refused.

    Raises:
        ApiError: NOT_FOUND for an unknown environment, CONFLICT for a name that is taken,
            INVALID_REQUEST, WORKSPACE_LIMIT_REACHED.
    """
    return await store_planned(context, fleet, await plan_replica(context, fleet, caller, body))


async def store_planned(context: ServiceContext, fleet: Fleet, making: Making) -> str:
    """Store a planned replica and start to prepare it; return its id.

    Raises:
        ApiError: as `create_replica`.
    """
    try:
        replica = await context.event_log.write(lambda writer: store_replica(writer, making))
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT, "A replica has this name already.", f"name: {making.body.name}"
        ) from e
    begin_replica(fleet, replica)
    return replica.workspace_id


async def plan_replica(
    context: ServiceContext,
    fleet: Fleet,
    caller: Caller,
    body: CreateReplica,
    source: str = "api",
    starts: Mapping[str, StartPoint] | None = None,
) -> Making:
    """Check a request; `starts` are the starts of repositories, by id.

    Raises:
        ApiError: INVALID_REQUEST for an agent that cannot be used, or a URL that is not allowed.
        EngineAwayError: the program that would run it does not answer.
    """
    await context.drivers.named(context.drivers.chosen).require_engine()
    private = body.webhook_url is not None and await reaches_private(
        context.database, context.outgoing_private, caller.user_id
    )
    check_webhook_url(body.webhook_url, private)
    requested = BUILTIN if body.coding_agent is None else body.coding_agent
    agent = await usable_agent(
        context, caller.organization_id, caller.user_id, requested, "coding_agent"
    )
    now = moment_text(context.clock())
    limit = fleet.settings.active_limit
    composed = compose(body).for_agent(agent, await goal_agents(context), ())
    _check(composed, body)
    start = await find_start(context, caller, body, starts or {})
    workspace_id, vault, url = str(uuid4()), context.vault, body.webhook_url
    place = webhook_place(caller.organization_id)
    return Making(
        workspace_id,
        context.home_id,
        context.drivers.chosen,
        body,
        agent,
        composed,
        caller,
        now,
        limit,
        source,
        vault.new_engine_secret(workspace_id),
        url and vault.seal(place, url),
        starts or {},
        start,
    )


def begin_replica(fleet: Fleet, replica: StoredReplica) -> None:
    """Start to prepare a stored replica."""
    if replica.claimed:
        fleet.of(replica.workspace_id).claimed()
        fleet.pools.nudge()
    else:
        fleet.of(replica.workspace_id).begin()


def _check(composed: ComposedMessage, body: CreateReplica) -> None:
    """Check that images come with a text: without one there is no message for them."""
    if body.images and not composed.text.strip():
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Images need a message.", "images: without a message"
        )


def store_replica(writer: LogWriter, making: Making) -> StoredReplica:
    """Store the replica, in a prepared workspace if there is one.

    Raises:
        ApiError: NOT_FOUND for an unknown environment, WORKSPACE_LIMIT_REACHED.
        IntegrityError: its name is taken.
    """
    connection = writer.connection
    repositories = _repositories(connection, making)
    check_limit(writer, making.caller.organization_id, making.limit)
    require_replica_room(connection, making.caller.organization_id)
    claimed = _claim(connection, making, repositories)
    workspace_id = claimed or making.workspace_id
    if claimed is None:
        columns = {"organization_id": making.caller.organization_id, **_columns(making)}
        own = {
            "home_id": making.home_id,
            "driver": making.driver,
            "engine_secret_sealed": making.engine_secret_sealed,
        }
        add_workspace(connection, workspace_id, repositories, **own, **columns)
        _claim_uncommitted(connection, making)
    append_status_event(writer, workspace_id, WorkspaceStatus.PREPARING)
    chat_id, message_id = str(uuid4()), None
    store_chat(writer, workspace_id, chat_id, making.agent, making.now)
    if making.composed.text.strip():
        email = email_of(connection, making.caller)
        message = making.composed.placed(chat_id, making.caller, making.now, None, email)
        add_message(connection, workspace_id, message)
        message_id = message.id
    return StoredReplica(workspace_id, chat_id, message_id, claimed is not None)


def _columns(making: Making) -> dict[str, Any]:
    """Return the columns of the workspace from the request."""
    body = making.body
    return {
        "environment_id": str(body.environment_id),
        "user_id": making.caller.user_id,
        "name": body.name,
        "source": making.source,
        "coding_agent": making.agent,
        "model": body.model,
        "lifecycle_policy": body.lifecycle_policy or "default",
        "config_json": body.config and body.config.model_dump_json(exclude_none=True),
        "auto_stop_minutes": body.config and body.config.auto_stop_minutes,
        "size": body.size or "small",
        "webhook_url_sealed": making.webhook_url_sealed,
        "created_at": making.now,
        "last_activity_at": making.now,
        "forked_from": making.fork and making.fork.id,
    }


def _claim(
    connection: Connection, making: Making, repositories: list[dict[str, Any]]
) -> str | None:
    """Claim a prepared workspace, if the request needs nothing that it does not have."""
    if making.body.size == "large" or making.fork is not None:
        return None
    wanted, there = str(making.body.environment_id), json.dumps(repositories)
    return claim_one(connection, making.home_id, wanted, there, _columns(making))


def _claim_uncommitted(connection: Connection, making: Making) -> None:
    """Keep the uncommitted changes of the replica until it has its files."""
    start = making.start
    if start is None or start.upload_id is None:
        return
    place = (making.workspace_id, start.repository_id)
    if not claim_uncommitted(connection, start.upload_id, *place):
        raise no_upload(start.upload_id)


def _repositories(connection: Connection, making: Making) -> list[dict[str, Any]]:
    """Return the environment's repositories for the workspace, with their starts."""
    if making.fork is not None:
        return json.loads(making.fork.repositories_json)
    caller, wanted = making.caller, str(making.body.environment_id)
    repositories = repositories_for(connection, caller.organization_id, caller.user_id, wanted)
    if repositories is None:
        raise ApiError(
            ErrorCode.NOT_FOUND, "No environment has this id.", f"environment_id: {wanted}"
        )
    starts = dict(making.starts)
    if making.start is not None and making.start.point is not None:
        starts[making.start.repository_id] = making.start.point
    return [
        repository | ({"start": asdict(start)} if (start := starts.get(repository["id"])) else {})
        for repository in repositories
    ]


FORK_SAVE_SECONDS = 60.0
"""How long a fork waits for a save of what it may start from."""


async def fork_replica(
    context: ServiceContext, fleet: Fleet, caller: Caller, row: WorkspaceRow, body: ForkReplica
) -> str:
    """Store a replica with the files of another one, and start to prepare it; return its id.

    It is started with the other one's environment if the caller may use that, else with the shared
    one below it.

    Raises:
        ApiError: CONFLICT while a turn runs, or for a name that is taken; WORKSPACE_NOT_ACTIVE when
            there are no files; WORKSPACE_LIMIT_REACHED.
    """
    require_files(row)
    chats = await context.database.read(lambda connection: list_chats(connection, row.id))
    if any(chat.processing for chat in chats):
        raise ApiError(
            ErrorCode.CONFLICT, "The agent is working. Interrupt its turn, or wait for its end."
        )
    if row.status == WorkspaceStatus.ACTIVE:  # where a fork starts from the save
        await save_now(fleet.of(row.id).site, FORK_SAVE_SECONDS)
    owner = (caller.organization_id, caller.user_id)
    environment_id = await context.database.read(
        lambda c: usable_environment_id(c, *owner, row.environment_id)
    )
    newest = newest_message_chat(chats)
    agent = newest.provider if newest else row.coding_agent
    wanted = CreateReplica(
        name=body.name or await _free_name(context, row),
        environment_id=UUID(environment_id),
        message=body.message,
        coding_agent=agent,
        model=row.model if agent == row.coding_agent else None,
        size="large" if row.size == "large" else "small",
    )
    making = await plan_replica(context, fleet, caller, wanted)
    return await store_planned(context, fleet, replace(making, fork=row, driver=row.driver))


async def _free_name(context: ServiceContext, row: WorkspaceRow) -> str:
    stem = re.sub(r"-fork(-\d+)?$", "", row.name)[:180] + "-fork"
    used = await context.database.read(lambda c: names_like(c, row.organization_id, stem))
    numbered = (f"{stem}-{number}" for number in range(2, len(used) + 3))
    return stem if stem not in used else next(name for name in numbered if name not in used)
