"""Runs within a write transaction: how they start and end, and what follows from it.

| from | by | to |
|---|---|---|
| - | a fire, an event, a request | pending |
| pending | its workspace was created | creating |
| creating | the workspace is active | running |
| pending, creating, running | its turn is over | completed, failed |
| pending, creating, running | the workspace failed or was deleted | failed |
| pending | its automation is switched off | failed |
| pending, creating, running | a person cancels it, a newer push takes its place | failed |
| creating, running | it takes longer than `max_minutes` | failed |
| running | its agent's question was not answered within the stop time | failed |
| pending, awaiting approval | nobody approved it within `retention_days` | failed |

A run of a pull request that is not trusted waits for approval as `pending`: it has no `due_at`, so
nothing starts it, and the launcher refuses it.
"""

import json
import logging
from uuid import uuid4

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.changes import store_change
from quarterdeck.service.automations.prompts import TriggerEvent
from quarterdeck.service.automations.rows import (
    change_automation_row,
    execution_record,
    find_automation,
    owner_of,
)
from quarterdeck.service.automations.run_rows import (
    OPEN,
    STARTED,
    add_execution,
    change_execution,
    find_execution,
    open_of_group,
    waiting_of,
    was_approved,
)
from quarterdeck.service.checks.calls import run_ended
from quarterdeck.service.db.records import as_record, reading_values, stored_json
from quarterdeck.service.errors import DamagedRecordError
from quarterdeck.service.formats import storable, storable_json
from quarterdeck.service.hosts.settings import HOSTS
from quarterdeck.service.quotas import WaitingRuns
from quarterdeck.wire.automation_runs import (
    UNCOUNTED_REASONS,
    ExecutionReason,
    ExecutionStatus,
    PullRequestRef,
)
from quarterdeck.wire.automations import OnSuccess
from quarterdeck.wire.events import AutomationEventType

log = logging.getLogger(__name__)

Row = RowMapping

FAILURES = 5
"""This many failures in a row switch an automation off."""
SWITCHED_OFF = "The automation was switched off before the run had begun."
SUPERSEDED = "A newer push to the pull request replaced it."
AWAITED, GIVEN = "awaited", "given"
"""Approval of a run that needs one."""
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
    "max_minutes",
)
"""The settings of its automation that a run keeps."""


def settings_of(automation: Row) -> str:
    """Return the settings with which a run starts, as JSON."""
    config = stored_json(automation["config_json"], dict)
    return json.dumps({**config, **{name: automation[name] for name in SETTINGS}})


def trigger_json(occasion: TriggerEvent) -> str:
    """Return the event of a run as JSON for its row."""
    about = occasion.pull_request
    return json.dumps(
        {
            "payload": storable_json(occasion.payload),
            "pr": about and about.model_dump(exclude_none=True),
            "time": occasion.time,
            "joins": occasion.joins,
            "repository_ids": occasion.repository_ids,
            "trusted": occasion.trusted,
        }
    )


def occasion_of(execution: Row) -> TriggerEvent:
    """Return the event that triggered a run.

    Raises:
        DamagedRecordError: it cannot be read.
    """
    kept = stored_json(execution["trigger_json"], dict)
    if "time" not in kept:
        raise DamagedRecordError("The stored event of the run is damaged.", "it has no time")
    about = kept.get("pr")
    # An event stored by a version without `trusted`: unknown is not trusted.
    trusted = kept.get("trusted", execution["trigger_type"] not in HOSTS)
    with reading_values():
        return TriggerEvent(
            execution["trigger_type"],
            execution["trigger_event"],
            kept["time"],
            kept.get("payload"),
            about and as_record(PullRequestRef, about),
            bool(kept.get("joins")),
            tuple(kept.get("repository_ids", ())),
            bool(trusted),
            execution["author"],
        )


def needs_approval(connection: Connection, automation: Row, occasion: TriggerEvent) -> bool:
    """Return whether a run of this occasion waits until a person approves it."""
    if occasion.trusted or automation["trust"] == "all":
        return False
    known = automation["trust"] == "approved" and occasion.author is not None
    return not (known and was_approved(connection, automation["id"], occasion.author))


def begin_run(
    connection: Connection,
    automation: Row,
    occasion: TriggerEvent,
    now: str,
    *,
    due_at: str | None = None,
    fire_key: str | None = None,
    group_key: str | None = None,
    retry_of: Row | None = None,
) -> str:
    """Store a run that waits, until `due_at`, for approval, or for nothing; return its id.

    A retry of a run that was approved for a commit needs no other approval.

    Raises:
        IntegrityError: a run with `fire_key` exists already.
    """
    execution_id = str(uuid4())
    approval = AWAITED if needs_approval(connection, automation, occasion) else None
    about = occasion.pull_request
    if approval and retry_of and retry_of["approval"] == GIVEN and about and about.head_sha:
        approval = GIVEN
    queues = automation["on_new_event"] == "queue" and not occasion.joins
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
        queue_key=group_key if queues else None,
        author=occasion.author,
        approval=approval,
        approved_by=retry_of and retry_of["approved_by"],
        approved_at=retry_of and retry_of["approved_at"],
        config_json=settings_of(automation),
        retry_of=retry_of and retry_of["id"],
        due_at=None if approval == AWAITED else due_at or now,
        triggered_at=now,
    )
    store_run_change(connection, execution_id, now)
    return execution_id


