"""`qd check`: checks of pull requests, from inside a replica."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

VERBS = {
    "report": Verb("quarterdeck.cli.check.report", "Report the verdict of this run."),
}


@click.group(name="check", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Checks of pull requests; for agents, inside a replica."""
