"""Create, change and describe automations.

Members reach shared automations, their user personal ones. Shared ones are changed by admins.
"""

import json
import re
import secrets
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from pydantic import ValidationError
from sqlalchemy import Connection, RowMapping

from quarterdeck.sandboxes.port import StartPoint
from quarterdeck.service.agents.service import usable_agent
from quarterdeck.service.automations.changes import store_change
from quarterdeck.service.automations.prompts import TriggerEvent
from quarterdeck.service.automations.rows import (
    AutomationFilter,
    add_automation,
    automation_record,
    change_automation_row,
    find_automation,
    page_of_automations,
    remove_automation_row,
)
from quarterdeck.service.automations.run_rows import bring_forward, find_execution
from quarterdeck.service.automations.runs import end_waiting, store_automation_change
from quarterdeck.service.automations.scheduler import (
    check_triggers,
    coming,
    new_token,
    secret_place,
    trigger_columns,
)
from quarterdeck.service.checks.calls import close_checks_of_automation
from quarterdeck.service.checks.rows import drop_settled
from quarterdeck.service.checks.service import head_refs
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.records import readable, stored_json
from quarterdeck.service.db.tables import automations
from quarterdeck.service.environments.rows import find_environment
from quarterdeck.service.environments.service import repositories_for
from quarterdeck.service.errors import ApiError, DamagedRecordError
from quarterdeck.service.formats import check_match, etag_of, moment_text
from quarterdeck.service.hosts.settings import place_of
from quarterdeck.service.identity.service import Caller, CallerKind, require_admin
from quarterdeck.service.quotas import require_room
from quarterdeck.wire.automations import (
    Automation,
    AutomationList,
    ChangeAutomation,
    CreateAutomation,
)
from quarterdeck.wire.base import first_error
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import AutomationEventType
from quarterdeck.wire.replicas import CreateReplica, ReplicaConfig

Row = RowMapping


def reach_automation(connection: Connection, caller: Caller, automation_id: str) -> Row:
    """Return the row of an automation.

    Raises:
        ApiError: NOT_FOUND when there is none, or it belongs to somebody else.
    """
    row = find_automation(connection, automation_id)
    mine = row is not None and row["organization_id"] == caller.organization_id
    if row is None or not mine or row["user_id"] not in (None, caller.user_id):
        raise ApiError(ErrorCode.NOT_FOUND, "No automation has this id.", f"id: {automation_id}")
    return row


def reach_automation_to_change(connection: Connection, caller: Caller, automation_id: str) -> Row:
    """Return an automation as `reach_automation` does; only admins may change shared ones.

    Raises:
        ApiError: NOT_FOUND, FORBIDDEN.
    """
    row = reach_automation(connection, caller, automation_id)
    if row["user_id"] is None:
        require_admin(caller, "change a shared automation")
    return row


def reach_execution(
    connection: Connection, caller: Caller, automation_id: str, execution_id: str
) -> tuple[Row, Row]:
    """Return the rows of an automation and of one of its runs.

    Raises:
        ApiError: NOT_FOUND.
    """
    automation = reach_automation(connection, caller, automation_id)
    execution = find_execution(connection, execution_id)
    if execution is None or execution["automation_id"] != automation["id"]:
        raise ApiError(
            ErrorCode.NOT_FOUND, "The automation has no run with this id.", f"id: {execution_id}"
        )
    return automation, execution


