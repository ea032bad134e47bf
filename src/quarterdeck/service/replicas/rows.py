"""Rows of replicas."""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from quarterdeck.sandboxes.port import PROCESS, UncommittedCommit
from quarterdeck.service.chats.rows import UNFINISHED, MessageState
from quarterdeck.service.db.records import as_record, stored_objects
from quarterdeck.service.db.tables import chats, messages, settings, workspaces
from quarterdeck.service.db.tables import uncommitted_changes as table
from quarterdeck.wire.chats import GoalStatus
from quarterdeck.wire.git_state import EventRepository
from quarterdeck.wire.inside import PORT_BLOCKS
from quarterdeck.wire.quotas import UPLOADS_MOST
from quarterdeck.wire.replicas import PullRequest, WorkspaceStatus

BUSY = (WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING)
"""States that count against the limit of active workspaces."""


@dataclass(frozen=True)
class WorkspaceRow:
    """Every column of `workspaces`, under its own name."""

    id: str
    organization_id: str
    home_id: str | None
    environment_id: str
    name: str
    status: str
    error: str | None
    source: str
    coding_agent: str | None
    model: str | None
    lifecycle_policy: str
    config_json: str | None
    size: str
    webhook_url_sealed: str | None
    repositories_json: str
    repository_statuses_json: str
    engine_secret_sealed: str
    engine_version: str | None
    boot_id: str | None
    wake_wanted: bool
    next_event_index: int
    next_history_index: int
    journal_index: int
    created_at: str
    last_activity_at: str | None
    user_id: str | None
    auto_stop_minutes: int | None
    rested_at: str | None
    packed_at: str | None
    warm_pool_id: str | None
    warm_generation: int | None
    warm_state: str | None
    setup_json: str | None
    push: str | None
    permission_policy: str | None
    permission_rules_json: str | None
    cost_limit: float | None
    forked_from: str | None
    driver: str
    lease: int
    clones_json: str | None
    port_block: int | None

    def is_of(self, home_id: str) -> bool:
        """Return whether the service of a home has it. Processes are never taken over."""
        return self.driver == PROCESS or self.home_id in (None, home_id)

    def __repr__(self) -> str:
        """Return the row without its secret: rows appear in messages and tracebacks."""
        return f"WorkspaceRow(id={self.id!r}, name={self.name!r}, status={self.status!r})"


@dataclass(frozen=True)
class WorkspaceFilter:
    """The workspaces of an organization that a list shows."""

    organization_id: str
    status: str | None = None
    source: str | None = None
    environment_id: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the filter as conditions of a statement."""
        given = {
            workspaces.c.organization_id: self.organization_id,
            workspaces.c.status: self.status,
            workspaces.c.source: self.source,
            workspaces.c.environment_id: self.environment_id,
        }
        conditions = [column == value for column, value in given.items() if value is not None]
        return [workspaces.c.warm_state.is_(None), *conditions]


def workspace_columns() -> Select[Any]:
    """Return a select of the columns of `WorkspaceRow`, without a `where`."""
    return select(*(workspaces.c[field.name] for field in fields(WorkspaceRow)))


_one = workspace_columns().where(workspaces.c.id == bindparam("of"))
# Built once: both are part of storing every batch of events.
_journal_index = select(workspaces.c.journal_index).where(workspaces.c.id == bindparam("of"))
_journal_stored = (
    update(workspaces)
    .where(workspaces.c.id == bindparam("of"))
    .values(
        journal_index=bindparam("journal"),
        last_activity_at=func.coalesce(
            bindparam("at", type_=String), workspaces.c.last_activity_at
        ),
    )
)


def find_workspace(connection: Connection, workspace_id: str) -> WorkspaceRow | None:
    """Return the workspace of an id, of any owner."""
    row = connection.execute(_one, {"of": workspace_id}).first()
    return None if row is None else WorkspaceRow(*row)


def journal_index_of(connection: Connection, workspace_id: str) -> int | None:
    """Return the newest stored entry of an engine's journal; None when the workspace was deleted."""
    return connection.execute(_journal_index, {"of": workspace_id}).scalar()


def keep_journal_index(
    connection: Connection, workspace_id: str, index: int, activity: str | None
) -> None:
    """Note that everything up to `index` is stored; `activity` is its newest chat event, if any."""
    values = {"of": workspace_id, "journal": index, "at": activity}
    connection.execute(_journal_stored, values)


