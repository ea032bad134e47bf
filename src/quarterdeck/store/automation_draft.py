"""An automation as a person fills it in: one flat form, made into what the service is asked for.

A contract's automation has a list of triggers, each with a configuration. A person has one schedule,
one webhook and some events that share their filters. What the form does not show, or was not touched,
stays as it was.
"""

from collections.abc import Sequence
from typing import Any, Literal, cast, get_args

from pydantic import ValidationError, ValidationInfo, field_validator

from quarterdeck.store.automation_schedule import coming
from quarterdeck.wire.automations import (
    AgentName,
    Automation,
    AutomationName,
    AutoStop,
    ChangeAutomation,
    CreateAutomation,
    Debounce,
    Model,
    Prompt,
    Size,
    StoredTrigger,
)
from quarterdeck.wire.base import Body, GivenId, Id, Switch, utc_now
from quarterdeck.wire.messages import ThinkingLevel
from quarterdeck.wire.replicas import LifecyclePolicy
from quarterdeck.wire.stored_text import Text
from quarterdeck.wire.triggers import ACTOR, EXPRESSION, ZONE, MergeRequestEvent, PullRequestEvent

EVENTS: tuple[str, ...] = (*get_args(PullRequestEvent), *get_args(MergeRequestEvent))

SHARED = ("repository_ids", "group_pr_events", "excluded_actors", "check")
"""What all events of an automation have in common in the form."""
CONFIG = ("skip_while_running", "report")
PLAIN = (
    "name",
    "description",
    "environment_id",
    "prompt",
    "agent_provider",
    "model",
    "thinking_level",
    "plan_mode",
    "goal_mode",
    "fast_mode",
    "debounce_seconds",
    "workspace_lifecycle_policy",
    "workspace_size",
    "workspace_auto_stop_minutes",
    "enabled",
)
UNKNOWN = "It has a trigger that this version does not know, and cannot change the others."


class AutomationDraft(Body):
    """The fields of the form."""

    name: AutomationName
    description: Text | None = None
    environment_id: GivenId
    prompt: Prompt
    schedule: EXPRESSION | None = None
    timezone: ZONE = "UTC"
    skip_while_running: Switch = False
    webhook: Switch = False
    events: list[str] = []
    repository_ids: list[Id] | None = None
    group_pr_events: Switch = False
    excluded_actors: list[ACTOR] = []
    check: Switch = True
    debounce_seconds: Debounce | None = None
    agent_provider: AgentName | None = None
    model: Model | None = None
    thinking_level: ThinkingLevel | None = None
    plan_mode: Switch = False
    goal_mode: Switch | None = None
    fast_mode: Switch | None = None
    report: Switch = False
    workspace_lifecycle_policy: LifecyclePolicy = "default"
    workspace_size: Size | None = None
    workspace_auto_stop_minutes: AutoStop | None = None
    enabled: Switch = True
    scope: Literal["org", "user"] = "org"

    @field_validator("repository_ids")
    @classmethod
    def _none_is_no_filter(cls, ids: list[Id] | None) -> list[Id] | None:
        return ids or None

    @field_validator("excluded_actors", mode="before")
    @classmethod
    def _without_blanks(cls, actors: list[str]) -> list[str]:
        return [actor.strip() for actor in actors if actor.strip()]

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, zone: str, info: ValidationInfo) -> str:
        if info.data.get("schedule"):
            found = coming(info.data["schedule"], zone, utc_now(), 1)
            if found.problem and found.field == "timezone":
                raise ValueError(found.problem)
        return zone

    @field_validator("schedule")
    @classmethod
    def _readable(cls, schedule: str | None) -> str | None:
        found = coming(schedule, "UTC", utc_now(), 1) if schedule else None
        if found is not None and found.problem:
            raise ValueError(found.problem)
        return schedule


def draft_values(record: Automation) -> dict[str, Any]:
    """What the form opens with for an automation that is there."""
    values: dict[str, Any] = {name: getattr(record, name) for name in PLAIN}
    for trigger in record.triggers:
        match trigger.type:
            case "cron":
                values["schedule"] = trigger.config.get("schedule")
                values["timezone"] = trigger.config.get("timezone") or "UTC"
            case "custom":
                values["webhook"] = True
            case "host-a" | "host-b":
                values.setdefault("events", []).append(trigger.config.get("event"))
                for name in SHARED:
                    if name in trigger.config:
                        values.setdefault(name, trigger.config[name])
            case _:
                pass
    values |= {name: record.config[name] for name in CONFIG if name in record.config}
    return {**values, "scope": "user" if record.user_id else "org"}


