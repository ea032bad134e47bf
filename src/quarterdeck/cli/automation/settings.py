"""Settings of an automation, from options and from TOML documents."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

import click

from quarterdeck.cli.errors import UsageError
from quarterdeck.cli.options import combined, environment_option, read_text
from quarterdeck.wire.automations import (
    CONCURRENCY_MOST,
    DEBOUNCE_MOST,
    DEBOUNCE_TIMES,
    MINUTES_MOST,
    RETENTION_DAYS_MOST,
    OnNewEvent,
    OnSuccess,
    Size,
    Trust,
)
from quarterdeck.wire.permissions import PushPolicy
from quarterdeck.wire.replicas import AUTO_STOP_LEAST, AUTO_STOP_MOST, LifecyclePolicy
from quarterdeck.wire.triggers import MergeRequestEvent, PullRequestEvent

OPTIONAL: dict[str, Any] = {
    "description": "",
    "agent_provider": "builtin",
    "model": "",
    "thinking_level": "medium",
    "goal_mode": False,
    "fast_mode": False,
    "debounce_seconds": 0,
    "debounce_max_seconds": 600,
    "max_minutes": 60,
    "concurrency": 1,
    "workspace_auto_stop_minutes": 60,
    "workspace_size": "small",
}
"""Settings that may be left out, each with an example value."""

KEYS = (
    "name",
    "description",
    "environment",
    "enabled",
    "prompt",
    "agent_provider",
    "model",
    "thinking_level",
    "plan_mode",
    "goal_mode",
    "fast_mode",
    "debounce_seconds",
    "debounce_max_seconds",
    "max_minutes",
    "concurrency",
    "on_new_event",
    "trust",
    "retention_days",
    "webhook_secret",
    "workspace_lifecycle_policy",
    "workspace_auto_stop_minutes",
    "workspace_size",
    "config",
    "triggers",
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def read_document(text: str, source: str) -> dict[str, Any]:
    """Return the settings in a document. `source` is what a person calls it.

    Raises:
        UsageError: not valid TOML, an unknown key, or a value of the wrong type.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as e:
        raise UsageError(f"{source} is not valid TOML: {e}.") from e
    for key in document:
        if key not in (*KEYS, "scope"):
            raise UsageError(f"{source}: {key}: unknown setting.{_suggestion(key)}")
    wrong = next(_shape_errors(document), None)
    if wrong is not None:
        raise UsageError(f"{source}: {wrong}")
    return document


def _shape_errors(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield errors of shape that names and options depend on; pydantic checks the rest."""
    if not isinstance(document.get("environment", ""), str):
        yield "environment: a name or an id."
    if not isinstance(document.get("config", {}), dict):
        yield "config: a table."
    triggers = document.get("triggers", [])
    if not isinstance(triggers, list):
        yield "triggers: tables."
        return
    for trigger in cast("list[Any]", triggers):
        if not isinstance(trigger, dict):
            yield "triggers: tables."
            return
        config = cast("dict[str, Any]", trigger).get("config", {})
        if not isinstance(config, dict):
            yield "triggers: config: a table."
            return
        if not isinstance(cast("dict[str, Any]", config).get("repositories", []), list):
            yield "triggers: repositories: a list of names."


def _suggestion(key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, KEYS, n=1)
    return f" Did you mean {near[0]}?" if near else ""


def write_document(settings: Mapping[str, Any]) -> str:
    """Return the settings as TOML, with those that are not set as comments."""
    return "\n".join(_lines(settings)) + "\n"


def _lines(settings: Mapping[str, Any]) -> Iterator[str]:
    yield "# Lines that begin with # are not set. A webhook_secret is never shown; add one to set it."
    for key in KEYS:
        value = settings.get(key)
        if key == "triggers":
            for trigger in cast("list[dict[str, Any]]", value or []):
                yield "\n[[triggers]]"
                yield from (
                    f"{_key(name)} = {toml_value(entry)}" for name, entry in trigger.items()
                )
        elif value is not None:
            yield f"{key} = {toml_value(value)}"
        elif key in OPTIONAL:
            yield f"# {key} = {toml_value(OPTIONAL[key])}"


def toml_value(value: Any) -> str:
    """Return a value as TOML; entries of tables that are null are left out, as it has no null.

    tomlkit loses carriage returns and first line ends of texts of several lines.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(map(toml_value, cast('list[Any]', value)))}]"
        case dict():
            entries = cast("dict[str, Any]", value).items()
            return f"{{{', '.join(f'{_key(k)} = {toml_value(v)}' for k, v in entries if v is not None)}}}"
        case _:
            return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _text(value: str) -> str:
    if "\n" not in value:
        return _quoted(value)
    inner = _escaped(value).replace('"""', '""\\"')
    return f'"""\n{inner[:-1]}\\""""' if inner.endswith('"') else f'"""\n{inner}"""'


