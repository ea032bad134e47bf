"""What a terminal pane says when there is no terminal to show."""

from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.replicas import WorkspaceStatus

PREFIX_HELP = "ctrl+g: l list  1 chat  c new  n next  x close  ctrl+g itself"
OPENING = "Opening a terminal …"
NONE_OPEN = "No terminal is open. enter opens one, escape goes to the list."


def ended_words(code: int | None) -> str:
    """What the line above a shell that ended says."""
    told = "" if code is None else f" ({code})"
    return f"ended{told}: enter opens another, x closes"


def failed_words(problem: str) -> str:
    """A terminal could not be opened."""
    return f"No terminal could be opened: {problem}\n\nenter tries again, escape goes to the list."


def inactive_words(state: ReplicaState) -> str:
    """Why a replica has no terminals now; empty when it can have some."""
    match state.status:
        case WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return "The replica is being prepared. A terminal opens as soon as it is active."
        case WorkspaceStatus.ERROR:
            return "The replica failed, so it has no terminals. The chat (1) says why.\n\nw tries again."
        case status:
            return (
                f"The replica is {status}: its terminals ended, its files are kept.\n\n"
                "w wakes it, and a new terminal opens then."
            )
