"""`qd replica`: the verbs on replicas."""

import click

from quarterdeck.cli.program import LazyGroup, Verb

_HERE = "quarterdeck.cli.replica"
_GIT = f"{_HERE}.git"
_CHECKOUT = f"{_HERE}.checkout"

VERBS = {
    "ls": Verb(f"{_HERE}.listing", "List replicas.", "ls"),
    "create": Verb(
        f"{_HERE}.lifecycle",
        "Create a replica, by default of this directory's repository.",
        "create",
    ),
    "show": Verb(f"{_HERE}.listing", "Show one replica with its chats and repositories.", "show"),
    "send": Verb(
        f"{_HERE}.conversation", "Send a message to the agent; - reads it from stdin.", "send"
    ),
    "wait": Verb(f"{_HERE}.waiting", "Wait until a replica needs you.", "wait"),
    "watch": Verb(f"{_HERE}.events", "Print the transcript as it streams.", "watch"),
    "history": Verb(f"{_HERE}.events", "Print a chat's transcript.", "history"),
    "queue": Verb(f"{_HERE}.queue", "Show and edit the queue of a chat.", "queue"),
    "goal": Verb(f"{_HERE}.conversation", "See, set, pause or resume a chat's goal.", "goal"),
    "settings": Verb(
        f"{_HERE}.conversation", "Show or change an agent's mode, model and thinking.", "settings"
    ),
    "permissions": Verb(
        "quarterdeck.cli.permissions",
        "Show or change what agents may do without asking.",
        "permissions",
    ),
    "respond": Verb(f"{_HERE}.conversation", "Answer a question of the agent.", "respond"),
    "interrupt": Verb(f"{_HERE}.conversation", "Stop the running turn.", "interrupt"),
    "chats": Verb(f"{_HERE}.listing", "List the chats of a replica.", "chats"),
    "rename": Verb(f"{_HERE}.conversation", "Give a chat a title.", "rename"),
    "exec": Verb(f"{_HERE}.terminal", "Run a command in the workspace.", "execute"),
    "git": Verb(_GIT, "Show the state of the repositories.", "git"),
    "diff": Verb(_GIT, "Print the agent's changes as a patch.", "diff"),
    "commit": Verb(_GIT, "Commit changes in the replica.", "commit"),
    "update": Verb(_GIT, "Bring the base branch in.", "update"),
    "push": Verb(_GIT, "Push its branch to the source of the repository.", "push"),
    "fetch": Verb(_CHECKOUT, "Fetch its branch into the current repository.", "fetch"),
    "apply": Verb(_CHECKOUT, "Apply its changes to the files of your checkout.", "apply"),
    "merge": Verb(_CHECKOUT, "Merge its branch into the one you have checked out.", "merge"),
    "rewind": Verb(_GIT, "Restore the files as they were when a turn began.", "rewind"),
    "fork": Verb(
        f"{_HERE}.lifecycle", "Create another one with the same files and branches.", "fork"
    ),
    "path": Verb(_CHECKOUT, "Print where its files are on this machine.", "path"),
    "pr": Verb(_GIT, "Open, show or merge the pull request of its branch.", "pr"),
    "files": Verb(f"{_HERE}.files", "Search and read the files of the repositories.", "files"),
    "canvas": Verb(f"{_HERE}.files", "List, get and put the files that agents produce.", "canvas"),
    "hooks": Verb(f"{_HERE}.listing", "Show hook runs with their output.", "hooks"),
    "previews": Verb(f"{_HERE}.listing", "List previews with their URLs.", "previews"),
    "attach": Verb(f"{_HERE}.terminal", "Attach to a terminal in the sandbox.", "attach"),
    "sleep": Verb(f"{_HERE}.lifecycle", "Stop engines and keep the files.", "sleep"),
    "archive": Verb(
        f"{_HERE}.lifecycle", "Compress the files; a message restores them.", "archive"
    ),
    "wake": Verb(f"{_HERE}.lifecycle", "Start sleeping or failed replicas again.", "wake"),
    "forget": Verb(
        f"{_HERE}.lifecycle", "Remove the record of a replica whose service is lost.", "forget"
    ),
    "rm": Verb(f"{_HERE}.lifecycle", "Delete replicas with their files.", "rm"),
}


@click.group(name="replica", cls=LazyGroup, verbs=VERBS)
def replica() -> None:
    """Create and manage replicas.

    REPLICA is a name, an id, or a prefix of one that fits one replica only.
    """
