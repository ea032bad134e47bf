"""Rows of automations and their runs as records of the contract."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.checks.rows import check_of
from quarterdeck.service.hosts.settings import HOSTS
from quarterdeck.service.listeners import is_loopback
from quarterdeck.wire.automation_runs import CheckRun, Execution, SkippedMoments
from quarterdeck.wire.automations import Automation
from quarterdeck.wire.triggers import TriggerType

if TYPE_CHECKING:
    from quarterdeck.service.context import ServiceContext


UNIX_ONLY = "the service listens on unix sockets only. Start it with: qd serve --listen HOST:PORT"
LOOPBACK_ONLY = (
    "the service listens on this machine's own address only. Start it with: "
    "qd serve --listen HOST:PORT, or put a proxy or a tunnel before it and name it with --advertise"
)


def automation_record(context: "ServiceContext", row: RowMapping) -> Automation:
    """Return an automation with its token, its webhook's URL, and why that cannot be reached."""
    sealed = row["webhook_token_sealed"]
    token = sealed and context.vault.unseal(row["id"], sealed)
    triggers: list[dict[str, Any]] = json.loads(row["triggers_json"])
    base = _base_url(context)
    return Automation.model_validate(
        {
            **{name: row[name] for name in Automation.model_fields if name in row},
            "triggers": triggers,
            "config": json.loads(row["config_json"]),
            "webhook_token": token,
            "webhook_signed": row["webhook_secret_sealed"] is not None,
            "webhook_url": token and base and f"{base}/v1/automations/webhook/{token}",
            "notices": list(_notices(context, {one["type"] for one in triggers})),
        }
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
    return Execution.model_validate(
        {
            **{name: row[name] for name in Execution.model_fields if name in row},
            "trigger_payload": json.loads(row["trigger_json"]).get("payload"),
            "config": json.loads(row["config_json"]),
            "published": json.loads(row["published_json"] or "[]"),
            "awaiting_approval": row["approval"] == "awaited" and row["status"] == "pending",
            "check": None if check is None else check_record(check),
        }
    )


def skipped_record(row: RowMapping) -> SkippedMoments:
    """Return moments of a schedule that made no run."""
    return SkippedMoments.model_validate(dict(row))


def check_record(row: RowMapping) -> CheckRun:
    """Return a check as its run shows it."""
    return CheckRun.model_validate(
        {
            **{name: row[name] for name in CheckRun.model_fields if name in row},
            "id": row["check_run_id"],
        }
    )
