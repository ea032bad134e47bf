"""`qd replica`: the verbs on replicas."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.replica"

VERBS = {
    "ls": Verb(f"{_HERE}.ls", "List replicas."),
    "create": Verb(f"{_HERE}.create", "Make a replica, by default of this directory's repository."),
    "show": Verb(f"{_HERE}.show", "Show one replica with its chats and repositories."),
    "send": Verb(f"{_HERE}.send", "Send a message to the agent; - reads it from stdin."),
    "watch": Verb(f"{_HERE}.watch", "Print the transcript as it streams."),
    "history": Verb(f"{_HERE}.history", "Print what was said and done in a chat."),
    "queue": Verb(f"{_HERE}.queue", "See and change what waits for the running turn."),
    "goal": Verb(f"{_HERE}.goal", "See, set, pause or resume a chat's goal."),
    "respond": Verb(f"{_HERE}.respond", "Answer a question of the agent."),
    "exec": Verb(f"{_HERE}.exec", "Run a command in the workspace."),
    "files": Verb(f"{_HERE}.files", "Search and read the files of the repositories."),
    "canvas": Verb(f"{_HERE}.canvas", "List, get and put the files that agents produce."),
    "hooks": Verb(f"{_HERE}.hooks", "Print what its hooks did."),
    "previews": Verb(f"{_HERE}.previews", "List the ports that can be looked at."),
    "attach": Verb(f"{_HERE}.attach", "Attach this terminal to one in the sandbox."),
    "sleep": Verb(f"{_HERE}.sleep", "Stop the engine and keep the files."),
    "archive": Verb(f"{_HERE}.archive", "Pack the files away; a message restores them."),
    "wake": Verb(f"{_HERE}.wake", "Start a sleeping or failed replica again."),
    "rm": Verb(f"{_HERE}.rm", "Delete replicas with their files."),
}


@click.group(name="replica", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Make, watch and command replicas.

    REPLICA is a name, an id, or a prefix of one that fits one replica only.
    """
