"""What there is to say of one automation, as lines."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from quarterdeck.store.automation_schedule import coming_of
from quarterdeck.store.automation_states import AutomationState, Standing
from quarterdeck.transcript.clean import clean
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.automations.pieces import Line
from quarterdeck.tui.automations.words import (
    STANDINGS,
    both_clocks,
    last_words,
    trigger_words,
    webhook_path,
)
from quarterdeck.wire.automations import Automation

MASK = "/v1/automations/webhook/••••••••"


@dataclass(frozen=True)
class Names:
    """What ids are called; those that are not known are shown as ids."""

    environments: dict[UUID, str] = field(default_factory=dict[UUID, str])
    repositories: dict[UUID, str] = field(default_factory=dict[UUID, str])

    def environment(self, id: UUID) -> str:
        return self.environments.get(id, str(id)[:8])


def facts_of(
    state: AutomationState, names: Names, now: datetime, *, revealed: bool = False
) -> Iterator[Line]:
    """All of it: how it stands, triggers, coming runs, settings, prompt."""
    record = state.record
    yield Line(state.name, bold=True)
    yield Line(_standing(state, now), STANDINGS[state.standing].color)
    if state.trouble:
        yield Line(state.trouble, "error")
    if record.description:
        yield Line(record.description, "muted")
    yield Line()
    yield from _triggers(record, names, revealed)
    yield from _coming(record, now)
    yield Line()
    yield from _settings(record, names)
    yield Line()
    yield Line("Prompt", "primary", bold=True)
    for line in clean(record.prompt).splitlines():
        yield Line(line, hard=True)


def _standing(state: AutomationState, now: datetime) -> str:
    mark, last = STANDINGS[state.standing], last_words(state, now)
    if state.standing == Standing.RUNNING:
        return f"{mark.sign} {last}"
    return f"{mark.sign} {mark.word} · {'last ' if state.newest else ''}{last}"


def _triggers(record: Automation, names: Names, revealed: bool) -> Iterator[Line]:
    yield Line("Triggers", "primary", bold=True)
    if not record.triggers:
        yield Line(keyed("None: it runs when a person begins a run ({automation.run})."), "muted")
    for trigger in record.triggers:
        label = {"cron": "schedule", "custom": "webhook"}.get(trigger.type, trigger.type)
        if trigger.type == "custom" and record.webhook_token:
            path = webhook_path(record) if revealed else MASK
            shows = "" if revealed else "{automation.reveal} shows, "
            keys = keyed(shows + "{automation.copy} copies")
            yield Line(f"POST {path}  ({keys})", label=label)
        else:
            yield Line(trigger_words(trigger, names.repositories), label=label)


def _coming(record: Automation, now: datetime) -> Iterator[Line]:
    if record.cron_expression is None:
        return
    yield Line()
    off = "" if record.enabled else " if it were on"
    yield Line(f"Next runs{off}", "primary", bold=True)
    found = coming_of(record, now)
    if found.problem:
        yield Line(found.problem, "error")
    for moment in found.moments:
        yield Line(both_clocks(moment, record.cron_timezone))


def _settings(record: Automation, names: Names) -> Iterator[Line]:
    yield Line("Configuration", "primary", bold=True)
    yield Line(names.environment(record.environment_id), label="environment")
    agent = [record.agent_provider or "the service's choice", record.model, record.thinking_level]
    yield Line(" · ".join(filter(None, agent)), label="agent")
    for label, value in _more(record):
        if value:
            yield Line(value, label=label)


def _more(record: Automation) -> Iterator[tuple[str, str | None]]:
    modes = (("plan", record.plan_mode), ("goal", record.goal_mode), ("fast", record.fast_mode))
    yield "modes", ", ".join(name for name, on in modes if on)
    debounce, stop = record.debounce_seconds, record.workspace_auto_stop_minutes
    yield "debounce", f"{debounce} s: a burst of events is one run" if debounce else None
    policy = record.workspace_lifecycle_policy
    yield "policy", None if policy == "default" else policy.replace("_", " ")
    yield "size", record.workspace_size
    yield "stops", f"after {stop} idle minutes" if stop else None
    skips = record.config.get("skip_while_running")
    yield "overlap", "left out while a run is in progress" if skips else None
    yield "verdict", "asked of each run" if record.config.get("report") else None
    yield "scope", "yours alone" if record.user_id else "the organization's"
