"""Logs of hooks as rows, numbered in the order they ran."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, func, insert, select

from quarterdeck.service.db.tables import hook_logs


def add_hook_log(connection: Connection, workspace_id: str, log: Mapping[str, Any]) -> None:
    """Stores one run of a hook, as the engine told it."""
    newest = connection.execute(
        select(func.max(hook_logs.c.position)).where(hook_logs.c.workspace_id == workspace_id)
    ).scalar()
    connection.execute(
        insert(hook_logs).values(
            id=str(uuid4()),
            workspace_id=workspace_id,
            position=(newest or 0) + 1,
            kind=str(log.get("hookType", ""))[:16],
            log_json=json.dumps(log),
            executed_at=str(log.get("executedAt", ""))[:32],
        )
    )


def list_hook_logs(connection: Connection, workspace_id: str) -> list[dict[str, Any]]:
    """Every run of a hook, oldest first."""
    statement = (
        select(hook_logs.c.log_json)
        .where(hook_logs.c.workspace_id == workspace_id)
        .order_by(hook_logs.c.position)
    )
    return [json.loads(text) for text in connection.execute(statement).scalars()]
