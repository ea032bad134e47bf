"""The fields of the form of an automation: what a person is told of each."""

from collections.abc import Sequence

from quarterdeck.store.automation_draft import EVENTS
from quarterdeck.tui.forms.kit.spec import Field, Kind

_EVENTS = [(event.replace("_", " ").replace(".", " "), event) for event in EVENTS]
AGENT = "the service's choice"

FIELDS: Sequence[Field] = (
    Field("name"),
    Field("environment_id", "Environment", "What its replicas are made from.", kind=Kind.CHOICE),
    Field("agent_provider", "Agent", kind=Kind.CHOICE, none=AGENT),
    Field("model", placeholder="the agent's own choice"),
    Field("prompt", "What the agent is told", kind=Kind.LINES, rows=5, trimmed=False),
    Field(
        "schedule",
        help="minute hour day month weekday; 0 9 * * 1-5 is at nine on working days.",
        placeholder="0 9 * * 1-5, or empty",
    ),
    Field("timezone", "Zone", "In which the schedule is read, such as Europe/Paris."),
    Field("webhook", help="A URL of its own, with a token; whoever has it can start a run."),
    Field("events", "On events", "Of pull requests and merge requests.", options=_EVENTS),
    Field(
        "repository_ids",
        "Repositories",
        "Events of these alone; of none: of those that the environment is bound to.",
        kind=Kind.CHOICES,
    ),
    Field(
        "group_pr_events",
        "Group",
        "A later event of the same pull request goes to the replica that works on it.",
    ),
    Field("plan_mode", "Plan mode", "The agent plans before it works.", folded=True),
    Field("goal_mode", "Goal mode", none="as the agent has it", folded=True),
    Field("fast_mode", "Fast mode", none="as the agent has it", folded=True),
    Field("thinking_level", "Thinking", none="as the agent has it", folded=True),
    Field("description", folded=True),
    Field(
        "debounce_seconds",
        "Debounce",
        "A burst of events is one run, after so many seconds without another.",
        folded=True,
    ),
    Field(
        "skip_while_running",
        "No overlap",
        "A moment of the schedule is left out while a run is in progress.",
        folded=True,
    ),
    Field(
        "excluded_actors",
        "Events of these people start nothing",
        rows=3,
        folded=True,
    ),
    Field("check", help="A run of an event opens a check, which the agent reports.", folded=True),
    Field("report", "Verdict", "Runs without a pull request are asked for one too.", folded=True),
    Field("workspace_lifecycle_policy", "When done", folded=True),
    Field("workspace_size", "Size", none="the service's choice", folded=True),
    Field(
        "workspace_auto_stop_minutes",
        "Stops after",
        "So many idle minutes, then its replica sleeps.",
        placeholder="minutes",
        folded=True,
    ),
    Field("enabled", help="Off: its schedule and events start nothing.", folded=True),
)
SCOPE = Field(
    "scope",
    help="Whose it is; that cannot be changed later.",
    options=(("the organization's", "org"), ("yours alone", "user")),
    folded=True,
)