def workspaces_in(
    connection: Connection, home_id: str, statuses: Sequence[str]
) -> list[WorkspaceRow]:
    """Return every workspace of a home in one of the states, oldest first."""
    statement = (
        workspace_columns()
        .where(workspaces.c.home_id == home_id, workspaces.c.status.in_(statuses))
        .order_by(workspaces.c.created_at)
    )
    return [WorkspaceRow(*row) for row in connection.execute(statement)]


def stopped_elsewhere(connection: Connection, homes: Sequence[str], driver: str) -> list[str]:
    """Return what is meant to run, or waits in a pool, on a driver and in none of these homes."""
    statement = select(workspaces.c.id).where(
        workspaces.c.home_id.not_in(homes),
        workspaces.c.driver == driver,
        workspaces.c.packed_at.is_(None),
        workspaces.c.status.in_(BUSY) | workspaces.c.warm_state.is_not(None),
    )
    return list(connection.execute(statement).scalars())


def page_of_workspaces(
    connection: Connection, filter: WorkspaceFilter, offset: int, limit: int
) -> tuple[list[WorkspaceRow], int]:
    """Return a page of a list, newest first, and how many there are in all.

    A list of archived ones only is sorted by their last activity.
    """
    conditions = filter.conditions()
    total = connection.execute(
        select(func.count()).select_from(workspaces).where(*conditions)
    ).scalar_one()
    newest = workspaces.c.created_at
    if filter.status == WorkspaceStatus.ARCHIVED:
        newest = func.coalesce(workspaces.c.last_activity_at, workspaces.c.created_at)
    statement = (
        workspace_columns()
        .where(*conditions)
        .order_by(newest.desc(), workspaces.c.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return [WorkspaceRow(*row) for row in connection.execute(statement)], total


def count_busy(connection: Connection, organization_id: str) -> int:
    """Return how many workspaces of an organization are active or preparing, in all homes."""
    statement = (
        select(func.count())
        .select_from(workspaces)
        .where(
            workspaces.c.organization_id == organization_id,
            workspaces.c.status.in_(BUSY),
            workspaces.c.warm_state.is_(None),
        )
    )
    return connection.execute(statement).scalar_one()


def add_workspace(
    connection: Connection, row_id: str, repositories: list[dict[str, str]], **values: Any
) -> None:
    """Store a workspace that is being prepared.

    Raises:
        IntegrityError: its name is taken in its organization.
    """
    start = {
        "id": row_id,
        "status": WorkspaceStatus.PREPARING,
        "repositories_json": json.dumps(repositories),
        "repository_statuses_json": "[]",
        "wake_wanted": False,
        "next_event_index": 1,
        "next_history_index": 0,
        "journal_index": 0,
    }
    connection.execute(insert(workspaces).values(**start, **values))


def change_workspace(connection: Connection, workspace_id: str, **values: Any) -> None:
    """Set columns of a workspace; does nothing when it was deleted."""
    connection.execute(update(workspaces).where(workspaces.c.id == workspace_id).values(**values))


def take_port_block(connection: Connection, workspace_id: str) -> int | None:
    """Assign the lowest free block of ports to a workspace, and return it; None when there is none."""
    taken = set(connection.execute(select(workspaces.c.port_block)).scalars())
    block = next((block for block in range(PORT_BLOCKS) if block not in taken), None)
    change_workspace(connection, workspace_id, port_block=block)
    return block


def remove_workspace(connection: Connection, workspace_id: str) -> bool:
    """Remove a workspace with its chats, messages and events; False when it was deleted already."""
    done = connection.execute(delete(workspaces).where(workspaces.c.id == workspace_id))
    return done.rowcount > 0


def names_like(connection: Connection, organization_id: str, stem: str) -> set[str]:
    """Return the names of an organization's workspaces with a prefix."""
    statement = select(workspaces.c.name).where(
        workspaces.c.organization_id == organization_id,
        workspaces.c.name.startswith(stem, autoescape=True),
    )
    return set(connection.execute(statement).scalars())


UNCLAIMED_KEPT = timedelta(hours=1)
"""An upload that no replica was created with is removed after this time."""


@dataclass(frozen=True)
class Uploaded:
    """An upload that no replica was created with yet."""

    id: str
    base_commit: str


def add_uncommitted(connection: Connection, **values: Any) -> None:
    """Store an upload."""
    connection.execute(insert(table).values(**values))


def find_unclaimed(
    connection: Connection, upload_id: str, organization_id: str, user_id: str | None
) -> Uploaded | None:
    """Return an upload of this caller that no replica was created with."""
    statement = select(table.c.id, table.c.base_commit).where(
        table.c.id == upload_id,
        table.c.organization_id == organization_id,
        table.c.user_id.is_not_distinct_from(user_id),
        table.c.workspace_id.is_(None),
    )
    row = connection.execute(statement).first()
    return None if row is None else Uploaded(*row)


def claim_uncommitted(
    connection: Connection, upload_id: str, workspace_id: str, repository_id: str
) -> bool:
    """Note the replica that starts with an upload; False when there is no such upload any more."""
    done = connection.execute(
        update(table)
        .where(table.c.id == upload_id, table.c.workspace_id.is_(None))
        .values(workspace_id=workspace_id, repository_id=repository_id)
    )
    return done.rowcount > 0


def uncommitted_of(connection: Connection, workspace_id: str) -> dict[str, UncommittedCommit]:
    """Return a workspace's uncommitted changes, by id of the repository."""
    columns = (table.c.repository_id, table.c.commit_id, table.c.pack)
    rows = connection.execute(select(*columns).where(table.c.workspace_id == workspace_id))
    return {repository_id: UncommittedCommit(commit, pack) for repository_id, commit, pack in rows}


def drop_uncommitted(connection: Connection, workspace_id: str) -> None:
    """Remove a workspace's uncommitted changes."""
    connection.execute(delete(table).where(table.c.workspace_id == workspace_id))


def make_room_for_upload(connection: Connection, organization_id: str, user_id: str | None) -> None:
    """Remove the oldest uploads of an owner that no replica was created with, if there are many."""
    newest_first = (
        select(table.c.id)
        .where(
            table.c.organization_id == organization_id,
            table.c.user_id.is_not_distinct_from(user_id),
            table.c.workspace_id.is_(None),
        )
        .order_by(table.c.created_at.desc(), table.c.id)
    )
    ids = connection.execute(newest_first).scalars().all()[UPLOADS_MOST - 1 :]
    connection.execute(delete(table).where(table.c.id.in_(ids)))


def has_unclaimed(connection: Connection, before: str) -> bool:
    """Return whether there are uploads from before a moment that no replica was created with."""
    statement = select(table.c.id).where(*_unclaimed(before)).limit(1)
    return connection.execute(statement).first() is not None


def drop_unclaimed(connection: Connection, before: str) -> None:
    """Remove uploads from before a moment that no replica was created with."""
    connection.execute(delete(table).where(*_unclaimed(before)))


def _unclaimed(before: str) -> tuple[Any, ...]:
    return table.c.workspace_id.is_(None), table.c.created_at < before


NOTE = "remove/"
"""Prefix of a note's name; its value is the home that has the files."""


def note_removal(connection: Connection, row: WorkspaceRow, home_id: str) -> None:
    """Note that the record was deleted, but the files were not yet."""
    # Without the driver's name as an earlier version notes it, which also reads this.
    name = row.id if row.driver == PROCESS else f"{row.id} {row.driver}"
    connection.execute(insert(settings).values(name=NOTE + name, value=home_id, revision=0))


def end_removal(connection: Connection, workspace_id: str) -> None:
    """Note that the files were deleted, too."""
    name = settings.c.name
    noted = (name == NOTE + workspace_id) | name.startswith(f"{NOTE}{workspace_id} ")
    connection.execute(delete(settings).where(noted))


def removals_left(connection: Connection, home_id: str) -> list[tuple[str, str]]:
    """Return the workspaces whose files a home still has, each with its driver."""
    names = connection.execute(
        select(settings.c.name).where(settings.c.name.startswith(NOTE), settings.c.value == home_id)
    )
    return _noted(names.scalars())


def recorded(connection: Connection) -> set[str]:
    """Return the ids of all workspaces, and of those whose files are still to be removed."""
    notes = select(settings.c.name).where(settings.c.name.startswith(NOTE))
    removed = {id for id, _ in _noted(connection.execute(notes).scalars())}
    return removed | set(connection.execute(select(workspaces.c.id)).scalars())


def _noted(names: Iterable[str]) -> list[tuple[str, str]]:
    noted = (name.removeprefix(NOTE).partition(" ") for name in names)
    return [(workspace_id, driver or PROCESS) for workspace_id, _, driver in noted]


def removals_without(connection: Connection, homes: Sequence[str]) -> list[tuple[str, str]]:
    """As `removals_left`, of every home but these."""
    names = connection.execute(
        select(settings.c.name).where(
            settings.c.name.startswith(NOTE), settings.c.value.not_in(homes)
        )
    )
    return _noted(names.scalars())


DELETED_WHEN_UNUSED = "delete_after_inactivity"
_AT_REST = (WorkspaceStatus.SLEEPING, WorkspaceStatus.ARCHIVED, WorkspaceStatus.ERROR)
_own = workspaces.c.warm_state.is_(None)
# A terminal's use is not in the row; but while one is open, nothing is put to rest.
_unused_since = func.coalesce(
    workspaces.c.rested_at, workspaces.c.last_activity_at, workspaces.c.created_at
)


@dataclass(frozen=True)
class Work:
    """The work in an active workspace.

    `pending` does not count chats that the cost limit holds back, or that wait for an answer: the
    times of their questions are in `asked_at`, and nothing runs in them until then. `done` says that a message was processed since
    it woke.
    """

    last_activity_at: str
    pending: bool
    done: bool
    asked_at: Sequence[str] = ()


def active_workspaces(connection: Connection, home_id: str) -> list[WorkspaceRow]:
    """Return the active ones of a home."""
    active = workspaces.c.status == WorkspaceStatus.ACTIVE
    statement = workspace_columns().where(active, workspaces.c.home_id == home_id, _own)
    return [WorkspaceRow(*row) for row in connection.execute(statement)]


def asleep_since(connection: Connection, home_id: str, moment: str) -> list[str]:
    """Return those of a home that have been sleeping since a moment or longer."""
    statement = select(workspaces.c.id).where(
        workspaces.c.status == WorkspaceStatus.SLEEPING,
        workspaces.c.home_id == home_id,
        _unused_since <= moment,
        _own,
    )
    return list(connection.execute(statement).scalars())


def unused_since(connection: Connection, home_id: str, moment: str) -> list[str]:
    """Return those of a home to be deleted because nobody has used them since a moment."""
    statement = select(workspaces.c.id).where(workspaces.c.home_id == home_id, *_unused(moment))
    return list(connection.execute(statement).scalars())


def is_unused(connection: Connection, workspace_id: str, moment: str) -> bool:
    """Return whether one workspace is unused and has no waiting message."""
    statement = select(workspaces.c.id).where(workspaces.c.id == workspace_id, *_unused(moment))
    if connection.execute(statement).first() is None:
        return False
    return not _count(connection, workspace_id, messages.c.state.in_(UNFINISHED))


def work_of(
    connection: Connection, workspace_id: str, held_back: Collection[str] = ()
) -> Work | None:
    """Return the work of a workspace; None when it is not active.

    `held_back`: chats in which nothing runs until the cost limit is raised.
    """
    row = find_workspace(connection, workspace_id)
    if row is None or row.status != WorkspaceStatus.ACTIVE:
        return None
    asking = (chats.c.workspace_id == workspace_id, chats.c.awaiting_input.is_(True))
    questions = select(chats.c.id, chats.c.updated_at).where(*asking)
    asked_at = {chat.id: chat.updated_at for chat in connection.execute(questions)}
    unfinished = messages.c.state.in_(UNFINISHED) & messages.c.chat_id.not_in(list(asked_at))
    own = select(chats.c.id).where(chats.c.workspace_id == workspace_id)
    # An engine may name more chats than a statement may have parameters.
    held_back = set(held_back).intersection(connection.execute(own).scalars())
    held = (messages.c.state == MessageState.DELIVERED) & messages.c.chat_id.in_(held_back)
    done = messages.c.state == MessageState.DONE
    if row.rested_at is not None:
        done &= messages.c.created_at >= row.rested_at
    return Work(
        last_activity_at=row.last_activity_at or row.created_at,
        pending=bool(_count(connection, workspace_id, unfinished & ~held))
        or _chats_work(connection, workspace_id, held_back),
        done=bool(_count(connection, workspace_id, done)),
        asked_at=list(asked_at.values()),
    )


def _unused(moment: str) -> list[ColumnElement[bool]]:
    return [
        workspaces.c.lifecycle_policy == DELETED_WHEN_UNUSED,
        workspaces.c.status.in_(_AT_REST),
        _unused_since <= moment,
        func.coalesce(workspaces.c.last_activity_at, workspaces.c.created_at) <= moment,
        _own,
    ]


def _count(connection: Connection, workspace_id: str, condition: ColumnElement[bool]) -> int:
    statement = (
        select(func.count())
        .select_from(messages)
        .where(messages.c.workspace_id == workspace_id, condition)
    )
    return connection.execute(statement).scalar_one()


def _chats_work(connection: Connection, workspace_id: str, held_back: Collection[str]) -> bool:
    """Return whether a chat that waits for no answer has a turn, or a goal that will start one."""
    statement = select(chats.c.id, chats.c.processing, chats.c.goal_json).where(
        chats.c.workspace_id == workspace_id, chats.c.awaiting_input.is_(False)
    )
    return any(
        row.processing
        or (
            row.id not in held_back
            and row.goal_json
            and json.loads(row.goal_json).get("status") == GoalStatus.ACTIVE
        )
        for row in connection.execute(statement)
    )


PREFIX = "qd/"

_REFUSED = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//+")


def branch_of(replica_name: str) -> str:
    """Return `qd/<replica name>`, with characters that git refuses in a branch replaced by dashes."""
    parts = [_part(part) for part in _REFUSED.sub("-", replica_name).split("/")]
    return PREFIX + ("/".join(part for part in parts if part) or "replica")


def _part(text: str) -> str:
    text = text.rstrip(".")
    if text.startswith((".", "-")):
        text = f"_{text[1:]}"
    return text.removesuffix(".lock") + "-lock" if text.endswith(".lock") else text


MOST_PULL_REQUESTS, MOST_TOGETHER = 50, 200
"""How many of the newest pull requests of a repository are kept, and of all together."""
PAGE_LIMIT = 1_000
"""Characters of the address of a pull request; a longer one is left out."""

_NUMBER = re.compile(r"/([0-9]{1,10})/?$")


def replica_record(row: WorkspaceRow) -> dict[str, Any]:
    """Return the fields of `Replica`."""
    repositories = stored_objects(row.repositories_json)
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "source": row.source,
        "created_at": row.created_at,
        "last_activity_at": row.last_activity_at,
        "environment_id": row.environment_id,
        "repositories": [
            {key: repository.get(key) for key in ("id", "name", "url")}
            for repository in repositories
        ],
        "pull_requests": [
            pull for repository in seen_repositories(row) for pull in pull_requests_of(repository)
        ],
    }


def seen_repositories(row: WorkspaceRow) -> list[EventRepository]:
    """Return the repositories as the engine reported them last."""
    return [
        as_record(EventRepository, repository)
        for repository in stored_objects(row.repository_statuses_json)
    ]


def keep_pull_requests(
    connection: Connection, workspace_id: str, repositories: Iterable[EventRepository]
) -> None:
    """Add the pull requests of the row: engines read files, not hosts."""
    row = find_workspace(connection, workspace_id)
    known = (
        {repository.name: repository.pr_urls for repository in seen_repositories(row)}
        if row
        else {}
    )
    left = MOST_TOGETHER
    for repository in repositories:
        both = dict.fromkeys((*known.get(repository.name, ()), *repository.pr_urls))
        urls = [url for url in both if len(url) <= PAGE_LIMIT]
        repository.pr_urls = urls[-min(MOST_PULL_REQUESTS, left) :] if left else []
        left -= len(repository.pr_urls)


def pull_requests_of(seen: EventRepository) -> list[PullRequest]:
    """Return the pull requests of a repository; the number is the end of the page's URL."""
    numbered = [(url, _NUMBER.search(url)) for url in seen.pr_urls]
    return [
        PullRequest(repository=seen.name, number=int(number_match[1]), url=url)
        for url, number_match in numbered
        if number_match
    ]
