"""`qd env`: environments and what they put into replicas."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.env"

VERBS = {
    "ls": Verb(f"{_HERE}.ls", "List environments."),
    "create": Verb(f"{_HERE}.create", "Make an environment."),
    "show": Verb(f"{_HERE}.show", "Show one with all its parts."),
    "edit": Verb(f"{_HERE}.edit", "Change what is given of one."),
    "rm": Verb(f"{_HERE}.rm", "Delete environments with their parts."),
    "variables": Verb(f"{_HERE}.variables", "Variables: list, set, import, remove."),
    "files": Verb(f"{_HERE}.files", "Files: list, print, put, remove."),
    "skills": Verb(f"{_HERE}.skills", "Skills: search, list, add, remove."),
    "mcp": Verb(f"{_HERE}.mcp", "MCP servers: list, set, remove."),
    "hooks": Verb(f"{_HERE}.hooks", "Warm and start hooks: print, save."),
    "test": Verb(f"{_HERE}.hook_tests", "Run a hook in a replica of its own."),
    "pool": Verb(f"{_HERE}.pool", "The warm pool: show, switch on or off."),
}


@click.group(name="env", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Environments: what replicas are made from.

    ENVIRONMENT is a name, an id, or `global` for the one that applies to every replica.
    """
