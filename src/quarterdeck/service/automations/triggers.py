"""The triggers of an automation: checked together, and as columns."""

import json
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from quarterdeck.schedules import next_fire
from quarterdeck.service.automations.scheduler import check_schedule
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.authentication import hash_of
from quarterdeck.service.vault import Vault
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.triggers import (
    CronTrigger,
    CustomTrigger,
    HostATrigger,
    HostBTrigger,
    StoredOnlyTrigger,
)

Trigger = CronTrigger | HostATrigger | HostBTrigger | CustomTrigger | StoredOnlyTrigger

MOST = 20
TOKEN_BYTES = 32


def check_triggers(triggers: Sequence[Trigger]) -> None:
    """Check for at most one schedule, and one trigger of each event.

    Raises:
        ApiError: INVALID_REQUEST, with the place of the wrong one.
    """
    if len(triggers) > MOST:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "There are too many triggers.", f"triggers: at most {MOST}"
        )
    seen: set[str] = set()
    for place, trigger in enumerate(triggers):
        what = _name(trigger)
        if what in seen:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "An automation has at most one trigger of a kind.",
                f"triggers.{place}: a second {what}",
            )
        seen.add(what)
        if isinstance(trigger, CronTrigger):
            config = trigger.config
            check_schedule(config.schedule, config.timezone, f"triggers.{place}.config")


def trigger_columns(
    vault: Vault,
    automation_id: str,
    triggers: Sequence[Trigger],
    enabled: bool,
    now: datetime,
    token_sealed: str | None = None,
) -> dict[str, Any]:
    """Return the columns for the triggers; an existing token is kept."""
    cron = next((one.config for one in triggers if isinstance(one, CronTrigger)), None)
    types = dict.fromkeys(str(one.type) for one in triggers)
    return {
        "triggers_json": json.dumps([one.model_dump(mode="json") for one in triggers]),
        "trigger_types": f" {' '.join(types)} ",
        "cron_expression": cron and cron.schedule,
        "cron_timezone": cron and cron.timezone,
        "cron_next_fire_at": coming(cron and cron.schedule, cron and cron.timezone, enabled, now),
        **_token(vault, automation_id, triggers, token_sealed),
    }


def coming(expression: str | None, zone: str | None, enabled: bool, now: datetime) -> str | None:
    """Return the next moment of a schedule; None without one, and while it is switched off."""
    if expression is None or zone is None or not enabled:
        return None
    following = next_fire(expression, zone, now)
    return following and moment_text(following)


def new_token(vault: Vault, automation_id: str) -> dict[str, str]:
    """Return the columns of a new token of an automation's webhook."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    return {
        "webhook_token_sealed": vault.seal(automation_id, token),
        "webhook_token_hash": hash_of(token),
    }


def secret_place(automation_id: str) -> str:
    """Return the id that a webhook secret is sealed to, which differs from the token's."""
    return f"{automation_id} webhook_secret"


def _token(
    vault: Vault, automation_id: str, triggers: Sequence[Trigger], sealed: str | None
) -> dict[str, Any]:
    if not any(isinstance(one, CustomTrigger) for one in triggers):
        return {"webhook_token_sealed": None, "webhook_token_hash": None}
    if sealed is not None:
        return {}
    return new_token(vault, automation_id)


def _name(trigger: Trigger) -> str:
    match trigger:
        case HostATrigger() | HostBTrigger():
            return f"{trigger.type} {trigger.config.event}"
        case _:
            return str(trigger.type)
