"""`qd keys`: API keys, one's own or the organization's."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.keys"

VERBS = {
    "ls": Verb(f"{_HERE}.ls", "List keys."),
    "create": Verb(f"{_HERE}.create", "Make a key and print it, once."),
    "rm": Verb(f"{_HERE}.rm", "Take keys away, at once."),
}


@click.group(name="keys", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Make, list and take away API keys: your own, or with --organization everybody's."""