def mark_creating(
    connection: Connection,
    execution_id: str,
    automation: Row,
    place: tuple[str, str, str],
    now: str,
) -> bool:
    """Note the workspace, chat and message of a run in `place`; return False when it had ended.

    The settings may have changed since it was triggered: it keeps those that it was started with.
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
        started_at=now,
        due_at=None,
    )
    if done:
        store_run_change(connection, execution_id, now)
    return done


def mark_running(connection: Connection, execution_id: str, now: str) -> None:
    """Note that a run's workspace is active."""
    creating = (ExecutionStatus.CREATING,)
    if change_execution(connection, execution_id, creating, status=ExecutionStatus.RUNNING):
        store_run_change(connection, execution_id, now)


def finish(
    connection: Connection,
    execution_id: str,
    error: str | None,
    now: str,
    reason: ExecutionReason | None = None,
) -> bool:
    """End a run, completed or with an error; return False when it has ended already.

    `reason` says why, unless the run itself failed.
    """
    status = ExecutionStatus.COMPLETED if error is None else ExecutionStatus.FAILED
    done = change_execution(
        connection,
        execution_id,
        OPEN,
        status=status,
        error=error and storable(error),
        reason=reason,
        completed_at=now,
        due_at=None,
    )
    if done:
        execution = find_execution(connection, execution_id)
        assert execution is not None  # it was changed just now
        if error is None and _publishes(execution):
            change_execution(connection, execution_id, (status,), stop_due_at=now)
        _count(connection, execution, now)
        run_ended(connection, execution, now)
        store_run_change(connection, execution_id, now)
    return done


def _publishes(execution: Row) -> bool:
    try:
        wanted = stored_json(execution["config_json"], dict).get("on_success")
    except DamagedRecordError:
        return False
    return wanted not in (None, OnSuccess.NONE) and execution["workspace_id"] is not None


def stop_run(
    connection: Connection, execution: Row, error: str, reason: ExecutionReason, now: str
) -> bool:
    """End a run and have the work of its agent stopped; return False when it has ended already.

    The work is stopped by the service that has the replica (`automations.executions`).
    """
    started = execution["status"] in STARTED
    if not finish(connection, execution["id"], error, now, reason):
        return False
    if started:
        failed = (ExecutionStatus.FAILED,)
        change_execution(connection, execution["id"], failed, stop_due_at=now)
    return True


def supersede(
    connection: Connection,
    waiting_runs: WaitingRuns,
    automation: Row,
    group_key: str | None,
    now: str,
    *,
    but: str | None,
) -> None:
    """End the runs of a group that have not ended: a newer push takes their place.

    `but` is the id of a run that goes on, because it gets the newer push.
    """
    for older in open_of_group(connection, automation["id"], group_key):
        if older["id"] == but:
            continue
        stop_run(connection, older, SUPERSEDED, ExecutionReason.SUPERSEDED, now)
        if older["status"] == ExecutionStatus.PENDING:
            waiting_runs.add(owner_of(automation), -1, awaiting=older["approval"] == AWAITED)


def end_waiting(connection: Connection, automation_id: str, now: str) -> None:
    """End the runs of an automation that is being switched off, as far as they have not started.

    Kept until it is switched on again, they would run for outdated events. A run that is still
    wanted can be retried.
    """
    for execution_id in waiting_of(connection, automation_id):
        finish(connection, execution_id, SWITCHED_OFF, now, ExecutionReason.DISABLED)


def store_run_change(connection: Connection, execution_id: str, now: str) -> None:
    """Store an event with the state of a run for watching clients."""
    execution = find_execution(connection, execution_id)
    automation = execution and find_automation(connection, execution["automation_id"])
    if execution is None or automation is None:
        return
    try:
        record = execution_record(connection, execution).model_dump(mode="json")
    except DamagedRecordError as e:  # its end is stored all the same
        log.warning("A change of run %s is not announced: %s", execution_id, e.for_operator())
        return
    record.pop("trigger_payload")  # it may be large; clients that need it read the run
    owner = (automation["organization_id"], automation["user_id"])
    store_change(
        connection, owner, AutomationEventType.EXECUTION_CHANGED, {"execution": record}, now
    )


def _count(connection: Connection, execution: Row, now: str) -> None:
    automation = find_automation(connection, execution["automation_id"])
    if automation is None:
        return
    if execution["status"] == ExecutionStatus.COMPLETED:
        if automation["failures"]:
            change_automation_row(connection, automation["id"], failures=0)
        return
    if execution["reason"] in UNCOUNTED_REASONS:
        return
    failures = automation["failures"] + 1
    change_automation_row(connection, automation["id"], failures=failures)
    if failures >= FAILURES and automation["enabled"]:
        why = f"Switched off after {failures} failures in a row. The last: {execution['error']}"
        switch_off(connection, automation["id"], why, now)


def switch_off(connection: Connection, automation_id: str, reason: str, now: str) -> None:
    """Switch an automation off, with the reason that is shown, and end its waiting runs."""
    change_automation_row(
        connection,
        automation_id,
        enabled=False,
        disabled_reason=reason,
        cron_next_fire_at=None,
        updated_at=now,
    )
    end_waiting(connection, automation_id, now)
    store_automation_change(connection, automation_id, now)


def store_automation_change(connection: Connection, automation_id: str, now: str) -> None:
    """Store an event that an automation has changed; watching clients read it again."""
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
        store_change(connection, owner, AutomationEventType.AUTOMATION_CHANGED, payload, now)
