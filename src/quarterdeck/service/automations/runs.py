"""Runs within a write: how they begin and how they end, and what follows from it.

| from | by | to |
|---|---|---|
| - | a fire, an event, a request | pending |
| pending | its workspace was made | creating |
| creating | the workspace is active | running |
| pending, creating, running | its turn is over | completed, failed |
| pending, creating, running | the workspace failed or is gone | failed |
| pending | its automation is switched off | failed |
| running | its agent's question was not answered within the stop time | failed |
"""

import json
from uuid import uuid4

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.changes import tell
from quarterdeck.service.automations.describing import execution_record
from quarterdeck.service.automations.prompts import Occasion
from quarterdeck.service.checks.states import run_ended
from quarterdeck.service.records.automations import change_automation_row, find_automation
from quarterdeck.service.records.executions import (
    OPEN,
    add_execution,
    change_execution,
    find_execution,
    waiting_of,
)
from quarterdeck.service.storable import storable, storable_json
from quarterdeck.wire.automations import AutomationEventType, ExecutionStatus, PullRequestRef

Row = RowMapping

FAILURES = 5
"""So many in a row switch an automation off."""
SWITCHED_OFF = "The automation was switched off before the run had begun."
SETTINGS = (
    "environment_id",
    "agent_provider",
    "model",
    "thinking_level",
    "plan_mode",
    "goal_mode",
    "fast_mode",
    "workspace_lifecycle_policy",
    "workspace_auto_stop_minutes",
    "workspace_size",
)
"""What a run keeps of its automation's settings."""


def settings_of(automation: Row) -> str:
    """The settings under which a run begins, as JSON."""
    return json.dumps(
        {**json.loads(automation["config_json"]), **{name: automation[name] for name in SETTINGS}}
    )


def trigger_json(occasion: Occasion) -> str:
    """What set a run off, as its row keeps it."""
    about = occasion.pull_request
    return json.dumps(
        {
            "payload": storable_json(occasion.payload),
            "pr": about and about.model_dump(exclude_none=True),
            "time": occasion.time,
            "joins": occasion.joins,
        }
    )


def occasion_of(execution: Row) -> Occasion:
    """What set a run off."""
    kept = json.loads(execution["trigger_json"])
    about = kept.get("pr")
    return Occasion(
        execution["trigger_type"],
        execution["trigger_event"],
        kept["time"],
        kept.get("payload"),
        about and PullRequestRef.model_validate(about),
        bool(kept.get("joins")),
    )


def begin_run(
    connection: Connection,
    automation: Row,
    occasion: Occasion,
    now: str,
    *,
    due_at: str | None = None,
    fire_key: str | None = None,
    group_key: str | None = None,
    retry_of: str | None = None,
) -> str:
    """Stores a run that waits, until `due_at` or for nothing; returns its id.

    Raises:
        IntegrityError: `fire_key` has made one already.
    """
    execution_id = str(uuid4())
    add_execution(
        connection,
        id=execution_id,
        organization_id=automation["organization_id"],
        automation_id=automation["id"],
        fire_key=fire_key,
        status=ExecutionStatus.PENDING,
        trigger_type=occasion.type,
        trigger_event=occasion.event,
        trigger_json=trigger_json(occasion),
        group_key=group_key,
        config_json=settings_of(automation),
        retry_of=retry_of,
        due_at=due_at or now,
        triggered_at=now,
    )
    tell_run(connection, execution_id, now)
    return execution_id


def mark_creating(
    connection: Connection,
    execution_id: str,
    automation: Row,
    place: tuple[str, str, str],
    now: str,
) -> bool:
    """Its workspace is made; `place` is workspace, chat and message. False when it had ended.

    The settings may have been changed since it was set off: it keeps those that it was begun with.
    """
    workspace_id, chat_id, message_id = place
    done = change_execution(
        connection,
        execution_id,
        (ExecutionStatus.PENDING,),
        status=ExecutionStatus.CREATING,
        workspace_id=workspace_id,
        chat_id=chat_id,
        message_id=message_id,
        config_json=settings_of(automation),
        due_at=None,
    )
    if done:
        tell_run(connection, execution_id, now)
    return done


def mark_running(connection: Connection, execution_id: str, now: str) -> None:
    """Its workspace is active."""
    came = (ExecutionStatus.CREATING,)
    if change_execution(connection, execution_id, came, status=ExecutionStatus.RUNNING):
        tell_run(connection, execution_id, now)


def finish(connection: Connection, execution_id: str, error: str | None, now: str) -> bool:
    """Ends a run, completed or with an error; False when it has ended already."""
    status = ExecutionStatus.COMPLETED if error is None else ExecutionStatus.FAILED
    done = change_execution(
        connection,
        execution_id,
        OPEN,
        status=status,
        error=error and storable(error),
        completed_at=now,
        due_at=None,
    )
    if done:
        execution = find_execution(connection, execution_id)
        assert execution is not None  # it was changed just now
        _count(connection, execution, now)
        run_ended(connection, execution, now)
        tell_run(connection, execution_id, now)
    return done


def end_waiting(connection: Connection, automation_id: str, now: str) -> None:
    """Ends the runs of an automation that is just being switched off, as far as none has begun.

    Kept until it is switched on again, they would run for what is long over. Who wants one still
    can retry it.
    """
    for execution_id in waiting_of(connection, automation_id):
        finish(connection, execution_id, SWITCHED_OFF, now)


def tell_run(connection: Connection, execution_id: str, now: str) -> None:
    """Tells watchers how a run stands."""
    execution = find_execution(connection, execution_id)
    automation = execution and find_automation(connection, execution["automation_id"])
    if execution is None or automation is None:
        return
    record = execution_record(connection, execution).model_dump(mode="json")
    record.pop("trigger_payload")  # it may be large; who wants it reads the run
    owner = (automation["organization_id"], automation["user_id"])
    tell(connection, owner, AutomationEventType.EXECUTION_CHANGED, {"execution": record}, now)


def _count(connection: Connection, execution: Row, now: str) -> None:
    automation = find_automation(connection, execution["automation_id"])
    if automation is None:
        return
    if execution["status"] == ExecutionStatus.COMPLETED:
        if automation["failures"]:
            change_automation_row(connection, automation["id"], failures=0)
        return
    failures = automation["failures"] + 1
    change_automation_row(connection, automation["id"], failures=failures)
    if failures >= FAILURES and automation["enabled"]:
        _switch_off(connection, automation, failures, execution["error"], now)


def _switch_off(
    connection: Connection, automation: Row, failures: int, error: str | None, now: str
) -> None:
    reason = f"Switched off after {failures} failures in a row. The last: {error}"
    change_automation_row(
        connection,
        automation["id"],
        enabled=False,
        disabled_reason=reason,
        cron_next_fire_at=None,
        updated_at=now,
    )
    end_waiting(connection, automation["id"], now)
    tell_automation(connection, automation["id"], now)


def tell_automation(connection: Connection, automation_id: str, now: str) -> None:
    """Tells watchers that an automation is another; they read it for themselves."""
    row = find_automation(connection, automation_id)
    if row is not None:
        owner = (row["organization_id"], row["user_id"])
        payload = {
            "automation_id": row["id"],
            "name": row["name"],
            "enabled": row["enabled"],
            "disabled_reason": row["disabled_reason"],
            "cron_next_fire_at": row["cron_next_fire_at"],
        }
        tell(connection, owner, AutomationEventType.AUTOMATION_CHANGED, payload, now)
