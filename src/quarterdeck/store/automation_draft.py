"""The form of an automation, and the requests made from it.

An automation of the contract has a list of triggers, each with a configuration. The form has one
schedule, one webhook and several events that share their filters. Values that the form does not show,
or that were not changed, stay as they were.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, cast, get_args
from zoneinfo import ZoneInfoNotFoundError, available_timezones

from cronsim import CronSimError
from pydantic import Field, ValidationError, ValidationInfo, field_validator

from quarterdeck.client.errors import (
    ClientError,
    InvalidRequestError,
    LinkError,
    PayloadTooLargeError,
    ResponseError,
)
from quarterdeck.schedules import coming_fires, may_name_zone
from quarterdeck.wire.automation_runs import Execution, PullRequestRef, TriggerAutomation
from quarterdeck.wire.automations import (
    PAYLOAD_BYTES,
    RETENTION_DAYS,
    SIGNATURE_HEADER,
    AgentName,
    Automation,
    AutomationName,
    AutoStop,
    ChangeAutomation,
    Concurrency,
    CreateAutomation,
    Debounce,
    DebounceMax,
    Minutes,
    Model,
    OnNewEvent,
    OnSuccess,
    Prompt,
    RetentionDays,
    Size,
    StoredTrigger,
    Trust,
    WebhookSecret,
)
from quarterdeck.wire.base import Body, GivenId, Id, Switch, Text, utc_now
from quarterdeck.wire.chats import ThinkingLevel
from quarterdeck.wire.history import AgentEvent, AgentEventType
from quarterdeck.wire.permissions import PushPolicy
from quarterdeck.wire.replicas import Base, LifecyclePolicy
from quarterdeck.wire.triggers import ACTOR, EXPRESSION, ZONE, MergeRequestEvent, PullRequestEvent

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.automations import AutomationCommands


SHOWN = 5
FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
BOUNDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day of the month": "1 to 31, and one that its months have",
    "month": "1 to 12, or jan to dec",
    "day of the week": "0 to 7, or mon to sun",
}
_NAMES = {
    "Bad minute": "minute",
    "Bad hour": "hour",
    "Bad day-of-month": "day of the month",
    "Bad month": "month",
    "Bad day-of-week": "day of the week",
}


@dataclass(frozen=True)
class Coming:
    """Times in UTC; or, without any, a problem and its field: schedule or timezone."""

    moments: tuple[datetime, ...] = ()
    problem: str | None = None
    field: str = "schedule"


def coming(expression: str, zone: str, now: datetime, count: int = SHOWN) -> Coming:
    """Return the next times of a schedule."""
    count_given = len(expression.split())
    if count_given != len(FIELDS):
        return Coming(problem=f"Five fields are needed, {count_given} given: {', '.join(FIELDS)}.")
    if not zone:
        return Coming(problem="A zone is needed, such as UTC or Europe/Paris.", field="timezone")
    if not may_name_zone(zone):
        return _no_zone(zone)
    try:
        moments = coming_fires(expression, zone, now, count)
    except CronSimError as error:
        return Coming(problem=_plain_schedule(str(error), expression))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return _no_zone(zone)
    if not moments:
        return Coming(problem="No date ever matches it.")
    return Coming(tuple(moments))


def coming_of(automation: Automation, now: datetime, count: int = SHOWN) -> Coming:
    """Return the next times of an automation's schedule, also of one that is switched off.

    For a schedule that cannot be parsed here, this is the service's next time, if any.
    """
    if automation.cron_expression is None:
        return Coming()
    times = coming(automation.cron_expression, automation.cron_timezone or "UTC", now, count)
    next_at = automation.cron_next_fire_at
    return Coming((next_at,)) if times.problem and next_at else times


def zone_names() -> list[str]:
    """Return all zones that this machine knows, for completion."""
    return sorted(filter(may_name_zone, available_timezones()))


def _no_zone(name: str) -> Coming:
    what = f"Unknown time zone {name!r} (e.g. UTC, Europe/Paris)."
    return Coming(problem=what, field="timezone")


def _plain_schedule(error: str, expression: str) -> str:
    name = _NAMES.get(error)
    if name is None:
        return f"Not a valid schedule: {error}."
    part = expression.split()[FIELDS.index(name)]
    return f"The {name} {part!r} is none: {BOUNDS[name]}, * for any, */2 for every second one."


EVENTS: tuple[str, ...] = (*get_args(PullRequestEvent), *get_args(MergeRequestEvent))

SHARED = ("repository_ids", "group_pr_events", "excluded_actors", "check")
"""Fields of the form that all events of an automation share."""
CONFIG = ("skip_while_running", "report", "on_success", "push", "base")
SECRET = "webhook_secret"
"""Sent when typed, and never shown."""
PLAIN = tuple(
    name for name in ChangeAutomation.model_fields if name not in {SECRET, "config", "triggers"}
)
"""Fields with the same name in the form and at the service."""
UNKNOWN = "A trigger is unknown to this version, so the triggers cannot be edited here."


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
    debounce_max_seconds: DebounceMax | None = None
    max_minutes: Minutes | None = None
    concurrency: Concurrency | None = None
    on_new_event: OnNewEvent = "cancel"
    trust: Trust = "members"
    retention_days: RetentionDays = RETENTION_DAYS
    webhook_secret: WebhookSecret | None = Field(default=None, repr=False)
    """None leaves the secret unchanged: it is never read back."""
    agent_provider: AgentName | None = None
    model: Model | None = None
    thinking_level: ThinkingLevel | None = None
    plan_mode: Switch = False
    goal_mode: Switch | None = None
    fast_mode: Switch | None = None
    report: Switch = False
    on_success: OnSuccess | None = None
    push: PushPolicy | None = None
    base: Base | None = None
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
            times = coming(info.data["schedule"], zone, utc_now(), 1)
            if times.problem and times.field == "timezone":
                raise ValueError(times.problem)
        return zone

    @field_validator("schedule")
    @classmethod
    def _readable(cls, schedule: str | None) -> str | None:
        times = coming(schedule, "UTC", utc_now(), 1) if schedule else None
        if times is not None and times.problem:
            raise ValueError(times.problem)
        return schedule


def draft_values(record: Automation) -> dict[str, Any]:
    """Return the initial values of the form for an existing automation."""
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
    """Return the body that creates one."""
    values = {name: getattr(draft, name) for name in (*PLAIN, SECRET)}
    config = _config(draft)
    triggers = triggers_of(draft, (), set(SHARED))
    return CreateAutomation.model_validate(
        {**values, "config": config, "triggers": triggers, "scope": draft.scope}
    )


def change_body(draft: AutomationDraft, record: Automation) -> ChangeAutomation | None:
    """Return the body that changes one to the values of the form; None when nothing changed.

    Raises:
        ValueError: it has a trigger that cannot be sent.
    """
    before = draft_values(record)
    changed = {
        name
        for name in AutomationDraft.model_fields
        if _plain(getattr(draft, name)) != _plain(before.get(name, _default(name)))
    }
    values = {name: getattr(draft, name) for name in (*PLAIN, SECRET) if name in changed}
    if changed & set(CONFIG):
        kept = {name: value for name, value in record.config.items() if name not in CONFIG}
        values["config"] = kept | _config(draft)
    if changed & {"schedule", "timezone", "webhook", "events", *SHARED}:
        values["triggers"] = triggers_of(draft, record.triggers, changed & set(SHARED))
    try:
        return ChangeAutomation.model_validate(values) if values else None
    except ValidationError as error:
        raise ValueError(UNKNOWN) from error


def _config(draft: AutomationDraft) -> dict[str, Any]:
    config = {name: getattr(draft, name) for name in CONFIG}
    return {name: value for name, value in config.items() if value is not None}


def triggers_of(
    draft: AutomationDraft, before: Sequence[StoredTrigger], shared: set[str]
) -> list[dict[str, Any]]:
    """Return the triggers in the form's order; `shared` names fields to set on all events."""
    triggers: list[dict[str, Any]] = []
    for trigger in before:
        config = _kept(draft, trigger, shared)
        if config is not None:
            triggers.append({"type": trigger.type, "config": config})
    names = {_name(one["type"], one["config"]) for one in triggers}
    added = [
        wanted_trigger
        for wanted_trigger in _wanted(draft)
        if _name(wanted_trigger["type"], wanted_trigger["config"]) not in names
    ]
    return triggers + added


