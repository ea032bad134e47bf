"""Rows of automations, their runs and the skipped moments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

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

from quarterdeck.service.checks.rows import check_of
from quarterdeck.service.db.records import as_record, stored_json, stored_objects
from quarterdeck.service.db.tables import (
    automation_executions,
    automation_skips,
    automations,
)
from quarterdeck.service.hosts.settings import HOSTS
from quarterdeck.service.listeners import is_loopback
from quarterdeck.wire.automation_runs import CheckRun, Execution, SkippedMoments
from quarterdeck.wire.automations import Automation
from quarterdeck.wire.triggers import TriggerType

if TYPE_CHECKING:
    from quarterdeck.service.context import ServiceContext


table = automations

_of_token = select(table).where(table.c.webhook_token_hash == bindparam("hash"))


@dataclass(frozen=True)
class AutomationFilter:
    """The automations of an organization that a list shows. `scope` is org, user or all."""

    organization_id: str
    user_id: str | None
    scope: str = "all"
    trigger_type: str | None = None
    enabled: bool | None = None
    search: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the filter as conditions of a statement."""
        conditions = [table.c.organization_id == self.organization_id, self._in_scope()]
        if self.trigger_type is not None:
            conditions.append(
                table.c.trigger_types.contains(f" {self.trigger_type} ", autoescape=True)
            )
        if self.enabled is not None:
            conditions.append(table.c.enabled.is_(self.enabled))
        if self.search:
            lowered = self.search.lower()
            text = (table.c.name, func.coalesce(table.c.description, ""))
            conditions.append(
                or_(
                    *(
                        func.lower(character).contains(lowered, autoescape=True)
                        for character in text
                    )
                )
            )
        return conditions

    def _in_scope(self) -> ColumnElement[bool]:
        # A caller without a user has no personal automations.
        shared, own = table.c.user_id.is_(None), table.c.user_id == (self.user_id or "")
        match self.scope:
            case "org":
                return shared
            case "user":
                return own
            case _:
                return or_(shared, own)


def owner_of(automation: RowMapping) -> tuple[str, str | None]:
    """Return the organization of an automation, and the user of a personal one."""
    return automation["organization_id"], automation["user_id"]


def find_automation(connection: Connection, automation_id: str) -> RowMapping | None:
    """Return the row of an id, of any owner."""
    return connection.execute(select(table).where(table.c.id == automation_id)).mappings().first()


def page_of_automations(
    connection: Connection, filter: AutomationFilter, offset: int, limit: int
) -> tuple[list[RowMapping], int]:
    """Return a page, newest first, and how many there are in all."""
    conditions = filter.conditions()
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
    """Store an automation."""
    connection.execute(insert(table).values(failures=0, **values))


def change_automation_row(connection: Connection, automation_id: str, **values: Any) -> None:
    """Set columns; does nothing when it was deleted."""
    connection.execute(update(table).where(table.c.id == automation_id).values(**values))


def remove_automation_row(connection: Connection, automation_id: str) -> None:
    """Remove it with its runs; their checks stay until their hosts are notified of the end."""
    connection.execute(delete(table).where(table.c.id == automation_id))


def find_by_token(connection: Connection, token_hash: str) -> RowMapping | None:
    """Return the automation whose webhook has this token."""
    return connection.execute(_of_token, {"hash": token_hash}).mappings().first()


def with_trigger(
    connection: Connection, organization_id: str, trigger_type: str
) -> list[RowMapping]:
    """Return the automations of an organization that are switched on and have such a trigger."""
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


def turn_of_owner(*order: ColumnElement[Any]) -> ColumnElement[int]:
    """Return the place of a row, from 1, among those of its automation's owner in an order.

    Sorted by it, owners take turns: one with many rows does not delay another with few.
    """
    owner = (table.c.organization_id, table.c.user_id)
    return func.row_number().over(partition_by=owner, order_by=order)


def due_automations(connection: Connection, now: str, limit: int) -> list[RowMapping]:
    """Return those whose schedule is due; owners take turns, each with the longest due first."""
    turn = turn_of_owner(table.c.cron_next_fire_at, table.c.id)
    statement = (
        select(table)
        .where(table.c.cron_next_fire_at <= now)
        .order_by(turn, table.c.cron_next_fire_at)
        .limit(limit)
    )
    return list(connection.execute(statement).mappings())


def next_scheduled(connection: Connection) -> str | None:
    """Return when the next schedule is due."""
    return connection.execute(select(func.min(table.c.cron_next_fire_at))).scalar()


def move_schedule(
    connection: Connection, automation_id: str, come: str, following: str | None
) -> bool:
    """Advance a schedule from a due moment; return False when somebody else has done it."""
    done = connection.execute(
        update(table)
        .where(table.c.id == automation_id, table.c.cron_next_fire_at == come)
        .values(cron_next_fire_at=following)
    )
    return done.rowcount > 0


def names_using(connection: Connection, environment_id: str, limit: int) -> list[str]:
    """Return the names of automations that use an environment, the first few."""
    statement = (
        select(table.c.name)
        .where(table.c.environment_id == environment_id)
        .order_by(table.c.name)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())


def retentions(connection: Connection) -> list[tuple[str, int]]:
    """Return the id of every automation, and for how many days it keeps its runs."""
    rows = connection.execute(select(table.c.id, table.c.retention_days))
    return [(row.id, row.retention_days) for row in rows]


skips_table = automation_skips

