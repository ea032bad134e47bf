"""`qd replica files`: the files of the repositories."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.replica.files"

VERBS = {
    "search": Verb(f"{_HERE}.search", "Find files by name or path, best match first."),
    "cat": Verb(f"{_HERE}.cat", "Print a file, or write it to disk."),
}


@click.group(name="files", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Search and read the files of a replica's repositories."""
