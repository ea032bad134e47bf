"""Automations as a frozen cockpit shows them."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from quarterdeck.store.automation_state import AutomationState, RunPages
from quarterdeck.store.creation import CreationChoices
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.automation_runs import Execution
from quarterdeck.wire.automations import Automation
from quarterdeck.wire.environments import Environment
from quarterdeck.wire.repositories import Repository
from tests.tui_shell.frozen import START, FrozenCockpit

ENVIRONMENT = UUID(int=5000)


def add(app: FrozenCockpit, name: str, *runs: Execution, **fields: Any) -> AutomationState:
    """An automation with the runs that were read, newest first."""
    automations = app.app_state.automations
    record = Automation.model_validate(
        {
            "id": UUID(int=6000 + len(automations.states)),
            "organization_id": UUID(int=1),
            "name": name,
            "prompt": "Run the tests and say what fails.",
            "environment_id": ENVIRONMENT,
            "enabled": True,
            "created_at": START,
            "updated_at": START,
            **fields,
        }
    )
    history = RunPages(list(runs), 1, more=False, total=len(runs))
    state = AutomationState(record, runs[0] if runs else None, history)
    automations.states[record.id] = state
    automations.listed = automations.complete = app.app_state.changes.live = True
    for run in runs:
        run.automation_id = record.id
    return state


def run(number: int, status: str = "completed", minutes_ago: int = 0, **fields: Any) -> Execution:
    """A run that took 90 seconds."""
    at = START - timedelta(minutes=minutes_ago)
    ended = at + timedelta(seconds=90) if status in {"completed", "failed"} else None
    return Execution.model_validate(
        {
            "id": UUID(int=7000 + number),
            "automation_id": UUID(int=0),
            "organization_id": UUID(int=1),
            "triggered_at": at,
            "trigger_type": "cron",
            "trigger_payload": None,
            "status": status,
            "completed_at": ended,
            **fields,
        }
    )


def check(conclusion: str | None, title: str | None = None) -> dict[str, Any]:
    """A check as its run has it."""
    return {
        "id": "c1",
        "name": "nightly",
        "status": "reported" if conclusion else "open",
        "repository": "shop",
        "conclusion": conclusion,
        "title": title,
        "summary": "All of `tests` was run.\n\n- 214 passed\n- 2 failed" if title else None,
        "opened_at": START,
    }


def cron(schedule: str, zone: str = "UTC") -> dict[str, Any]:
    """Fields of an automation with a schedule."""
    config = {"schedule": schedule, "timezone": zone}
    return {
        "triggers": [{"type": "cron", "config": config}],
        "cron_expression": schedule,
        "cron_timezone": zone,
        "cron_next_fire_at": START + timedelta(hours=21),
    }


def fill(app: FrozenCockpit) -> None:
    """One of every standing."""
    replica = app.add("nightly-4fde5d73")
    add(
        app,
        "nightly",
        run(1, minutes_ago=5, workspace_id=replica.id, check=check("failure", "2 tests fail")),
        run(2, minutes_ago=24 * 60 + 5, check=check("success", "All passed")),
        run(3, "failed", 2 * 24 * 60, error="The engine did not start: no space left on device."),
        agent_provider="codex",
        model="gpt-5-codex",
        thinking_level="high",
        plan_mode=True,
        debounce_seconds=30,
        workspace_size="large",
        config={"skip_while_running": True},
        description="What broke since yesterday?",
        **cron("0 9 * * 1-5", "Europe/Berlin"),
    )
    reason = "Switched off after 5 failures in a row. The last: No route to the model."
    add(app, "triage", run(4, "failed", 60), enabled=False, disabled_reason=reason)
    add(
        app,
        "review",
        run(5, "running", 2, trigger_type="host-a", trigger_event="pull_request.opened"),
        triggers=[
            {
                "type": "host-a",
                "config": {"event": "pull_request.opened", "group_pr_events": True},
            }
        ],
    )
    add(app, "deploy-note", run(6, "failed", 90, error="exit 3"))
    add(
        app,
        "webhook",
        triggers=[{"type": "custom", "config": {}}],
        webhook_token="t0ken",
    )
    add(app, "old-idea", enabled=False)
    later = {**cron("0 0 1 1 *"), "cron_next_fire_at": START + timedelta(days=42)}
    add(app, "a-very-long-name-" + "x" * 60, **later)


def offered() -> CreationChoices:
    """What can be chosen."""
    common = {"organization_id": UUID(int=1), "created_at": START, "updated_at": START}
    shop = Environment.model_validate({"id": ENVIRONMENT, "name": "shop", **common})
    agents = [Agent(id="codex", name="Codex", available=True)]
    repository = Repository(id=UUID(int=5100), name="shop", url="/shop", default_branch="main")
    return CreationChoices([repository], [shop], agents)


def moment() -> datetime:
    """The present of the pictures."""
    return START