def _kept(
    draft: AutomationDraft, trigger: StoredTrigger, shared: set[str]
) -> dict[str, Any] | None:
    """Return the new configuration of an existing trigger; None when it is removed."""
    match trigger.type:
        case "cron":
            cron = {"schedule": draft.schedule, "timezone": draft.timezone}
            return {**trigger.config, **cron} if draft.schedule else None
        case "custom":
            return trigger.config if draft.webhook else None
        case "host-a" | "host-b":
            if trigger.config.get("event") not in draft.events:
                return None
            return {**trigger.config, **{name: getattr(draft, name) for name in shared}}
        case _:
            return trigger.config


def _wanted(draft: AutomationDraft) -> list[dict[str, Any]]:
    triggers: list[dict[str, Any]] = []
    if draft.schedule:
        config = {"schedule": draft.schedule, "timezone": draft.timezone}
        triggers.append({"type": "cron", "config": config})
    if draft.webhook:
        triggers.append({"type": "custom", "config": {}})
    for event in draft.events:
        host = "host-a" if event.startswith("pull_request.") else "host-b"
        config = {"event": event, **{name: getattr(draft, name) for name in SHARED}}
        triggers.append({"type": host, "config": config})
    return triggers


def _name(type: str, config: dict[str, Any]) -> str:
    """Return a trigger's name, unique within its automation."""
    return str(config.get("event")) if type in {"host-a", "host-b"} else type


