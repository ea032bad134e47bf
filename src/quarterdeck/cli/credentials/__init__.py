"""`qd credentials`: keys of the providers behind coding agents."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.credentials"

VERBS = {
    "ls": Verb(f"{_HERE}.ls", "Say which providers have a key."),
    "set": Verb(f"{_HERE}.set", "Set a key, read from stdin or asked for."),
    "rm": Verb(f"{_HERE}.rm", "Remove a key."),
}


@click.group(name="credentials", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Keys of the providers behind coding agents: your own, which come first, or everybody's.

    Without --organization it is your own key. A replica gets what is set when it starts.
    """
