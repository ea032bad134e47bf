"""What was put into a workspace, and how its hooks went: served from what is stored."""

import json
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.records.hook_logs import list_hook_logs
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.setup import HookKind, HookLog, HookLogList, HookLogs

_logs = TypeAdapter(list[HookLog])


async def hook_logs_of(context: ServiceContext, workspace_id: str) -> HookLogs:
    """Every run of the workspace's hooks; asks no engine."""
    found = _logs.validate_python(
        await context.database.read(lambda c: list_hook_logs(c, workspace_id))
    )
    return HookLogs(
        warm_hooks=HookLogList(logs=[log for log in found if log.hook_type == HookKind.WARM]),
        start_hooks=HookLogList(logs=[log for log in found if log.hook_type == HookKind.START]),
    )


def told_setup(connection: Connection, row: WorkspaceRow) -> dict[str, Any]:
    """Fields of the `environment` block: names of what the last start put into the workspace."""
    told: dict[str, Any] = json.loads(row.setup_json) if row.setup_json else {}
    return {**told, "hooks": _summary(list_hook_logs(connection, row.id))}


def _summary(logs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The newest run of each hook, without its output."""
    newest = {(log.get("hookType"), log.get("hookName")): log for log in logs}
    kept = ("hookName", "exitCode", "timedOut", "executedAt")
    return {
        f"{kind.value}_hooks": [
            {name: log.get(name) for name in kept}
            for (type, _), log in newest.items()
            if type == kind
        ]
        for kind in HookKind
    }
