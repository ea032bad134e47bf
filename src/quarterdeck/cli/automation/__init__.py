"""`qd automation`: agents that run on schedules and events."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.automation"

VERBS = {
    "ls": Verb(f"{_HERE}.ls", "List automations."),
    "create": Verb(f"{_HERE}.create", "Make an automation."),
    "show": Verb(f"{_HERE}.show", "Show one, with the coming moments of its schedule."),
    "edit": Verb(f"{_HERE}.edit", "Change what is given of one, or all of it in an editor."),
    "enable": Verb(f"{_HERE}.enable", "Switch automations on."),
    "disable": Verb(f"{_HERE}.disable", "Switch automations off; runs go on."),
    "run": Verb(f"{_HERE}.run", "Begin a run by hand."),
    "runs": Verb(f"{_HERE}.runs", "List the runs of one."),
    "retry": Verb(f"{_HERE}.retry", "Run a failed run again, in a new replica."),
    "rm": Verb(f"{_HERE}.rm", "Delete automations with their runs."),
}


@click.group(name="automation", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Automations: agents that run on schedules and events.

    AUTOMATION is a name, an id, or a prefix of one that fits one automation only.
    """