def _quoted(value: str) -> str:
    inner = _escaped(value).replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'


def _escaped(value: str) -> str:
    plain = value.replace("\\", "\\\\")
    return _CONTROL.sub(lambda control: f"\\u{ord(control[0]):04x}", plain)


EVENTS = (*get_args(PullRequestEvent), *get_args(MergeRequestEvent))

setting_options = combined(
    click.option("--file", "file", metavar="FILE", help="Settings as TOML; - reads stdin."),
    click.option("--cron", metavar="CRON", help='Five fields, such as "0 9 * * 1-5".'),
    click.option("--timezone", metavar="ZONE", help="Time zone of the schedule; default: UTC."),
    click.option("--webhook", is_flag=True, help="Add a webhook."),
    click.option(
        "--on",
        "events",
        metavar="EVENT",
        type=click.Choice(EVENTS),
        multiple=True,
        help="pull_request. or merge_request. opened, synchronize, merged, closed, command.",
    ),
    click.option(
        "--repository",
        "repositories",
        metavar="NAME",
        multiple=True,
        help="With --on: only this one; may be repeated.",
    ),
    click.option("--description", metavar="TEXT"),
    click.option("--prompt", metavar="TEXT", help="The prompt."),
    click.option(
        "--prompt-file", metavar="FILE", help="Read the prompt from a file; - reads stdin."
    ),
    environment_option("Environment of its replicas."),
    click.option(
        "--base", metavar="BRANCH|TAG|SHA", help='Start from this; "" for the default branch.'
    ),
    click.option(
        "--on-success",
        type=click.Choice([choice.value for choice in OnSuccess]),
        help="What happens to the commits of a successful run.",
    ),
    click.option(
        "--push",
        type=click.Choice([choice.value for choice in PushPolicy]),
        help="What runs may push to the source; default: as in their environment, else own_branch.",
    ),
    click.option(
        "--agent",
        metavar="AGENT",
        help="Default when created: the first that is ready, else builtin.",
    ),
    click.option("--model", metavar="MODEL"),
    click.option(
        "--debounce",
        metavar="SECONDS",
        type=click.IntRange(0, DEBOUNCE_MOST),
        help="Debounce: start after this time without another event.",
    ),
    click.option(
        "--debounce-max",
        metavar="SECONDS",
        type=click.IntRange(1, DEBOUNCE_MOST * DEBOUNCE_TIMES),
        help=f"Start at the latest after this time; default: {DEBOUNCE_TIMES} times --debounce.",
    ),
    click.option(
        "--max-minutes",
        metavar="MINUTES",
        type=click.IntRange(1, MINUTES_MOST),
        help="Time limit of a run.",
    ),
    click.option(
        "--concurrency",
        metavar="N",
        type=click.IntRange(1, CONCURRENCY_MOST),
        help="Runs at once; others wait.",
    ),
    click.option(
        "--on-new-event",
        type=click.Choice(get_args(OnNewEvent)),
        help="A new push to a pull request cancels its earlier run, or waits for its end.",
    ),
    click.option(
        "--trust",
        type=click.Choice(get_args(Trust)),
        help="Whose pull requests from forks run without approval.",
    ),
    click.option(
        "--retention-days",
        metavar="DAYS",
        type=click.IntRange(1, RETENTION_DAYS_MOST),
        help="Remove runs older than this.",
    ),
    click.option(
        "--webhook-secret-file",
        metavar="FILE",
        help="The secret that signs calls of its webhook; - reads stdin.",
    ),
    click.option(
        "--stop-after",
        metavar="MINUTES",
        type=click.IntRange(AUTO_STOP_LEAST, AUTO_STOP_MOST),
        help="Put idle replicas to sleep.",
    ),
    click.option("--size", type=click.Choice(get_args(Size))),
    click.option(
        "--policy",
        type=click.Choice(get_args(LifecyclePolicy)),
        help="What happens to the replica when it is done.",
    ),
    click.option(
        "--skip-while-running/--no-skip-while-running",
        default=None,
        help="Skip scheduled runs while one is active.",
    ),
    click.option(
        "--report/--no-report",
        default=None,
        help="Ask each run for a verdict, with qd check report.",
    ),
)
"""The options of `create` and `edit`, as arguments of `SettingOptions`."""

FIELDS = {
    "description": "description",
    "agent": "agent_provider",
    "model": "model",
    "debounce": "debounce_seconds",
    "debounce_max": "debounce_max_seconds",
    "max_minutes": "max_minutes",
    "concurrency": "concurrency",
    "on_new_event": "on_new_event",
    "trust": "trust",
    "retention_days": "retention_days",
    "stop_after": "workspace_auto_stop_minutes",
    "size": "workspace_size",
    "policy": "workspace_lifecycle_policy",
    "environment": "environment",
}
"""Options that are settings, and the names of these settings."""


