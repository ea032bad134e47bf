"""Quotas: how many records an owner may store.

An owner is a user within an organization, or the organization itself, whose `user_id` is None. A
quota is checked in the write that stores one more, and never when a record is read, changed or
removed: an installation may have more of an earlier version.
"""

from sqlalchemy import ColumnElement, Connection, FromClause, Table, func, literal, select

from quarterdeck.service.chats.rows import count_chats
from quarterdeck.service.db.tables import (
    api_keys,
    automation_executions,
    automations,
    environments,
    workspaces,
)
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.automation_runs import ExecutionStatus
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.quotas import CHATS_MOST, OWNED_MOST, REPLICAS_MOST, STORED_CHATS_MOST


def require_automation_room(
    connection: Connection, organization_id: str, user_id: str | None
) -> None:
    """Check that an owner may have one more automation.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    _require_owned(connection, automations, organization_id, user_id, "automations")


def require_environment_room(
    connection: Connection, organization_id: str, user_id: str | None
) -> None:
    """Check that an owner may have one more environment.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    _require_owned(connection, environments, organization_id, user_id, "environments")


def require_key_room(connection: Connection, organization_id: str, user_id: str | None) -> None:
    """Check that an owner may have one more API key.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    _require_owned(connection, api_keys, organization_id, user_id, "API keys")


def require_part_room(connection: Connection, table: Table, environment_id: str, noun: str) -> None:
    """Check that an environment may have one more part of a table; `noun` names one.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    if _are_there(connection, OWNED_MOST, table, table.c.environment_id == environment_id):
        raise _reached(f"An environment has at most {OWNED_MOST:,} {noun}s.")


def require_run_room(
    connection: Connection, organization_id: str, user_id: str | None, *, awaiting: bool = False
) -> None:
    """Check that one more run of an owner's automations may wait; `awaiting` as in `has_run_room`.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    if not has_run_room(connection, organization_id, user_id, awaiting=awaiting):
        raise _reached(f"{OWNED_MOST:,} runs wait, which is the most allowed. Cancel some first.")


def has_run_room(
    connection: Connection, organization_id: str, user_id: str | None, *, awaiting: bool
) -> bool:
    """Return whether one more run of an owner's automations may wait.

    Runs that wait for approval (`awaiting`) are counted by themselves: strangers cause them, and
    must not keep others from starting.
    """
    runs = automation_executions
    # Not `due_at IS NULL`, for which SQLite would read all runs that have ended.
    wait = runs.c.approval == "awaited" if awaiting else runs.c.due_at.is_not(None)
    return not _are_there(
        connection,
        OWNED_MOST,
        runs.join(automations, automations.c.id == runs.c.automation_id),
        *_owned(automations, organization_id, user_id),
        runs.c.status == ExecutionStatus.PENDING,
        wait,
    )


def require_replica_room(connection: Connection, organization_id: str) -> None:
    """Check that an organization may have one more replica, of whatever state.

    Raises:
        ApiError: WORKSPACE_LIMIT_REACHED.
    """
    mine = workspaces.c.organization_id == organization_id, workspaces.c.warm_state.is_(None)
    if _are_there(connection, REPLICAS_MOST, workspaces, *mine):
        raise ApiError(
            ErrorCode.WORKSPACE_LIMIT_REACHED,
            f"There are {REPLICAS_MOST:,} replicas, which is the most allowed. Delete some first.",
        )


def require_chat_room(connection: Connection, workspace_id: str) -> None:
    """Check that a replica may have one more chat.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    shown, stored = count_chats(connection, workspace_id)
    if shown >= CHATS_MOST:
        raise _reached(f"A replica has at most {CHATS_MOST:,} chats.")
    if stored >= STORED_CHATS_MOST:
        raise _reached(f"A replica has at most {STORED_CHATS_MOST:,} chats with deleted ones.")


def _require_owned(
    connection: Connection, table: Table, organization_id: str, user_id: str | None, nouns: str
) -> None:
    if _are_there(connection, OWNED_MOST, table, *_owned(table, organization_id, user_id)):
        whose = "The organization has" if user_id is None else "You have"
        raise _reached(
            f"{whose} {OWNED_MOST:,} {nouns}, which is the most allowed. Delete some first."
        )


def _owned(
    table: Table, organization_id: str, user_id: str | None
) -> tuple[ColumnElement[bool], ...]:
    user = table.c.user_id.is_(None) if user_id is None else table.c.user_id == user_id
    return table.c.organization_id == organization_id, user


def _are_there(
    connection: Connection, most: int, rows: FromClause, *conditions: ColumnElement[bool]
) -> bool:
    """Return whether there are `most` rows; no more are counted."""
    some = select(literal(1)).select_from(rows).where(*conditions).limit(most).subquery()
    return connection.execute(select(func.count()).select_from(some)).scalar_one() >= most


def _reached(message: str) -> ApiError:
    return ApiError(ErrorCode.QUOTA_REACHED, message)