def new_body(draft: AutomationDraft) -> CreateAutomation:
    """The body that makes one."""
    given = {name: getattr(draft, name) for name in PLAIN}
    config = {name: getattr(draft, name) for name in CONFIG}
    triggers = triggers_of(draft, (), set(SHARED))
    return CreateAutomation.model_validate(
        {**given, "config": config, "triggers": triggers, "scope": draft.scope}
    )


def change_body(draft: AutomationDraft, record: Automation) -> ChangeAutomation | None:
    """The body that changes one to what the form holds; None when nothing is another.

    Raises:
        ValueError: its triggers cannot be sent back.
    """
    before = draft_values(record)
    changed = {
        name
        for name in AutomationDraft.model_fields
        if _plain(getattr(draft, name)) != _plain(before.get(name, _default(name)))
    }
    given = {name: getattr(draft, name) for name in PLAIN if name in changed}
    if changed & set(CONFIG):
        given["config"] = {**record.config, **{name: getattr(draft, name) for name in CONFIG}}
    if changed & {"schedule", "timezone", "webhook", "events", *SHARED}:
        given["triggers"] = triggers_of(draft, record.triggers, changed & set(SHARED))
    try:
        return ChangeAutomation.model_validate(given) if given else None
    except ValidationError as error:
        raise ValueError(UNKNOWN) from error


def triggers_of(
    draft: AutomationDraft, before: Sequence[StoredTrigger], shared: set[str]
) -> list[dict[str, Any]]:
    """Triggers as the form wants them, in their order; `shared` names what all events get anew."""
    found: list[dict[str, Any]] = []
    for trigger in before:
        config = _kept(draft, trigger, shared)
        if config is not None:
            found.append({"type": trigger.type, "config": config})
    names = {_name(one["type"], one["config"]) for one in found}
    added = [one for one in _wanted(draft) if _name(one["type"], one["config"]) not in names]
    return found + added


def _kept(
    draft: AutomationDraft, trigger: StoredTrigger, shared: set[str]
) -> dict[str, Any] | None:
    """The configuration of a trigger that is there from now on; None when it goes."""
    match trigger.type:
        case "cron":
            rhythm = {"schedule": draft.schedule, "timezone": draft.timezone}
            return {**trigger.config, **rhythm} if draft.schedule else None
        case "custom":
            return trigger.config if draft.webhook else None
        case "host-a" | "host-b":
            if trigger.config.get("event") not in draft.events:
                return None
            return {**trigger.config, **{name: getattr(draft, name) for name in shared}}
        case _:
            return trigger.config


def _wanted(draft: AutomationDraft) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if draft.schedule:
        config = {"schedule": draft.schedule, "timezone": draft.timezone}
        found.append({"type": "cron", "config": config})
    if draft.webhook:
        found.append({"type": "custom", "config": {}})
    for event in draft.events:
        host = "host-a" if event.startswith("pull_request.") else "host-b"
        config = {"event": event, **{name: getattr(draft, name) for name in SHARED}}
        found.append({"type": host, "config": config})
    return found


def _name(type: str, config: dict[str, Any]) -> str:
    """What tells a trigger from the others of its automation."""
    return str(config.get("event")) if type in {"host-a", "host-b"} else type


def field_of(path: str) -> str:
    """The field of the form that a path of the service's refusal speaks of."""
    head, *rest = path.split(".")
    match head:
        case "config":
            return rest[0] if rest else "report"
        case "triggers":
            known = {"schedule", "timezone", *SHARED}
            return next((part for part in rest if part in known), "events")
        case _:
            return path


def _default(name: str) -> Any:
    return AutomationDraft.model_fields[name].get_default(call_default_factory=True)


def _plain(value: Any) -> Any:
    """A value that can be compared, whether it was read from JSON or typed; no list is none."""
    if isinstance(value, list):
        return [str(one) for one in cast("list[object]", value)] or None
    return value