MOST = 100
"""Number of rows that are read at once."""


def add_skip(
    connection: Connection, automation_id: str, reason: str, first: str, last: str, count: int
) -> None:
    """Store skipped moments; consecutive ones with the same reason become one row."""
    known = _newest(connection, automation_id)
    if known is not None and known["reason"] == reason and not _ran_since(connection, known):
        changes = {"last_at": last, "count": known["count"] + count}
        connection.execute(
            update(skips_table).where(skips_table.c.id == known["id"]).values(**changes)
        )
        return
    connection.execute(
        insert(skips_table).values(
            id=str(uuid4()),
            automation_id=automation_id,
            reason=reason,
            count=count,
            first_at=first,
            last_at=last,
        )
    )


def skips_between(
    connection: Connection, automation_id: str, since: str | None, until: str | None
) -> list[RowMapping]:
    """Return the moments skipped in a period, newest first; None is no bound."""
    statement = select(skips_table).where(skips_table.c.automation_id == automation_id)
    if since is not None:
        statement = statement.where(skips_table.c.last_at >= since)
    if until is not None:
        statement = statement.where(skips_table.c.last_at < until)
    statement = statement.order_by(skips_table.c.last_at.desc(), skips_table.c.id).limit(MOST)
    return list(connection.execute(statement).mappings())


def remove_skips(connection: Connection, automation_id: str, before: str) -> None:
    """Remove the moments skipped before a moment."""
    old = skips_table.c.automation_id == automation_id, skips_table.c.last_at < before
    connection.execute(delete(skips_table).where(*old))


def _newest(connection: Connection, automation_id: str) -> RowMapping | None:
    statement = (
        select(skips_table)
        .where(skips_table.c.automation_id == automation_id)
        .order_by(skips_table.c.last_at.desc())
        .limit(1)
    )
    return connection.execute(statement).mappings().first()


def _ran_since(connection: Connection, skip: RowMapping) -> bool:
    runs = automation_executions
    statement = select(runs.c.id).where(
        runs.c.automation_id == skip["automation_id"], runs.c.triggered_at > skip["first_at"]
    )
    return connection.execute(statement).first() is not None


UNIX_ONLY = "the service listens on unix sockets only. Start it with: qd serve --listen HOST:PORT"
LOOPBACK_ONLY = (
    "the service listens on this machine's own address only. Start it with: "
    "qd serve --listen HOST:PORT, or put a proxy or a tunnel before it and name it with --advertise"
)


def automation_record(context: "ServiceContext", row: RowMapping) -> Automation:
    """Return an automation with its token, its webhook's URL, and why that cannot be reached."""
    sealed = row["webhook_token_sealed"]
    token = sealed and context.vault.unseal(row["id"], sealed)
    triggers = stored_objects(row["triggers_json"])
    base = _base_url(context)
    return as_record(
        Automation,
        {
            **{name: row[name] for name in Automation.model_fields if name in row},
            "triggers": triggers,
            "config": stored_json(row["config_json"], dict),
            "webhook_token": token,
            "webhook_signed": row["webhook_secret_sealed"] is not None,
            "webhook_url": token and base and f"{base}/v1/automations/webhook/{token}",
            "notices": list(_notices(context, {str(trigger.get("type")) for trigger in triggers})),
        },
    )


def _base_url(context: "ServiceContext") -> str | None:
    """Return where the service is called over TCP; None when it is not."""
    address = context.address
    return address.rstrip("/") if address and "://" in address else None


def _notices(context: "ServiceContext", types: set[str]) -> Iterator[str]:
    for host in HOSTS:
        if host in types and not context.hosts.of(host).webhook_secret:
            yield (
                f"{host} is not set up, so its events start nothing. Set webhook_secret in the "
                f"table [{host}] of config.toml."
            )
    called = types & {*HOSTS, TriggerType.CUSTOM}
    why = _unreachable(context) if called else None
    if why is not None:
        yield f"No webhook reaches this service from another machine: {why}."


def _unreachable(context: "ServiceContext") -> str | None:
    """Return why other machines cannot reach the service; None if they can or it does not listen."""
    if context.address is None:
        return None
    base = _base_url(context)
    if base is None:
        return UNIX_ONLY
    return LOOPBACK_ONLY if is_loopback(urlsplit(base).hostname or "") else None


def execution_record(connection: Connection, row: RowMapping) -> Execution:
    """Return a run with its check."""
    check = check_of(connection, row["id"])
    trigger = stored_json(row["trigger_json"], dict)
    about = trigger.get("pr")
    return as_record(
        Execution,
        {
            **{name: row[name] for name in Execution.model_fields if name in row},
            "trigger_payload": trigger.get("payload"),
            "head_sha": about.get("head_sha") if isinstance(about, dict) else None,
            "config": stored_json(row["config_json"], dict),
            "published": stored_json(row["published_json"] or "[]", list),
            "awaiting_approval": row["approval"] == "awaited" and row["status"] == "pending",
            "check": None if check is None else check_record(check),
        },
    )


def skipped_record(row: RowMapping) -> SkippedMoments:
    """Return moments of a schedule that made no run."""
    return as_record(SkippedMoments, row)


def check_record(row: RowMapping) -> CheckRun:
    """Return a check as its run shows it."""
    return as_record(
        CheckRun,
        {
            **{name: row[name] for name in CheckRun.model_fields if name in row},
            "id": row["check_run_id"],
        },
    )