@dataclass(frozen=True)
class SettingOptions:
    """The options as given; None, False and empty for those that were not."""

    file: str | None
    cron: str | None
    timezone: str | None
    webhook: bool
    events: tuple[str, ...]
    repositories: tuple[str, ...]
    description: str | None
    prompt: str | None
    prompt_file: str | None
    environment: str | None
    base: str | None
    on_success: str | None
    push: str | None
    agent: str | None
    model: str | None
    debounce: int | None
    debounce_max: int | None
    max_minutes: int | None
    concurrency: int | None
    on_new_event: str | None
    trust: str | None
    retention_days: int | None
    webhook_secret_file: str | None
    stop_after: int | None
    size: str | None
    policy: str | None
    skip_while_running: bool | None
    report: bool | None

    def settings(self) -> dict[str, Any]:
        """Return the given settings, except triggers.

        Raises:
            UsageError: the prompt is given twice, or a file cannot be read.
        """
        if self.prompt is not None and self.prompt_file is not None:
            raise UsageError("Give one of --prompt and --prompt-file.")
        settings = {name: getattr(self, option) for option, name in FIELDS.items()}
        settings["prompt"] = read_text(self.prompt_file) if self.prompt_file else self.prompt
        if self.webhook_secret_file:
            settings["webhook_secret"] = read_text(self.webhook_secret_file).rstrip("\r\n")
        return {name: value for name, value in settings.items() if value is not None}

    def config(self) -> dict[str, bool | str | None]:
        """Return the given settings of `config`."""
        options = {
            "skip_while_running": self.skip_while_running,
            "report": self.report,
            "on_success": self.on_success,
            "push": self.push,
        }
        config: dict[str, bool | str | None] = {
            name: value for name, value in options.items() if value is not None
        }
        if self.base is not None:
            config["base"] = self.base or None
        return config


Trigger = dict[str, Any]
WEBHOOK = "webhook"
"""The name of the trigger `custom` in the command line."""


def merge_triggers(
    there: Sequence[Trigger], given: SettingOptions, without: Sequence[str] = ()
) -> list[Trigger] | None:
    """Return the new triggers; None when no option concerns triggers.

    Raises:
        UsageError: options that need others, or that name a trigger that does not exist.
    """
    if given.repositories and not given.events:
        raise UsageError("--repository needs --on.")
    triggers = [trigger for trigger in there if name_of(trigger) not in without]
    missing = set(without) - {name_of(trigger) for trigger in there}
    if missing:
        raise UsageError(f"There is no trigger {min(missing)!r}.")
    if given.cron is not None or given.timezone is not None:
        triggers = _replace_trigger(triggers, _cron(triggers, given))
    if given.webhook and not any(name_of(trigger) == WEBHOOK for trigger in triggers):
        triggers.append({"type": "custom", "config": {}})
    for event in given.events:
        triggers = _replace_trigger(triggers, _event(triggers, event, given.repositories))
    changed = without or given.cron or given.timezone or given.webhook or given.events
    return triggers if changed else None


def name_of(trigger: Trigger) -> str:
    """Return the name of a trigger in its automation: `cron`, `webhook`, or an event."""
    match trigger.get("type"):
        case "host-a" | "host-b":
            return str(trigger.get("config", {}).get("event"))
        case "custom":
            return WEBHOOK
        case other:
            return str(other)


def _replace_trigger(there: list[Trigger], trigger: Trigger) -> list[Trigger]:
    """Return the triggers with one replaced by name, or added at the end."""
    names = [name_of(known) for known in there]
    if name_of(trigger) not in names:
        return [*there, trigger]
    place = names.index(name_of(trigger))
    return [*there[:place], trigger, *there[place + 1 :]]


def _config(there: Sequence[Trigger], name: str) -> dict[str, Any]:
    configs = [trigger.get("config") for trigger in there if name_of(trigger) == name]
    return dict(configs[0] or {}) if configs else {}


def _cron(there: Sequence[Trigger], given: SettingOptions) -> Trigger:
    config = dict(_config(there, "cron"))
    if given.cron is None and not config:
        raise UsageError("--timezone needs --cron.")
    if given.cron is not None:
        config["schedule"] = given.cron
    if given.timezone is not None:
        config["timezone"] = given.timezone
    return {"type": "cron", "config": config}


def _event(there: Sequence[Trigger], event: str, repositories: Sequence[str]) -> Trigger:
    config = {**_config(there, event), "event": event}
    if repositories:
        config["repositories"] = list(repositories)
    return {"type": "host-a" if event.startswith("pull_request.") else "host-b", "config": config}
