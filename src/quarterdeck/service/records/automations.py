"""Automations as rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from quarterdeck.service.db.tables import automations

table = automations

_of_token = select(table).where(table.c.webhook_token_hash == bindparam("hash"))


@dataclass(frozen=True)
class AutomationFilter:
    """Which automations of an organization a list shows. `scope` is org, user or all."""

    organization_id: str
    user_id: str | None
    scope: str = "all"
    trigger_type: str | None = None
    enabled: bool | None = None
    search: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """The filter as conditions of a statement."""
        asked = [table.c.organization_id == self.organization_id, self._whose()]
        if self.trigger_type is not None:
            asked.append(table.c.trigger_types.contains(f" {self.trigger_type} ", autoescape=True))
        if self.enabled is not None:
            asked.append(table.c.enabled.is_(self.enabled))
        if self.search:
            wanted = self.search.lower()
            text = (table.c.name, func.coalesce(table.c.description, ""))
            asked.append(or_(*(func.lower(one).contains(wanted, autoescape=True) for one in text)))
        return asked

    def _whose(self) -> ColumnElement[bool]:
        # A caller without a user has nothing of their own.
        shared, own = table.c.user_id.is_(None), table.c.user_id == (self.user_id or "")
        match self.scope:
            case "org":
                return shared
            case "user":
                return own
            case _:
                return or_(shared, own)


def find_automation(connection: Connection, automation_id: str) -> RowMapping | None:
    """The row of an id, whoever's it is."""
    return connection.execute(select(table).where(table.c.id == automation_id)).mappings().first()


def page_of_automations(
    connection: Connection, which: AutomationFilter, offset: int, limit: int
) -> tuple[list[RowMapping], int]:
    """A page, newest first, and how many there are in all."""
    conditions = which.conditions()
    total = connection.execute(
        select(func.count()).select_from(table).where(*conditions)
    ).scalar_one()
    statement = (
        select(table)
        .where(*conditions)
        .order_by(table.c.created_at.desc(), table.c.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return list(connection.execute(statement).mappings()), total


def add_automation(connection: Connection, values: Mapping[str, Any]) -> None:
    """Stores an automation."""
    connection.execute(insert(table).values(failures=0, **values))


def change_automation_row(connection: Connection, automation_id: str, **values: Any) -> None:
    """Sets columns; nothing happens when it is gone."""
    connection.execute(update(table).where(table.c.id == automation_id).values(**values))


def remove_automation_row(connection: Connection, automation_id: str) -> None:
    """Removes it with its runs; their checks stay until their hosts have heard of the end."""
    connection.execute(delete(table).where(table.c.id == automation_id))


def find_by_token(connection: Connection, token_hash: str) -> RowMapping | None:
    """The automation whose webhook has this token."""
    return connection.execute(_of_token, {"hash": token_hash}).mappings().first()


def with_trigger(
    connection: Connection, organization_id: str, trigger_type: str
) -> list[RowMapping]:
    """The automations of an organization that are switched on and have such a trigger."""
    statement = (
        select(table)
        .where(
            table.c.organization_id == organization_id,
            table.c.enabled,
            table.c.trigger_types.contains(f" {trigger_type} ", autoescape=True),
        )
        .order_by(table.c.created_at, table.c.id)
    )
    return list(connection.execute(statement).mappings())


def due_automations(connection: Connection, now: str, limit: int) -> list[RowMapping]:
    """Those whose schedule has come, the longest due first."""
    statement = (
        select(table)
        .where(table.c.cron_next_fire_at <= now)
        .order_by(table.c.cron_next_fire_at)
        .limit(limit)
    )
    return list(connection.execute(statement).mappings())


def next_scheduled(connection: Connection) -> str | None:
    """When the next schedule comes."""
    return connection.execute(select(func.min(table.c.cron_next_fire_at))).scalar()


def move_schedule(
    connection: Connection, automation_id: str, come: str, following: str | None
) -> bool:
    """From a moment that has come to the following; False when somebody else has done it."""
    done = connection.execute(
        update(table)
        .where(table.c.id == automation_id, table.c.cron_next_fire_at == come)
        .values(cron_next_fire_at=following)
    )
    return done.rowcount > 0


def names_using(connection: Connection, environment_id: str, limit: int) -> list[str]:
    """The names of automations that use an environment, the first few."""
    statement = (
        select(table.c.name)
        .where(table.c.environment_id == environment_id)
        .order_by(table.c.name)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())
