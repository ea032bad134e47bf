"""Runs that somebody or something outside asks for: by hand, again, or by a webhook."""

import json
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.automations.launching import launch
from quarterdeck.service.automations.naming import as_connected
from quarterdeck.service.automations.payloads import read_payload
from quarterdeck.service.automations.prompts import Occasion
from quarterdeck.service.automations.reach import Row, reach_automation, reach_execution
from quarterdeck.service.automations.runs import begin_run, occasion_of, trigger_json
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.identity.keys import hash_of
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.automations import find_by_token
from quarterdeck.service.records.executions import (
    find_execution,
    pending_for,
    replace_occasion,
)
from quarterdeck.service.records.repositories import list_repositories
from quarterdeck.wire.automations import (
    PAYLOAD_BYTES,
    ExecutionStatus,
    Retried,
    TriggerAutomation,
    Triggered,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.triggers import TriggerType

LONGEST_BURST = 10
"""A burst that does not end is let through after so many times its quiet time."""


async def trigger_by_hand(
    context: ServiceContext,
    fleet: Fleet,
    caller: Caller,
    automation_id: str,
    body: TriggerAutomation,
) -> Triggered:
    """Begins a run, also of an automation that is switched off.

    Raises:
        ApiError: NOT_FOUND, PAYLOAD_TOO_LARGE; INVALID_REQUEST when it cannot be started, or its
            pull request's repository is not connected.
    """
    if len(json.dumps(body.payload)) > PAYLOAD_BYTES:
        raise too_large()
    now = moment_text(context.clock())
    event = None if body.pr is None else "pull_request"

    def run(connection: Connection) -> str:
        automation = reach_automation(connection, caller, automation_id)
        about = body.pr and as_connected(
            body.pr, list_repositories(connection, automation["organization_id"])
        )
        occasion = Occasion("manual", event, now, body.payload, about)
        return begin_run(connection, automation, occasion, now)

    execution_id = await context.database.write(run)
    workspace_id = await _launched(context, fleet, execution_id)
    return Triggered.model_validate({"execution_id": execution_id, "workspace_id": workspace_id})


async def retry(
    context: ServiceContext, fleet: Fleet, caller: Caller, automation_id: str, execution_id: str
) -> Retried:
    """Runs a failed run's occasion again, under the automation's present settings (operation 17).

    Raises:
        ApiError: NOT_FOUND; CONFLICT when it has not failed; INVALID_REQUEST when it cannot be
            started.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> str:
        automation, failed = reach_execution(connection, caller, automation_id, execution_id)
        if failed["status"] != ExecutionStatus.FAILED:
            raise ApiError(
                ErrorCode.CONFLICT,
                "Only a failed run can be retried.",
                f"status: {failed['status']}",
            )
        return begin_run(connection, automation, occasion_of(failed), now, retry_of=failed["id"])

    made = await context.database.write(run)
    workspace_id = await _launched(context, fleet, made)
    return Retried.model_validate({"execution_id": made, "workspace_id": workspace_id})


async def take_webhook(context: ServiceContext, token: str, body: bytes) -> bool:
    """An automation's own webhook was called; returns whether a run was begun.

    Raises:
        ApiError: NOT_FOUND for every token that starts nothing, PAYLOAD_TOO_LARGE.
    """
    if len(body) > PAYLOAD_BYTES:
        raise too_large()
    payload, now = _payload_of(body), context.clock()

    def run(connection: Connection) -> bool:
        automation = find_by_token(connection, hash_of(token))
        if automation is None or not automation["enabled"]:
            raise ApiError(ErrorCode.NOT_FOUND, "There is no such webhook.")
        occasion = Occasion(TriggerType.CUSTOM, None, moment_text(now), payload)
        return take_event(connection, automation, occasion, now)

    return await context.database.write(run)


def take_event(
    connection: Connection,
    automation: Row,
    occasion: Occasion,
    now: datetime,
    group_key: str | None = None,
) -> bool:
    """An event from outside begins a run, or replaces the payload of one that still waits.

    Returns whether a run was begun: a burst changes nothing that anybody waits for.

    `group_key` names what the event is about: another thing's events replace nothing of this one's.
    """
    quiet = timedelta(seconds=automation["debounce_seconds"] or 0)
    waiting = pending_for(connection, automation["id"], group_key) if quiet else None
    if waiting is None:
        due = moment_text(now + quiet)
        begin_run(
            connection, automation, occasion, moment_text(now), due_at=due, group_key=group_key
        )
        return True
    latest = datetime.fromisoformat(waiting["triggered_at"]) + quiet * LONGEST_BURST
    due = moment_text(min(now + quiet, latest))
    replace_occasion(connection, waiting["id"], due, occasion.event, trigger_json(occasion))
    return False


def too_large() -> ApiError:
    """The refusal of a payload over the limit."""
    return ApiError(
        ErrorCode.PAYLOAD_TOO_LARGE, "The payload is too large.", f"at most {PAYLOAD_BYTES} bytes"
    )


async def _launched(context: ServiceContext, fleet: Fleet, execution_id: str) -> str | None:
    """Starts a run now; None while there is no place for it, or its service is away."""
    try:
        started = await launch(context, fleet, execution_id)
    except ApiError as e:
        if e.code not in (ErrorCode.WORKSPACE_LIMIT_REACHED, ErrorCode.ENGINE_UNREACHABLE):
            raise
        return None
    # The runner may have been quicker.
    return started or await _workspace_of(context, execution_id)


async def _workspace_of(context: ServiceContext, execution_id: str) -> str | None:
    row = await context.database.read(lambda c: find_execution(c, execution_id))
    return None if row is None else row["workspace_id"]


def _payload_of(body: bytes) -> Any:
    """JSON as it is; anything else as `{"raw": text}`."""
    try:
        return read_payload(body)
    except ValueError:
        return {"raw": body.decode(errors="replace")}
