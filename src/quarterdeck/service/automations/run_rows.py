"""Rows of the runs of automations."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from quarterdeck.service.automations.rows import turn_of_owner
from quarterdeck.service.db.tables import (
    automation_executions,
    automations,
    chats,
    workspaces,
)
from quarterdeck.service.ownership import INHERITED
from quarterdeck.service.system_rows import all_services
from quarterdeck.wire.automation_runs import ExecutionStatus

executions_table = automation_executions


OPEN = (ExecutionStatus.PENDING, ExecutionStatus.CREATING, ExecutionStatus.RUNNING)


STARTED = (ExecutionStatus.CREATING, ExecutionStatus.RUNNING)


_NEWEST = (executions_table.c.triggered_at.desc(), executions_table.c.id.desc())


# Built once: it is executed whenever a turn ends or a workspace changes its state.
_open_in = (
    select(executions_table)
    .where(executions_table.c.workspace_id == bindparam("of"), executions_table.c.status.in_(OPEN))
    .order_by(executions_table.c.triggered_at, executions_table.c.id)
)


# Nor may a burst of webhooks wait for statements to be built.
_pending = (
    select(executions_table)
    .where(
        executions_table.c.automation_id == bindparam("of"),
        executions_table.c.status == ExecutionStatus.PENDING,
        executions_table.c.retry_of.is_(None),
        executions_table.c.approval.is_(None),
        executions_table.c.trigger_type.not_in(("cron", "manual")),
    )
    .order_by(executions_table.c.triggered_at)
)


_pending_of_none = _pending.where(executions_table.c.group_key.is_(None))


_pending_of_group = _pending.where(executions_table.c.group_key == bindparam("group"))


_replacing = (
    update(executions_table)
    .where(executions_table.c.id == bindparam("of"))
    .values(
        due_at=bindparam("due"), trigger_event=bindparam("event"), trigger_json=bindparam("json")
    )
)


def add_execution(connection: Connection, **values: Any) -> None:
    """Store a run.

    Raises:
        IntegrityError: a run with its `fire_key` exists already.
    """
    connection.execute(insert(executions_table).values(**values))


def find_execution(connection: Connection, execution_id: str) -> RowMapping | None:
    """Return the row of an id."""
    statement = select(executions_table).where(executions_table.c.id == execution_id)
    return connection.execute(statement).mappings().first()


def page_of_executions(
    connection: Connection, automation_id: str, offset: int, limit: int
) -> tuple[list[RowMapping], int]:
    """Return a page of an automation's runs, newest first, and how many there are in all."""
    mine = executions_table.c.automation_id == automation_id
    total = connection.execute(
        select(func.count()).select_from(executions_table).where(mine)
    ).scalar_one()
    statement = (
        select(executions_table)
        .where(mine)
        .order_by(executions_table.c.triggered_at.desc(), executions_table.c.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return list(connection.execute(statement).mappings()), total


def moment_of(connection: Connection, automation_id: str, place: int) -> str | None:
    """Return when the run at a position of the list, from 0, was triggered; None after its end."""
    statement = (
        select(executions_table.c.triggered_at)
        .where(executions_table.c.automation_id == automation_id)
        .order_by(*_NEWEST)
        .offset(place)
        .limit(1)
    )
    return connection.execute(statement).scalar()


def change_execution(
    connection: Connection, execution_id: str, only_from: Sequence[str], **values: Any
) -> bool:
    """Set columns of a run that is in one of the states; False when it is not."""
    done = connection.execute(
        update(executions_table)
        .where(executions_table.c.id == execution_id, executions_table.c.status.in_(only_from))
        .values(**values)
    )
    return done.rowcount > 0


def replace_occasion(
    connection: Connection, execution_id: str, due: str, event: str | None, trigger: str
) -> None:
    """Give a waiting run a later moment and the event that starts it now."""
    values = {"of": execution_id, "due": due, "event": event, "json": trigger}
    connection.execute(_replacing, values)


def bring_forward(connection: Connection, automation_id: str, due: str) -> None:
    """Let the runs of an automation that wait for a later moment start at this one."""
    later = executions_table.c.status == ExecutionStatus.PENDING, executions_table.c.due_at > due
    connection.execute(
        update(executions_table)
        .where(executions_table.c.automation_id == automation_id, *later)
        .values(due_at=due)
    )


def has_run_for_fire(connection: Connection, fire_key: str) -> bool:
    """Return whether a fire has started a run."""
    statement = select(executions_table.c.id).where(executions_table.c.fire_key == fire_key)
    return connection.execute(statement).first() is not None


def pending_for(
    connection: Connection, automation_id: str, group_key: str | None
) -> RowMapping | None:
    """Return the run that waits to be started, of a group or of none."""
    statement = _pending_of_none if group_key is None else _pending_of_group
    return (
        connection.execute(statement, {"of": automation_id, "group": group_key}).mappings().first()
    )


def waiting_of(connection: Connection, automation_id: str) -> list[str]:
    """Return the ids of an automation's runs that wait to be started, oldest first."""
    statement = (
        select(executions_table.c.id)
        .where(
            executions_table.c.automation_id == automation_id,
            executions_table.c.status == ExecutionStatus.PENDING,
        )
        .order_by(executions_table.c.triggered_at, executions_table.c.id)
    )
    return list(connection.execute(statement).scalars())


def _may_start() -> ColumnElement[bool]:
    """Return the condition that neither `concurrency` nor a queue delays a run."""
    other = executions_table.alias("other")
    same = other.c.automation_id == executions_table.c.automation_id
    started = (
        select(func.count()).where(same, other.c.status.in_(STARTED)).correlate(executions_table)
    ).scalar_subquery()
    allowed = (
        select(automations.c.concurrency)
        .where(automations.c.id == executions_table.c.automation_id)
        .correlate(executions_table)
    ).scalar_subquery()
    waits = and_(
        other.c.due_at.is_not(None),
        tuple_(other.c.triggered_at, other.c.id)
        < tuple_(executions_table.c.triggered_at, executions_table.c.id),
    )
    earlier = exists().where(
        same,
        other.c.queue_key == executions_table.c.queue_key,
        other.c.status.in_(OPEN),
        or_(other.c.status.in_(STARTED), waits),
    )
    return and_(func.coalesce(started < allowed, True), ~earlier.correlate(executions_table))


def may_start(connection: Connection, execution_id: str) -> bool:
    """Return whether other runs let a waiting run start now."""
    statement = select(executions_table.c.id).where(
        executions_table.c.id == execution_id, _may_start()
    )
    return connection.execute(statement).first() is not None


def due_executions(connection: Connection, now: str, limit: int) -> list[RowMapping]:
    """Return waiting runs that may start, with their `concurrency`.

    Owners take turns, each with the longest due first. Runs that are being started are among them,
    so an owner with many of these comes later.
    """
    order = executions_table.c.due_at, executions_table.c.triggered_at, executions_table.c.id
    statement = (
        select(executions_table, automations.c.concurrency)
        .join(automations, automations.c.id == executions_table.c.automation_id)
        .where(
            executions_table.c.due_at <= now,
            executions_table.c.status == ExecutionStatus.PENDING,
            _may_start(),
        )
        .order_by(turn_of_owner(*order), *order)
        .limit(limit)
    )
    return list(connection.execute(statement).mappings())


def next_due(connection: Connection) -> str | None:
    """Return when the next waiting run may start."""
    statement = select(func.min(executions_table.c.due_at)).where(
        executions_table.c.status == ExecutionStatus.PENDING, _may_start()
    )
    return connection.execute(statement).scalar()


def open_of_group(
    connection: Connection, automation_id: str, group_key: str | None
) -> list[RowMapping]:
    """Return the runs of a group that have not ended."""
    statement = select(executions_table).where(
        executions_table.c.automation_id == automation_id,
        executions_table.c.group_key == group_key,
        executions_table.c.status.in_(OPEN),
    )
    return list(connection.execute(statement).mappings())


def was_approved(connection: Connection, automation_id: str, author: str | None) -> bool:
    """Return whether a run of an author was approved before."""
    statement = select(executions_table.c.id).where(
        executions_table.c.automation_id == automation_id,
        executions_table.c.author == author,
        executions_table.c.approved_at.is_not(None),
    )
    return connection.execute(statement).first() is not None


def fire_waits(connection: Connection, automation_id: str) -> bool:
    """Return whether a run of an automation's schedule waits to be started."""
    statement = select(executions_table.c.id).where(
        executions_table.c.automation_id == automation_id,
        executions_table.c.trigger_type == "cron",
        executions_table.c.status == ExecutionStatus.PENDING,
    )
    return connection.execute(statement).first() is not None


def to_stop(connection: Connection, now: str, home_id: str, limit: int) -> list[RowMapping]:
    """Return runs whose agent is to be stopped, in replicas of a home or deleted ones."""
    statement = (
        select(executions_table)
        .outerjoin(workspaces, workspaces.c.id == executions_table.c.workspace_id)
        .where(executions_table.c.stop_due_at <= now, _is_ours(home_id))
        .order_by(executions_table.c.stop_due_at)
        .limit(limit)
    )
    return list(connection.execute(statement).mappings())


def next_stop(connection: Connection, home_id: str) -> str | None:
    """Return when the work of a run is to be stopped next."""
    statement = (
        select(func.min(executions_table.c.stop_due_at))
        .outerjoin(workspaces, workspaces.c.id == executions_table.c.workspace_id)
        .where(executions_table.c.stop_due_at.is_not(None), _is_ours(home_id))
    )
    return connection.execute(statement).scalar()


def _is_ours(home_id: str) -> ColumnElement[bool]:
    return or_(workspaces.c.home_id == home_id, workspaces.c.home_id.is_(None))


def remove_ended(connection: Connection, automation_id: str, before: str, limit: int) -> int:
    """Remove runs that ended before a moment; return how many, at most `limit`."""
    old = (
        select(executions_table.c.id)
        .where(
            executions_table.c.automation_id == automation_id,
            executions_table.c.completed_at < before,
        )
        .limit(limit)
    )
    ids = list(connection.execute(old).scalars())
    return (
        connection.execute(delete(executions_table).where(executions_table.c.id.in_(ids))).rowcount
        if ids
        else 0
    )


def unapproved_since(connection: Connection, automation_id: str, before: str) -> list[str]:
    """Return the ids of runs that have waited for approval since before a moment."""
    statement = select(executions_table.c.id).where(
        executions_table.c.automation_id == automation_id,
        executions_table.c.status == ExecutionStatus.PENDING,
        executions_table.c.due_at.is_(None),
        executions_table.c.triggered_at < before,
    )
    return list(connection.execute(statement).scalars())


def open_in(connection: Connection, workspace_id: str) -> list[RowMapping]:
    """Return the runs of a workspace that have not ended, oldest first."""
    return list(connection.execute(_open_in, {"of": workspace_id}).mappings())


def push_policy_of_run(connection: Connection, workspace_id: str) -> str | None:
    """Return the push policy of the newest run in a workspace, from its automation."""
    statement = (
        select(executions_table.c.config_json)
        .where(executions_table.c.workspace_id == workspace_id)
        .order_by(*_NEWEST)
        .limit(1)
    )
    kept = connection.scalar(statement)
    return json.loads(kept).get("push") if kept else None


def has_open(connection: Connection, automation_id: str) -> bool:
    """Return whether a run of an automation has not ended; it may be waiting to be started.

    One that waits for approval does not count: that may never come.
    """
    statement = select(executions_table.c.id).where(
        executions_table.c.automation_id == automation_id,
        or_(
            executions_table.c.status.in_(STARTED),
            and_(
                executions_table.c.status == ExecutionStatus.PENDING,
                executions_table.c.due_at.is_not(None),
            ),
        ),
    )
    return connection.execute(statement).first() is not None


def newest_of_group(
    connection: Connection, automation_id: str, group_key: str
) -> RowMapping | None:
    """Return the newest run of a group that was started and has not failed."""
    statement = (
        select(executions_table)
        .where(
            executions_table.c.automation_id == automation_id,
            executions_table.c.group_key == group_key,
            executions_table.c.status.in_((*STARTED, ExecutionStatus.COMPLETED)),
        )
        .order_by(*_NEWEST)
    )
    return connection.execute(statement).mappings().first()


def earlier_pending(connection: Connection, execution: RowMapping) -> RowMapping | None:
    """Return the last run of the same group that came before a run, and is not started yet."""
    place = (executions_table.c.triggered_at, executions_table.c.id)
    statement = (
        select(executions_table)
        .where(
            executions_table.c.automation_id == execution["automation_id"],
            executions_table.c.group_key == execution["group_key"],
            executions_table.c.status == ExecutionStatus.PENDING,
            executions_table.c.due_at.is_not(None),
            tuple_(*place) < tuple_(execution["triggered_at"], execution["id"]),
        )
        .order_by(*_NEWEST)
    )
    return connection.execute(statement).mappings().first()


def asking(connection: Connection, home_id: str) -> list[RowMapping]:
    """Return the runs whose chat waits for an answer, with the last activity of their workspace.

    Those that a service judges by its clock: see `unfinished`.
    """
    used = func.coalesce(workspaces.c.last_activity_at, workspaces.c.created_at)
    statement = (
        select(
            executions_table.c.id, executions_table.c.config_json, used.label("last_activity_at")
        )
        .join(chats, chats.c.id == executions_table.c.chat_id)
        .join(workspaces, workspaces.c.id == executions_table.c.workspace_id)
        .where(
            executions_table.c.status == ExecutionStatus.RUNNING,
            chats.c.awaiting_input.is_(True),
            workspaces.c.home_id.not_in(_others(connection, home_id)),
        )
    )
    return list(connection.execute(statement).mappings())


def unfinished(connection: Connection, home_id: str) -> list[RowMapping]:
    """Return the runs with a workspace that have not ended and that a service judges by its clock.

    Their times were written by the owner of the workspace, whose clock may differ, so they are its
    own, and those of services that were not seen for long.
    """
    owner = func.coalesce(workspaces.c.home_id, home_id)
    statement = (
        select(executions_table)
        .outerjoin(workspaces, workspaces.c.id == executions_table.c.workspace_id)
        .where(executions_table.c.status.in_(STARTED), owner.not_in(_others(connection, home_id)))
    )
    return list(connection.execute(statement).mappings())


def _others(connection: Connection, home_id: str) -> list[str]:
    services = all_services(connection, INHERITED)
    return [one.home_id for one in services if one.alive and one.home_id != home_id]