async def list_automations(
    context: ServiceContext, filter: AutomationFilter, page: int, limit: int
) -> AutomationList:
    """Return a page of automations, newest first."""
    rows, total = await context.database.read(
        lambda c: page_of_automations(c, filter, (page - 1) * limit, limit)
    )
    return AutomationList(
        automations=readable(rows, partial(automation_record, context)),
        total=total,
        page=page,
        limit=limit,
        total_pages=-(-total // limit),
    )


async def read_automation(
    context: ServiceContext, caller: Caller, automation_id: str
) -> Automation:
    """Return one automation.

    Raises:
        ApiError: NOT_FOUND.
    """
    row = await context.database.read(lambda c: reach_automation(c, caller, automation_id))
    return automation_record(context, row)


async def create_automation(
    context: ServiceContext, caller: Caller, body: CreateAutomation
) -> Automation:
    """Store an automation.

    Raises:
        ApiError: NOT_FOUND for an unknown environment; INVALID_REQUEST for triggers, an environment or
            an agent that cannot be used; USER_REQUIRED for a personal one without a user; FORBIDDEN for a shared
            one, except for admins; QUOTA_REACHED.
    """
    if body.scope == "user" and caller.user_id is None:
        raise ApiError(
            ErrorCode.USER_REQUIRED, "A personal automation needs a user; this key has none."
        )
    if body.scope == "org":
        require_admin(caller, "create a shared automation")
    check_triggers(body.triggers)
    await _check_agent(context, caller, body.agent_provider)
    automation_id, now = str(uuid4()), context.clock()
    user_id = caller.user_id if body.scope == "user" else None
    values = {
        **_columns(
            context, automation_id, body.model_dump(mode="json", exclude={"scope", "triggers"})
        ),
        **trigger_columns(context.vault, automation_id, body.triggers, body.enabled, now),
        "id": automation_id,
        "organization_id": caller.organization_id,
        "user_id": user_id,
        "created_by": caller.user_id,
        "created_at": moment_text(now),
        "updated_at": moment_text(now),
    }

    def run(connection: Connection) -> Row | None:
        _check_environment(connection, caller, str(body.environment_id), user_id)
        require_room(connection, automations, caller.organization_id, user_id)
        add_automation(connection, values)
        store_automation_change(connection, automation_id, moment_text(now))
        return find_automation(connection, automation_id)

    row = await context.database.write(run)
    assert row is not None  # it was stored in the same transaction
    return automation_record(context, row)


async def change_automation(
    context: ServiceContext,
    caller: Caller,
    automation_id: str,
    body: ChangeAutomation,
    if_match: str | None = None,
) -> Automation:
    """Change the given fields of the state that `if_match` names.

    Switching it on clears the reason why it was switched off; switching it off ends its waiting runs.

    Raises:
        ApiError: NOT_FOUND, PRECONDITION_FAILED, or as `create_automation`.
    """
    if "triggers" in body.model_fields_set:
        check_triggers(body.triggers)
    if "agent_provider" in body.model_fields_set:
        await _check_agent(context, caller, body.agent_provider)
    given = body.model_dump(mode="json", include=body.model_fields_set - {"triggers"})
    now = context.clock()

    def run(connection: Connection) -> Row | None:
        row = reach_automation_to_change(connection, caller, automation_id)
        check_match(if_match, lambda: automation_tag(automation_record(context, row)))
        if "environment_id" in given:
            _check_environment(connection, caller, given["environment_id"], row["user_id"])
        values = _columns(context, row["id"], given) | {"updated_at": moment_text(now)}
        if "triggers" in body.model_fields_set:
            enabled = given.get("enabled", row["enabled"])
            sealed = row["webhook_token_sealed"]
            values |= trigger_columns(context.vault, row["id"], body.triggers, enabled, now, sealed)
            if row["enabled"] and enabled and _rhythm(values) == _rhythm(row):
                # A moment that is due and was not fired yet is not skipped.
                del values["cron_next_fire_at"]
        elif "enabled" in given and given["enabled"] != row["enabled"]:
            values["cron_next_fire_at"] = coming(*_rhythm(row), given["enabled"], now)
        if given.get("enabled"):
            values |= {"disabled_reason": None, "failures": 0}
        change_automation_row(connection, row["id"], **values)
        if "debounce_seconds" in given:
            # Otherwise runs that wait for a longer debounce would start after new ones.
            quiet = timedelta(seconds=given["debounce_seconds"] or 0)
            bring_forward(connection, row["id"], moment_text(now + quiet))
        if row["enabled"] and given.get("enabled") is False:
            end_waiting(connection, row["id"], moment_text(now))
        store_automation_change(connection, row["id"], moment_text(now))
        return find_automation(connection, row["id"])

    changed = await context.database.write(run)
    assert changed is not None  # it was reached in the same transaction
    return automation_record(context, changed)


def _rhythm(columns: Row | dict[str, Any]) -> tuple[str | None, str | None]:
    return columns["cron_expression"], columns["cron_timezone"]


async def rotate_webhook(context: ServiceContext, caller: Caller, automation_id: str) -> Automation:
    """Give an automation's webhook a new token; the earlier one starts nothing from now on.

    Raises:
        ApiError: NOT_FOUND; FORBIDDEN; CONFLICT when it has no webhook.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> Row | None:
        row = reach_automation_to_change(connection, caller, automation_id)
        if row["webhook_token_sealed"] is None:
            raise ApiError(ErrorCode.CONFLICT, "The automation has no webhook.", "triggers")
        token = new_token(context.vault, row["id"])
        change_automation_row(connection, row["id"], updated_at=now, **token)
        store_automation_change(connection, row["id"], now)
        return find_automation(connection, row["id"])

    changed = await context.database.write(run)
    assert changed is not None  # it was reached in the same transaction
    return automation_record(context, changed)


def automation_tag(automation: Automation) -> str:
    """Return the entity tag of an automation."""
    return etag_of(automation, ChangeAutomation.model_fields)


async def remove_automation(context: ServiceContext, caller: Caller, automation_id: str) -> None:
    """Remove an automation with its runs; the replicas of these stay.

    Raises:
        ApiError: NOT_FOUND.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> None:
        row = reach_automation_to_change(connection, caller, automation_id)
        owner = (row["organization_id"], row["user_id"])
        close_checks_of_automation(connection, row["id"], now)
        remove_automation_row(connection, row["id"])
        drop_settled(connection)  # checks that no host has to be notified of
        payload = {"automation_id": row["id"]}
        store_change(connection, owner, AutomationEventType.AUTOMATION_DELETED, payload, now)

    await context.database.write(run)


def _columns(context: ServiceContext, automation_id: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a body as columns."""
    values = dict(given)
    if "config" in values:
        config = {name: value for name, value in values.pop("config").items() if value is not None}
        values["config_json"] = json.dumps(config)
    if "webhook_secret" in values:
        secret = values.pop("webhook_secret")
        place = secret_place(automation_id)
        values["webhook_secret_sealed"] = secret and context.vault.seal(place, secret)
    return values


async def _check_agent(context: ServiceContext, caller: Caller, agent: str | None) -> None:
    if agent is not None:
        await usable_agent(context, caller.organization_id, caller.user_id, agent, "agent_provider")


def _check_environment(
    connection: Connection, caller: Caller, environment_id: str, user_id: str | None
) -> None:
    """Check that the environment exists and that the automation's owner may use it."""
    environment = find_environment(
        connection, caller.organization_id, caller.user_id, environment_id
    )
    if environment is None:
        raise ApiError(
            ErrorCode.NOT_FOUND,
            "No environment has this id.",
            f"environment_id: {environment_id}",
        )
    if environment.user_id is not None and user_id is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "A personal environment serves personal automations only.",
            "environment_id",
        )


NAME_LENGTH = 60
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.]+")


