"""`qd env`: environments and what they put into replicas."""

import click

from quarterdeck.cli.program import LazyGroup, Verb

_HERE = "quarterdeck.cli.env"

VERBS = {
    "ls": Verb(f"{_HERE}.environments", "List environments.", "ls"),
    "create": Verb(f"{_HERE}.environments", "Create an environment.", "create"),
    "show": Verb(f"{_HERE}.environments", "Show an environment with its contents.", "show"),
    "edit": Verb(f"{_HERE}.environments", "Edit an environment.", "edit"),
    "rm": Verb(f"{_HERE}.environments", "Delete environments with their parts.", "rm"),
    "variables": Verb(f"{_HERE}.parts", "Variables: list, set, import, remove.", "variables"),
    "files": Verb(f"{_HERE}.parts", "Files: list, print, put, remove.", "files"),
    "skills": Verb(f"{_HERE}.parts", "Skills: search, list, add, remove.", "skills"),
    "mcp": Verb(f"{_HERE}.parts", "MCP servers: list, set, remove.", "mcp"),
    "hooks": Verb(f"{_HERE}.parts", "Warm and start hooks: print, save.", "hooks"),
    "test": Verb(f"{_HERE}.parts", "Run a hook in a temporary replica.", "test_hook"),
    "pool": Verb(f"{_HERE}.environments", "The warm pool: show, switch on or off.", "pool"),
}


@click.group(name="env", cls=LazyGroup, verbs=VERBS)
def env() -> None:
    """Manage environments.

    ENVIRONMENT is a name, an id, or `global` for the one that applies to every replica.
    """
