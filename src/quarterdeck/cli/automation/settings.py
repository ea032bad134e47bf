"""Options of an automation's settings, for making and for changing one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import click

from quarterdeck.cli.env.inputs import read_text
from quarterdeck.cli.errors import UsageFault
from quarterdeck.wire.automations import DEBOUNCE_MOST, Size
from quarterdeck.wire.replicas import AUTO_STOP_LEAST, AUTO_STOP_MOST, LifecyclePolicy
from quarterdeck.wire.triggers import MergeRequestEvent, PullRequestEvent

EVENTS = (*get_args(PullRequestEvent), *get_args(MergeRequestEvent))
_STOPS = click.IntRange(AUTO_STOP_LEAST, AUTO_STOP_MOST)

_OPTIONS = (
    click.option("--file", "file", metavar="FILE", help="Settings as TOML; - reads stdin."),
    click.option("--cron", metavar="CRON", help='Five fields, such as "0 9 * * 1-5".'),
    click.option("--timezone", metavar="ZONE", help="Of the schedule; default: UTC."),
    click.option("--webhook", is_flag=True, help="Give it a webhook of its own."),
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
    click.option("--prompt", metavar="TEXT", help="What the agent is told."),
    click.option("--prompt-file", metavar="FILE", help="Read it from here; - reads stdin."),
    click.option(
        "--env", "--environment", "environment", metavar="NAME", help="What replicas are made from."
    ),
    click.option("--agent", metavar="AGENT", help="Default: the service's choice."),
    click.option("--model", metavar="MODEL"),
    click.option(
        "--debounce",
        metavar="SECONDS",
        type=click.IntRange(0, DEBOUNCE_MOST),
        help="A burst of events is one run, after so long without another.",
    ),
    click.option("--stop-after", metavar="MINUTES", type=_STOPS, help="Idle ones are put to rest."),
    click.option("--size", type=click.Choice(get_args(Size))),
    click.option("--policy", type=click.Choice(get_args(LifecyclePolicy)), help="When it is done."),
    click.option(
        "--skip-while-running/--no-skip-while-running",
        default=None,
        help="Leave a moment of the schedule out while a run is in progress.",
    ),
    click.option(
        "--report/--no-report",
        default=None,
        help="Ask each run for a verdict, with qd check report.",
    ),
)

FIELDS = {
    "description": "description",
    "agent": "agent_provider",
    "model": "model",
    "debounce": "debounce_seconds",
    "stop_after": "workspace_auto_stop_minutes",
    "size": "workspace_size",
    "policy": "workspace_lifecycle_policy",
    "environment": "environment",
}
"""Options that are settings as they stand, and the names of these."""


@dataclass(frozen=True)
class Given:
    """What was given as options; None, False and nothing stand for what was not."""

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
    agent: str | None
    model: str | None
    debounce: int | None
    stop_after: int | None
    size: str | None
    policy: str | None
    skip_while_running: bool | None
    report: bool | None

    def settings(self) -> dict[str, Any]:
        """The settings that were given, but for triggers.

        Raises:
            UsageFault: the prompt is given twice, or its file cannot be read.
        """
        if self.prompt is not None and self.prompt_file is not None:
            raise UsageFault("Give one of --prompt and --prompt-file.")
        found = {name: getattr(self, option) for option, name in FIELDS.items()}
        found["prompt"] = read_text(self.prompt_file) if self.prompt_file else self.prompt
        return {name: value for name, value in found.items() if value is not None}

    def config(self) -> dict[str, bool]:
        """The finer settings that were given."""
        found = {"skip_while_running": self.skip_while_running, "report": self.report}
        return {name: value for name, value in found.items() if value is not None}


def setting_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what `create` and `edit` have in common; the function makes a `Given` of it."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
