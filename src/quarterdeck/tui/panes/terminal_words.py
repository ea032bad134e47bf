"""What a terminal pane says when there is no terminal to show."""

from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.terminal.core import Reading
from quarterdeck.tui.text import one_line
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.terminals import MAX_SESSIONS

OPENING = "Opening a terminal …"
MOST_OPEN = f"There are {MAX_SESSIONS} terminals, which is the most: close one first."
OFFER_SHOWN = 24
"""Characters of what a program wants to copy."""


def none_open_words() -> str:
    """There was one, and it was closed."""
    return keyed("No terminal is open. {terminal.again} opens one, {app.list} goes to the list.")


def reading_words(reading: Reading, back: int, needle: str, *, named: bool) -> str:
    """Where somebody is who reads; `named`: what is searched for stands nowhere else."""
    parts = ["marking"] if reading.marking else []
    if needle:
        found = f"{reading.match} of {reading.matches}" if reading.matches else "not found"
        parts.append(f"{one_line(needle)}: {found}" if named else found)
    parts = parts or ["reading"]
    parts.append(f"{back} lines back" if back else "at the end")
    return " · ".join(parts)


def link_words(address: str, openable: bool) -> str:
    """Asks what to do with a link; `address` is fit to be shown."""
    keys = keyed("{link.open} opens, {link.copy} copies" if openable else "{link.copy} copies")
    return f"{keys}: {address}"


def not_opened_words(opener: str) -> str:
    """A browser did not start."""
    return f"{opener} could not open it. Copy the address instead."


def offer_words(text: str, prefix: str) -> str:
    """Asks about what a program wants to copy."""
    shown = one_line(text)
    cut = shown if len(shown) <= OFFER_SHOWN else shown[: OFFER_SHOWN - 1] + "…"
    allow = keyed("{terminal.allow}")
    return f"{prefix} {allow} lets a program copy {len(text)} characters: {cut}"


def ended_words(code: int | None) -> str:
    """What the line above a shell that ended says."""
    told = "" if code is None else f" ({code})"
    return f"ended{told}: " + keyed("{terminal.again} opens another, {terminal.dismiss} closes")


def failed_words(problem: str) -> str:
    """A terminal could not be opened."""
    keys = keyed("{terminal.again} tries again, {app.list} goes to the list.")
    return f"No terminal could be opened: {problem}\n\n{keys}"


def inactive_words(state: ReplicaState) -> str:
    """Why a replica has no terminals now; empty when it can have some."""
    match state.status:
        case WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return "The replica is being prepared. A terminal opens as soon as it is active."
        case WorkspaceStatus.ERROR:
            return keyed(
                "The replica failed, so it has no terminals. The chat ({tab.chat}) says why.\n\n"
                "{replica.wake} tries again."
            )
        case status:
            return f"The replica is {status}: its terminals ended, its files are kept.\n\n" + keyed(
                "{replica.wake} wakes it, and a new terminal opens then."
            )
