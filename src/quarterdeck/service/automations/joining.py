"""Where an event goes whose automation groups those of a pull request.

| the newest run of the group that has not failed | the event |
|---|---|
| is not started yet | waits until it is |
| has a workspace and has not ended | is the next message there, in its chat |
| has ended, and its workspace is still active | likewise |
| has ended, and its workspace rests, failed or is gone, or its service is away | has a workspace of its own |
| began under another environment, agent or size | has a workspace of its own |
| has a chat that was deleted | has a workspace of its own |
"""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.runs import occasion_of
from quarterdeck.service.presence import ALIVE
from quarterdeck.service.records.chats import find_chat
from quarterdeck.service.records.executions import STARTED, earlier_pending, newest_of_group
from quarterdeck.service.records.services import find_service, owner_of
from quarterdeck.service.records.workspaces import find_workspace
from quarterdeck.wire.replicas import WorkspaceStatus

Row = RowMapping

SAME = ("environment_id", "agent_provider", "workspace_size")
"""What makes a workspace fit for a later run."""


@dataclass(frozen=True)
class Company:
    """The runs that a run has to heed: one that it waits for, or one whose workspace it joins."""

    before: Row | None = None
    beside: Row | None = None


ALONE = Company()


def company_of(connection: Connection, execution: Row, automation: Row, home_id: str) -> Company:
    """Whom a run that waits joins; nobody when its trigger does not group.

    `home_id` is the home of the service that asks.
    """
    group = execution["group_key"]
    if group is None or not occasion_of(execution).joins:
        return ALONE
    before = earlier_pending(connection, execution)
    if before is not None:
        return Company(before=before)
    newest = newest_of_group(connection, automation["id"], group)
    if newest is None or not _fits(connection, newest, automation, home_id):
        return ALONE
    return Company(beside=newest)


def _fits(connection: Connection, run: Row, automation: Row, home_id: str) -> bool:
    kept = json.loads(run["config_json"])
    if any(kept.get(name) != automation[name] for name in SAME):
        return False
    workspace = find_workspace(connection, run["workspace_id"])
    if workspace is None or find_chat(connection, workspace.id, run["chat_id"]) is None:
        return False
    if run["status"] in STARTED:
        return workspace.status != WorkspaceStatus.ERROR
    if workspace.status != WorkspaceStatus.ACTIVE:
        return False
    return _is_attended(connection, workspace.id, home_id)


def _is_attended(connection: Connection, workspace_id: str, home_id: str) -> bool:
    """Whether the service that has a workspace is there: nothing waits for one that ended."""
    owner = owner_of(connection, workspace_id)
    if owner is None or owner.home_id in (None, home_id):
        return True
    service = find_service(connection, owner.home_id, ALIVE)
    return service is not None and service.alive
