"""Rows of automations and their runs as records of the contract."""

import json

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.records.checks import check_of
from quarterdeck.service.vault import Vault
from quarterdeck.wire.automations import Automation, CheckRun, Execution


def automation_record(vault: Vault, row: RowMapping) -> Automation:
    """An automation with its token."""
    sealed = row["webhook_token_sealed"]
    return Automation.model_validate(
        {
            **{name: row[name] for name in Automation.model_fields if name in row},
            "triggers": json.loads(row["triggers_json"]),
            "config": json.loads(row["config_json"]),
            "webhook_token": sealed and vault.unseal(row["id"], sealed),
        }
    )


def execution_record(connection: Connection, row: RowMapping) -> Execution:
    """A run with its check."""
    check = check_of(connection, row["id"])
    return Execution.model_validate(
        {
            **{name: row[name] for name in Execution.model_fields if name in row},
            "trigger_payload": json.loads(row["trigger_json"]).get("payload"),
            "config": json.loads(row["config_json"]),
            "check": None if check is None else check_record(check),
        }
    )


def check_record(row: RowMapping) -> CheckRun:
    """A check as its run shows it."""
    return CheckRun.model_validate(
        {
            **{name: row[name] for name in CheckRun.model_fields if name in row},
            "id": row["check_run_id"],
        }
    )