def caller_for(automation: RowMapping) -> Caller:
    """Return the caller that an automation acts as: its user if it is personal, else nobody."""
    kind = CallerKind.ORGANIZATION_KEY if automation["user_id"] is None else CallerKind.PERSONAL_KEY
    return Caller(automation["organization_id"], automation["user_id"], kind)


def replica_for(automation: RowMapping, text: str) -> CreateReplica:
    """Return the replica of a run with its first message.

    Raises:
        DamagedRecordError: the settings of the automation cannot be read.
    """
    minutes = automation["workspace_auto_stop_minutes"]
    base = stored_json(automation["config_json"], dict).get("base")
    try:
        return CreateReplica(
            name=_name(automation["name"]),
            environment_id=UUID(automation["environment_id"]),
            message=text,
            coding_agent=automation["agent_provider"],
            lifecycle_policy=automation["workspace_lifecycle_policy"],
            config=ReplicaConfig(auto_stop_minutes=minutes, base=base) if minutes or base else None,
            size=automation["workspace_size"],
            **modes_of(automation),
        )
    except ValidationError as e:
        raise DamagedRecordError(
            "The stored settings of the automation are damaged.", first_error(e)
        ) from e


def head_starts(
    connection: Connection, automation: RowMapping, occasion: TriggerEvent
) -> dict[str, StartPoint]:
    """Return where repositories of a run's replica start: that of its pull request at its head.

    Keys are ids of repositories; empty when the environment does not have the pull request's.
    """
    about = occasion.pull_request
    if about is None:
        return {}
    owner = (automation["organization_id"], automation["user_id"])
    bound = repositories_for(connection, *owner, automation["environment_id"]) or ()
    refs = (about.fetch_ref,) if about.fetch_ref else head_refs(about.number)
    return {
        # A repository of this machine has no pull requests, unless it was given their refs.
        repository["id"]: StartPoint(
            refs, about.head_sha, required=place_of(repository["url"]) is not None
        )
        for repository in bound
        if repository["id"] in occasion.repository_ids
    }


def modes_of(automation: RowMapping) -> dict[str, Any]:
    """Return the modes of an automation's message."""
    return {
        "model": automation["model"],
        "plan_mode": automation["plan_mode"] or None,
        "goal_mode": automation["goal_mode"],
        "fast_mode": automation["fast_mode"],
        "thinking_level": automation["thinking_level"],
    }


def _name(automation: str) -> str:
    readable = _NOT_IN_NAMES.sub("-", automation).strip("-")[:NAME_LENGTH] or "run"
    return f"{readable}-{secrets.token_hex(4)}"
