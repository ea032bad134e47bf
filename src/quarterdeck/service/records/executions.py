"""Runs of automations as rows."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, func, insert, select, tuple_, update

from quarterdeck.service.db.tables import automation_executions, chats, workspaces
from quarterdeck.wire.automations import ExecutionStatus

table = automation_executions

OPEN = (ExecutionStatus.PENDING, ExecutionStatus.CREATING, ExecutionStatus.RUNNING)
STARTED = (ExecutionStatus.CREATING, ExecutionStatus.RUNNING)
_NEWEST = (table.c.triggered_at.desc(), table.c.id.desc())

# Made once: it is asked whenever a turn ends or a workspace changes its state.
_open_in = (
    select(table)
    .where(table.c.workspace_id == bindparam("of"), table.c.status.in_(OPEN))
    .order_by(table.c.triggered_at, table.c.id)
)

# Nor may a burst of webhooks wait for statements to be made.
_pending = (
    select(table)
    .where(
        table.c.automation_id == bindparam("of"),
        table.c.status == ExecutionStatus.PENDING,
        table.c.retry_of.is_(None),
        table.c.trigger_type.not_in(("cron", "manual")),
    )
    .order_by(table.c.triggered_at)
)
_pending_of_none = _pending.where(table.c.group_key.is_(None))
_pending_of_group = _pending.where(table.c.group_key == bindparam("group"))
_replacing = (
    update(table)
    .where(table.c.id == bindparam("of"))
    .values(
        due_at=bindparam("due"), trigger_event=bindparam("event"), trigger_json=bindparam("json")
    )
)


def add_execution(connection: Connection, **values: Any) -> None:
    """Stores a run.

    Raises:
        IntegrityError: its `fire_key` has made one already.
    """
    connection.execute(insert(table).values(**values))


def find_execution(connection: Connection, execution_id: str) -> RowMapping | None:
    """The row of an id."""
    statement = select(table).where(table.c.id == execution_id)
    return connection.execute(statement).mappings().first()


def page_of_executions(
    connection: Connection, automation_id: str, offset: int, limit: int
) -> tuple[list[RowMapping], int]:
    """A page of an automation's runs, newest first, and how many there are in all."""
    mine = table.c.automation_id == automation_id
    total = connection.execute(select(func.count()).select_from(table).where(mine)).scalar_one()
    statement = (
        select(table)
        .where(mine)
        .order_by(table.c.triggered_at.desc(), table.c.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return list(connection.execute(statement).mappings()), total


def change_execution(
    connection: Connection, execution_id: str, only_from: Sequence[str], **values: Any
) -> bool:
    """Sets columns of a run that is in one of the states; False when it is not."""
    done = connection.execute(
        update(table)
        .where(table.c.id == execution_id, table.c.status.in_(only_from))
        .values(**values)
    )
    return done.rowcount > 0


def replace_occasion(
    connection: Connection, execution_id: str, due: str, event: str | None, trigger: str
) -> None:
    """Gives a run that waits a later moment and what starts it now."""
    values = {"of": execution_id, "due": due, "event": event, "json": trigger}
    connection.execute(_replacing, values)


def bring_forward(connection: Connection, automation_id: str, due: str) -> None:
    """Lets the runs of an automation that wait for a later moment start at this one."""
    later = table.c.status == ExecutionStatus.PENDING, table.c.due_at > due
    connection.execute(
        update(table).where(table.c.automation_id == automation_id, *later).values(due_at=due)
    )


def fire_was_taken(connection: Connection, fire_key: str) -> bool:
    """Whether a fire has made a run."""
    statement = select(table.c.id).where(table.c.fire_key == fire_key)
    return connection.execute(statement).first() is not None


def pending_for(
    connection: Connection, automation_id: str, group_key: str | None
) -> RowMapping | None:
    """The run that waits to be started, of a group or of none."""
    statement = _pending_of_none if group_key is None else _pending_of_group
    return (
        connection.execute(statement, {"of": automation_id, "group": group_key}).mappings().first()
    )


def waiting_of(connection: Connection, automation_id: str) -> list[str]:
    """The ids of an automation's runs that wait to be started, oldest first."""
    statement = (
        select(table.c.id)
        .where(table.c.automation_id == automation_id, table.c.status == ExecutionStatus.PENDING)
        .order_by(table.c.triggered_at, table.c.id)
    )
    return list(connection.execute(statement).scalars())


def due_executions(connection: Connection, now: str, limit: int) -> list[RowMapping]:
    """Runs that wait and may start, the longest due first."""
    statement = (
        select(table)
        .where(table.c.due_at <= now, table.c.status == ExecutionStatus.PENDING)
        .order_by(table.c.due_at, table.c.triggered_at, table.c.id)
        .limit(limit)
    )
    return list(connection.execute(statement).mappings())


def next_due(connection: Connection) -> str | None:
    """When the next waiting run may start."""
    statement = select(func.min(table.c.due_at)).where(table.c.status == ExecutionStatus.PENDING)
    return connection.execute(statement).scalar()


def open_in(connection: Connection, workspace_id: str) -> list[RowMapping]:
    """The runs of a workspace that have not ended, oldest first."""
    return list(connection.execute(_open_in, {"of": workspace_id}).mappings())


def has_open(connection: Connection, automation_id: str) -> bool:
    """Whether a run of an automation has not ended, be it that it waits to be started."""
    statement = select(table.c.id).where(
        table.c.automation_id == automation_id, table.c.status.in_(OPEN)
    )
    return connection.execute(statement).first() is not None


def newest_of_group(
    connection: Connection, automation_id: str, group_key: str
) -> RowMapping | None:
    """The newest run of a group that was started and has not failed."""
    statement = (
        select(table)
        .where(
            table.c.automation_id == automation_id,
            table.c.group_key == group_key,
            table.c.status.in_((*STARTED, ExecutionStatus.COMPLETED)),
        )
        .order_by(*_NEWEST)
    )
    return connection.execute(statement).mappings().first()


def earlier_pending(connection: Connection, execution: RowMapping) -> RowMapping | None:
    """The last run of the same group that came before a run, and is not started yet."""
    place = (table.c.triggered_at, table.c.id)
    statement = (
        select(table)
        .where(
            table.c.automation_id == execution["automation_id"],
            table.c.group_key == execution["group_key"],
            table.c.status == ExecutionStatus.PENDING,
            tuple_(*place) < tuple_(execution["triggered_at"], execution["id"]),
        )
        .order_by(*_NEWEST)
    )
    return connection.execute(statement).mappings().first()


def asking(connection: Connection) -> list[RowMapping]:
    """Runs whose chat waits for an answer, with the moment at which their workspace was last used."""
    used = func.coalesce(workspaces.c.last_activity_at, workspaces.c.created_at)
    statement = (
        select(table.c.id, table.c.config_json, used.label("last_activity_at"))
        .join(chats, chats.c.id == table.c.chat_id)
        .join(workspaces, workspaces.c.id == table.c.workspace_id)
        .where(table.c.status == ExecutionStatus.RUNNING, chats.c.awaiting_input.is_(True))
    )
    return list(connection.execute(statement).mappings())


def unfinished(connection: Connection) -> list[RowMapping]:
    """Every run with a workspace that has not ended."""
    statement = select(table).where(table.c.status.in_(STARTED))
    return list(connection.execute(statement).mappings())
