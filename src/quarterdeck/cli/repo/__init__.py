"""`qd repo`: connected repositories, and sets of them."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.repo"

VERBS = {
    "ls": Verb(f"{_HERE}.ls", "List repositories."),
    "add": Verb(f"{_HERE}.add", "Connect a git URL or a local path."),
    "rm": Verb(f"{_HERE}.rm", "Disconnect repositories."),
    "sets": Verb(f"{_HERE}.sets", "Sets of repositories: list, create, remove."),
}


@click.group(name="repo", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Repositories that environments put into replicas. REPOSITORY is a name or an id."""
