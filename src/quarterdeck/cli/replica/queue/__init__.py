"""`qd replica queue`: the messages that wait for the running turn."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.replica.queue"

VERBS = {
    "ls": Verb(f"{_HERE}.ls", "List what waits, first to run first."),
    "rm": Verb(f"{_HERE}.rm", "Cancel messages that wait."),
    "clear": Verb(f"{_HERE}.clear", "Cancel everything that waits."),
    "move": Verb(f"{_HERE}.move", "Give a message another place."),
}


@click.group(name="queue", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """See and change what waits for the running turn, in every state of the replica.

    MESSAGE is a place in the queue, from 1, or an id or a prefix of one of
    at least four characters.
    """