def field_of(path: str) -> str:
    """Return the field of the form for a path in the service's refusal."""
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
    """Return a value that is equal whether read from JSON or typed; an empty list is None."""
    if isinstance(value, list):
        return [str(one) for one in cast("list[object]", value)] or None
    return value


FIRST = 20
"""Events from the start of a replica, which include the prompt of its own run."""
PAGE = 400
MOST_PAGES = 10
"""Limit for the history of an existing replica that a run has joined."""
CLOCKS = timedelta(seconds=5)
"""Maximum difference between the clocks of the engine and the service."""
HEADING = "## Trigger\n"


async def composed_prompt(client: "Client", run: Execution) -> str | None:
    """Return the message that a run started with; None when it is not in the history (yet, or any more).

    Raises:
        NotFoundError: the replica was deleted.
        ClientError: refused or unreachable.
    """
    if run.workspace_id is None:
        return None
    page = await client.history.page(run.workspace_id, limit=FIRST, before_event=FIRST)
    prompt = prompt_in(page.events, run)
    return prompt if prompt is not None else await _prompt_of_joined_run(client, run)


async def _prompt_of_joined_run(client: "Client", run: Execution) -> str | None:
    """Return the prompt of a run that joined an existing replica, searched from the end backwards."""
    assert run.workspace_id is not None  # checked by the only caller
    prompt: str | None = None
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.history.page(run.workspace_id, limit=PAGE, before_cursor=cursor)
        prompt = prompt_in(page.events, run) or prompt
        cursor = page.before_cursor
        older = page.events and page.events[0].timestamp < run.triggered_at - CLOCKS
        if cursor is None or older:
            break
    return prompt


def prompt_in(events: Iterable[AgentEvent], run: Execution) -> str | None:
    """Return the first message of a trigger since the start of the run."""
    for event in events:
        if event.type != AgentEventType.USER_MESSAGE or event.timestamp < run.triggered_at - CLOCKS:
            continue
        text = event.payload.get("text")
        if isinstance(text, str) and HEADING in text:
            return text
    return None


_PARTS = "; "


async def check_name_is_free(
    client: "Client", name: str | None, record: Automation | None = None
) -> None:
    """Refuse the name of another automation: two could not be told apart by it.

    The interface allows several of one name. `record` is the automation that gets the name.

    Raises:
        InvalidRequestError: the name is taken; `details` names the field.
        ClientError: refused or unreachable.
    """
    if name is None or (record is not None and record.name == name):
        return
    async for known in client.automations.all(search=name, scope="all"):
        if known.name == name and (record is None or known.id != record.id):
            raise InvalidRequestError(
                f"An automation has the name {name} already.",
                status=400,
                details="name",
                next_step="Choose another name.",
            )


