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
    credentials,
    environments,
    warm_pools,
    workspaces,
)
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.automation_runs import ExecutionStatus
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.quotas import (
    CHATS_MOST,
    HOOK_TESTS_MOST,
    MESSAGES_MOST,
    OWNED_MOST,
    POOLS_MOST,
    REPLICAS_MOST,
    STORED_CHATS_MOST,
)

_NOUNS: dict[Table, str] = {
    api_keys: "API keys",
    automations: "automations",
    credentials: "keys of providers",
    environments: "environments",
}
"""The tables whose rows are counted for their owner."""


def require_room(
    connection: Connection, table: Table, organization_id: str, user_id: str | None
) -> None:
    """Check that an owner may have one more row of a table.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    if _are_there(connection, OWNED_MOST, table, *_owned(table, organization_id, user_id)):
        whose = "The organization has" if user_id is None else "You have"
        raise _reached(
            f"{whose} {OWNED_MOST:,} {_NOUNS[table]}, which is the most allowed. Delete some first."
        )


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
    """Check that one more run of an owner's automations may wait; `awaiting` as in `WaitingRuns`.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    if not WaitingRuns(connection).has_room((organization_id, user_id), awaiting=awaiting):
        raise _reached(f"{OWNED_MOST:,} runs wait, which is the most allowed. Cancel some first.")


Owner = tuple[str, str | None]
"""An organization, and the user of what is personal."""


class WaitingRuns:
    """How many runs of each owner wait, within one write.

    One event may start runs of a thousand automations of an owner, so each owner's are counted once,
    and what the write changes is added.

    Runs that wait for approval (`awaiting`) are counted by themselves: strangers cause them, and
    must not keep others from starting.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._counts: dict[tuple[Owner, bool], int] = {}

    def has_room(self, owner: Owner, *, awaiting: bool) -> bool:
        """Return whether one more run of the owner's automations may wait."""
        key = owner, awaiting
        if key not in self._counts:
            self._counts[key] = self._count(owner, awaiting)
        return self._counts[key] < OWNED_MOST

    def add(self, owner: Owner, number: int, *, awaiting: bool) -> None:
        """Note that so many more runs wait, or fewer."""
        if (owner, awaiting) in self._counts:
            self._counts[owner, awaiting] += number

    def forget(self, owner: Owner) -> None:
        """Count again: what was stored for the owner was undone."""
        for awaiting in (False, True):
            self._counts.pop((owner, awaiting), None)

    def _count(self, owner: Owner, awaiting: bool) -> int:
        runs = automation_executions
        # Not `due_at IS NULL`, for which SQLite would read all runs that have ended.
        wait = runs.c.approval == "awaited" if awaiting else runs.c.due_at.is_not(None)
        statement = (
            select(func.count())
            .select_from(runs.join(automations, automations.c.id == runs.c.automation_id))
            .where(*_owned(automations, *owner), runs.c.status == ExecutionStatus.PENDING, wait)
        )
        return self._connection.execute(statement).scalar_one()


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


def require_hook_test_room(connection: Connection, organization_id: str, home_id: str) -> None:
    """Check that an organization may test one more hook now at the service of a home.

    Those of another service may stay when it is gone, and only itself removes them.

    Raises:
        ApiError: WORKSPACE_LIMIT_REACHED.
    """
    mine = workspaces.c.organization_id == organization_id, workspaces.c.home_id == home_id
    testing = workspaces.c.warm_state == "testing"
    if _are_there(connection, HOOK_TESTS_MOST, workspaces, *mine, testing):
        raise ApiError(
            ErrorCode.WORKSPACE_LIMIT_REACHED,
            f"{HOOK_TESTS_MOST} hooks are being tested, which is the most allowed. Wait for one.",
        )


def require_pool_room(
    connection: Connection, organization_id: str, user_id: str | None, but: str
) -> None:
    """Check that an owner may have the pool of one more environment, `but`, switched on.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    others = warm_pools.join(environments, environments.c.id == warm_pools.c.environment_id)
    owned = _owned(environments, organization_id, user_id)
    on = warm_pools.c.enabled, environments.c.id != but
    if _are_there(connection, POOLS_MOST, others, *owned, *on):
        raise _reached(f"{POOLS_MOST} warm pools are on, which is the most allowed.")


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


def require_message_room(unfinished: int) -> None:
    """Check that one more message may wait in a chat with so many that have not ended.

    Raises:
        ApiError: QUOTA_REACHED.
    """
    if unfinished >= MESSAGES_MOST:
        raise _reached(f"A chat has at most {MESSAGES_MOST:,} messages that wait.")


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
