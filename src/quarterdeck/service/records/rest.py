"""Which workspaces may be put to rest, as far as the rows tell. Those of warm pools never are."""

import json
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select

from quarterdeck.service.db.tables import chats, messages, workspaces
from quarterdeck.service.records.messages import UNFINISHED, MessageState
from quarterdeck.service.records.workspaces import WorkspaceRow, find_workspace, workspace_columns
from quarterdeck.wire.goals import GoalStatus
from quarterdeck.wire.replicas import WorkspaceStatus

DELETED_WHEN_UNUSED = "delete_after_inactivity"
_AT_REST = (WorkspaceStatus.SLEEPING, WorkspaceStatus.ARCHIVED, WorkspaceStatus.ERROR)
_own = workspaces.c.warm_state.is_(None)
# A terminal's use is no activity of the row; but as long as one is open, nothing is put to rest.
_unused_since = func.coalesce(
    workspaces.c.rested_at, workspaces.c.last_activity_at, workspaces.c.created_at
)


@dataclass(frozen=True)
class Work:
    """What goes on in an active workspace. `done` says that a message was worked off since it woke."""

    last_activity_at: str
    pending: bool
    done: bool


def active_workspaces(connection: Connection, home_id: str) -> list[WorkspaceRow]:
    """Those of a home that run."""
    active = workspaces.c.status == WorkspaceStatus.ACTIVE
    statement = workspace_columns().where(active, workspaces.c.home_id == home_id, _own)
    return [WorkspaceRow(*row) for row in connection.execute(statement)]


def asleep_since(connection: Connection, home_id: str, moment: str) -> list[str]:
    """Those of a home that have been sleeping since a moment or longer."""
    statement = select(workspaces.c.id).where(
        workspaces.c.status == WorkspaceStatus.SLEEPING,
        workspaces.c.home_id == home_id,
        _unused_since <= moment,
        _own,
    )
    return list(connection.execute(statement).scalars())


def unused_since(connection: Connection, home_id: str, moment: str) -> list[str]:
    """Those of a home whose policy wants them deleted when nobody has used them since a moment."""
    statement = select(workspaces.c.id).where(workspaces.c.home_id == home_id, *_unused(moment))
    return list(connection.execute(statement).scalars())


def is_unused(connection: Connection, workspace_id: str, moment: str) -> bool:
    """The same for one, which also has no message that waits."""
    statement = select(workspaces.c.id).where(workspaces.c.id == workspace_id, *_unused(moment))
    if connection.execute(statement).first() is None:
        return False
    return not _count(connection, workspace_id, messages.c.state.in_(UNFINISHED))


def work_of(connection: Connection, workspace_id: str) -> Work | None:
    """What goes on; None when it is not active."""
    row = find_workspace(connection, workspace_id)
    if row is None or row.status != WorkspaceStatus.ACTIVE:
        return None
    unfinished = _count(connection, workspace_id, messages.c.state.in_(UNFINISHED))
    done = messages.c.state == MessageState.DONE
    if row.rested_at is not None:
        done &= messages.c.created_at >= row.rested_at
    return Work(
        last_activity_at=row.last_activity_at or row.created_at,
        pending=bool(unfinished) or _chats_work(connection, workspace_id),
        done=bool(_count(connection, workspace_id, done)),
    )


def _unused(moment: str) -> list[ColumnElement[bool]]:
    return [
        workspaces.c.lifecycle_policy == DELETED_WHEN_UNUSED,
        workspaces.c.status.in_(_AT_REST),
        _unused_since <= moment,
        func.coalesce(workspaces.c.last_activity_at, workspaces.c.created_at) <= moment,
        _own,
    ]


def _count(connection: Connection, workspace_id: str, which: ColumnElement[bool]) -> int:
    statement = (
        select(func.count())
        .select_from(messages)
        .where(messages.c.workspace_id == workspace_id, which)
    )
    return connection.execute(statement).scalar_one()


def _chats_work(connection: Connection, workspace_id: str) -> bool:
    """Whether a chat has a turn, or a goal that will begin one."""
    statement = select(chats.c.processing, chats.c.goal_json).where(
        chats.c.workspace_id == workspace_id
    )
    return any(
        row.processing
        or (row.goal_json and json.loads(row.goal_json).get("status") == GoalStatus.ACTIVE)
        for row in connection.execute(statement)
    )
