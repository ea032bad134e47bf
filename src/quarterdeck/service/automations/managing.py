"""Making, changing and removing automations."""

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.automations.changes import tell
from quarterdeck.service.automations.describing import automation_record
from quarterdeck.service.automations.reach import Row, reach_automation
from quarterdeck.service.automations.runs import end_waiting, tell_automation
from quarterdeck.service.automations.triggers import (
    check_triggers,
    coming,
    trigger_columns,
)
from quarterdeck.service.checks.states import automation_goes, automation_gone
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.agents import usable_agent
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.automations import (
    AutomationFilter,
    add_automation,
    change_automation_row,
    find_automation,
    page_of_automations,
    remove_automation_row,
)
from quarterdeck.service.records.environments import find_environment
from quarterdeck.service.records.executions import bring_forward
from quarterdeck.wire.automations import (
    Automation,
    AutomationEventType,
    AutomationList,
    ChangeAutomation,
    CreateAutomation,
)
from quarterdeck.wire.errors import ErrorCode


async def list_automations(
    context: ServiceContext, which: AutomationFilter, page: int, limit: int
) -> AutomationList:
    """A page of automations, newest first."""
    rows, total = await context.database.read(
        lambda c: page_of_automations(c, which, (page - 1) * limit, limit)
    )
    return AutomationList(
        automations=[automation_record(context.vault, row) for row in rows],
        total=total,
        page=page,
        limit=limit,
        total_pages=-(-total // limit),
    )


async def read_automation(
    context: ServiceContext, caller: Caller, automation_id: str
) -> Automation:
    """One automation.

    Raises:
        ApiError: NOT_FOUND.
    """
    row = await context.database.read(lambda c: reach_automation(c, caller, automation_id))
    return automation_record(context.vault, row)


async def create_automation(
    context: ServiceContext, caller: Caller, body: CreateAutomation
) -> Automation:
    """Stores an automation.

    Raises:
        ApiError: INVALID_REQUEST for triggers, an environment or an agent that cannot be used;
            USER_REQUIRED for a personal one without a user.
    """
    if body.scope == "user" and caller.user_id is None:
        raise ApiError(
            ErrorCode.USER_REQUIRED, "A personal automation needs a user; this key has none."
        )
    check_triggers(body.triggers)
    await _check_agent(context, caller, body.agent_provider)
    made, now = str(uuid4()), context.clock()
    user_id = caller.user_id if body.scope == "user" else None
    values = {
        **_columns(body.model_dump(mode="json", exclude={"scope", "triggers"})),
        **trigger_columns(context.vault, made, body.triggers, body.enabled, now),
        "id": made,
        "organization_id": caller.organization_id,
        "user_id": user_id,
        "created_by": caller.user_id,
        "created_at": moment_text(now),
        "updated_at": moment_text(now),
    }

    def run(connection: Connection) -> Row | None:
        _check_environment(connection, caller, str(body.environment_id), user_id)
        add_automation(connection, values)
        tell_automation(connection, made, moment_text(now))
        return find_automation(connection, made)

    row = await context.database.write(run)
    assert row is not None  # it was stored in the same transaction
    return automation_record(context.vault, row)


async def change_automation(
    context: ServiceContext, caller: Caller, automation_id: str, body: ChangeAutomation
) -> Automation:
    """Changes what was given. Switching it on forgets why it was switched off; switching it off
    ends its runs that wait.

    Raises:
        ApiError: NOT_FOUND, or as `create_automation`.
    """
    if "triggers" in body.model_fields_set:
        check_triggers(body.triggers)
    if "agent_provider" in body.model_fields_set:
        await _check_agent(context, caller, body.agent_provider)
    given = body.model_dump(mode="json", include=body.model_fields_set - {"triggers"})
    now = context.clock()

    def run(connection: Connection) -> Row | None:
        row = reach_automation(connection, caller, automation_id)
        if "environment_id" in given:
            _check_environment(connection, caller, given["environment_id"], row["user_id"])
        values = _columns(given) | {"updated_at": moment_text(now)}
        if "triggers" in body.model_fields_set:
            enabled = given.get("enabled", row["enabled"])
            sealed = row["webhook_token_sealed"]
            values |= trigger_columns(context.vault, row["id"], body.triggers, enabled, now, sealed)
            if row["enabled"] and enabled and _rhythm(values) == _rhythm(row):
                # A moment that has come, and was not fired yet, is not passed over.
                del values["cron_next_fire_at"]
        elif "enabled" in given and given["enabled"] != row["enabled"]:
            values["cron_next_fire_at"] = coming(*_rhythm(row), given["enabled"], now)
        if given.get("enabled"):
            values |= {"disabled_reason": None, "failures": 0}
        change_automation_row(connection, row["id"], **values)
        if "debounce_seconds" in given:
            # What waits under a longer debounce would else start after what comes now.
            quiet = timedelta(seconds=given["debounce_seconds"] or 0)
            bring_forward(connection, row["id"], moment_text(now + quiet))
        if row["enabled"] and given.get("enabled") is False:
            end_waiting(connection, row["id"], moment_text(now))
        tell_automation(connection, row["id"], moment_text(now))
        return find_automation(connection, row["id"])

    changed = await context.database.write(run)
    assert changed is not None  # it was reached in the same transaction
    return automation_record(context.vault, changed)


def _rhythm(columns: Row | dict[str, Any]) -> tuple[str | None, str | None]:
    return columns["cron_expression"], columns["cron_timezone"]


async def remove_automation(context: ServiceContext, caller: Caller, automation_id: str) -> None:
    """Removes an automation with its runs; replicas that these made go on.

    Raises:
        ApiError: NOT_FOUND.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> None:
        row = reach_automation(connection, caller, automation_id)
        owner = (row["organization_id"], row["user_id"])
        automation_goes(connection, row["id"], now)
        remove_automation_row(connection, row["id"])
        automation_gone(connection)
        gone = {"automation_id": row["id"]}
        tell(connection, owner, AutomationEventType.AUTOMATION_DELETED, gone, now)

    await context.database.write(run)


def _columns(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a body as columns."""
    values = dict(given)
    if "config" in values:
        values["config_json"] = json.dumps(values.pop("config"))
    return values


async def _check_agent(context: ServiceContext, caller: Caller, agent: str | None) -> None:
    if agent is not None:
        await usable_agent(context, caller.organization_id, caller.user_id, agent, "agent_provider")


def _check_environment(
    connection: Connection, caller: Caller, environment_id: str, user_id: str | None
) -> None:
    """It is there, and whoever the automation belongs to may use it."""
    found = find_environment(connection, caller.organization_id, caller.user_id, environment_id)
    if found is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "The environment is not there.",
            f"environment_id: {environment_id}",
        )
    if found.user_id is not None and user_id is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "A personal environment serves personal automations only.",
            "environment_id",
        )
