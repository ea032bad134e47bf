"""`qd preview`: ports of a replica for its person to look at, from inside."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

VERBS = {
    "open": Verb("quarterdeck.cli.preview.open", "Let a port of this replica be looked at."),
    "close": Verb("quarterdeck.cli.preview.close", "Make it an ordinary port again."),
}


@click.group(name="preview", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Ports of this replica that can be looked at; for agents, inside a replica."""
