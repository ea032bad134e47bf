"""`qd replica canvas`: the files that agents produce."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.replica.canvas"

VERBS = {
    "ls": Verb(f"{_HERE}.ls", "List the files of the canvas."),
    "get": Verb(f"{_HERE}.get", "Print a file, or write it to disk."),
    "put": Verb(f"{_HERE}.put", "Put a file there."),
}


@click.group(name="canvas", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """List, get and put the files that agents produce: plans, reports, pictures."""
