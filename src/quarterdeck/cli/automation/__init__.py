"""`qd automation`: agents that run on schedules and events."""

import click

from quarterdeck.cli.program import LazyGroup, Verb

_HERE = "quarterdeck.cli.automation"

VERBS = {
    "ls": Verb(f"{_HERE}.automations", "List automations.", "ls"),
    "create": Verb(f"{_HERE}.definition", "Create an automation.", "create"),
    "show": Verb(f"{_HERE}.automations", "Show an automation and its next runs.", "show"),
    "edit": Verb(f"{_HERE}.definition", "Edit by option, or in $EDITOR.", "edit"),
    "enable": Verb(f"{_HERE}.automations", "Switch automations on.", "enable"),
    "disable": Verb(f"{_HERE}.automations", "Switch automations off; runs go on.", "disable"),
    "run": Verb(f"{_HERE}.runs", "Start a run now.", "run"),
    "runs": Verb(f"{_HERE}.runs", "List the runs of an automation.", "runs"),
    "retry": Verb(f"{_HERE}.runs", "Run a failed run again, in a new replica.", "retry"),
    "approve": Verb(f"{_HERE}.runs", "Let a run start that waits for approval.", "approve"),
    "cancel": Verb(f"{_HERE}.runs", "Stop a run.", "cancel"),
    "rotate": Verb(f"{_HERE}.automations", "Give a webhook a new token.", "rotate"),
    "rm": Verb(f"{_HERE}.automations", "Delete automations with their runs.", "rm"),
}


@click.group(name="automation", cls=LazyGroup, verbs=VERBS)
def automation() -> None:
    """Manage automations: agents that run on schedules and events.

    AUTOMATION is a name, an id, or a prefix of one that fits one automation only.
    """