async def save_draft(
    client: "Client",
    commands: "AutomationCommands",
    draft: AutomationDraft,
    record: Automation | None,
) -> Automation:
    """Create an automation, or change `record` to the draft.

    Raises:
        InvalidRequestError: a field is wrong; `details` has its name in the form.
        ClientError: refused or unreachable.
    """
    await check_name_is_free(client, draft.name, record)
    try:
        if record is None:
            return await commands.create(new_body(draft))
        body = change_body(draft, record)
        return record if body is None else await commands.change(record.id, body)
    except InvalidRequestError as error:
        raise in_the_form(error) from error
    except ValueError as error:
        raise InvalidRequestError(str(error), status=400, details="events") from error


def in_the_form(error: ResponseError) -> ResponseError:
    """Return a refusal whose details name the form's fields instead of the request's."""
    parts = (error.details or "").split(_PARTS)
    error.details = _PARTS.join(_placed(part) for part in parts)
    return error


def _placed(part: str) -> str:
    path, colon, message = part.partition(":")
    return f"{field_of(path)}{colon}{message}"


PAYLOAD, PULL_REQUEST, FORM = "payload", "pr", "form"
UNIX = "unix:"
BODY = """body='{"hello": "world"}'"""
_SIGNED = '$(printf %s "$body" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d" " -f1)'


@dataclass(frozen=True)
class Wrong:
    """An error, and the field that it belongs to."""

    field: str
    text: str


def trigger_of(payload: str, pull_request: str) -> TriggerAutomation | Wrong:
    """Return the body of the request, or the error in the typed values."""
    body = TriggerAutomation()
    if payload.strip():
        if len(payload.encode()) > PAYLOAD_BYTES:
            return Wrong(PAYLOAD, f"At most {PAYLOAD_BYTES >> 10} KB are taken.")
        try:
            body.payload = json.loads(payload)
        except RecursionError:
            return Wrong(PAYLOAD, "Nested too deeply.")
        except ValueError as error:
            return Wrong(PAYLOAD, f'Not valid JSON: {error}. Put text in quotes: "like this".')
    if pull_request.strip():
        repository, _, number = pull_request.strip().rpartition("#")
        if not repository or not (number.isascii() and number.isdecimal()) or int(number) < 1:
            return Wrong(PULL_REQUEST, "Write REPOSITORY#NUMBER, such as shop#12.")
        body.pr = PullRequestRef(repository=repository, number=int(number))
    return body


def refused(error: ClientError) -> Wrong:
    """Return a refusal with the field that it belongs to."""
    details = (error.details or "") if isinstance(error, ResponseError) else ""
    about, _, more = details.partition(":")
    text = " ".join(filter(None, (str(error), more.strip())))
    if isinstance(error, PayloadTooLargeError) or about.startswith("payload"):
        return Wrong(PAYLOAD, text)
    if about.startswith("pr"):
        return Wrong(PULL_REQUEST, text)
    if isinstance(error, LinkError):
        return Wrong(FORM, f"{error} It may have started; check the runs before retrying.")
    return Wrong(FORM, f"{text} {error.next_step}")


def webhook_path(automation: Automation) -> str | None:
    """Return the path of an automation's webhook at the service."""
    token = automation.webhook_token
    return f"/v1/automations/webhook/{token}" if token else None


def webhook_url(automation: Automation, endpoint: str) -> str | None:
    """Return the full URL of an automation's webhook; None when it has none, or only a socket.

    `endpoint` is this client's address of the service. An HTTP address is preferred: it works from here,
    perhaps through a proxy unknown to the service. Otherwise this is the service's own URL.
    """
    path = webhook_path(automation)
    if path is not None and "://" in endpoint:
        return f"{endpoint.rstrip('/')}{path}"
    return automation.webhook_url


def webhook_call(automation: Automation, endpoint: str) -> str | None:
    """Return the command that calls an automation's webhook; None when it has none.

    A signed one takes the secret from the variable `SECRET`. Without a URL the command uses the
    service's socket, which only works on its machine.
    """
    path = webhook_path(automation)
    if path is None:
        return None
    command = ["curl", "-X", "POST"]
    url = webhook_url(automation, endpoint)
    if url is None:
        command += ["--unix-socket", quote(endpoint.removeprefix(UNIX))]
        url = f"http://localhost{path}"
    command += ["-H", "'Content-Type: application/json'"]
    if automation.webhook_signed:
        command += ["-H", f'"{SIGNATURE_HEADER}: sha256={_SIGNED}"']
    return f'{BODY}; {" ".join(command)} -d "$body" {quote(url)}'
