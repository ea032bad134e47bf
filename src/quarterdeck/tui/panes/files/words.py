"""What the lines around the files say."""

from quarterdeck.store.files import FileFinder
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.wire.replicas import WorkspaceStatus

SEARCHING = "searching …"


def found_words(finder: FileFinder) -> str:
    """How many were found, and how far that can be trusted."""
    if finder.asked is None:
        return SEARCHING
    if finder.unsupported:
        return "the replica's engine is too old to list its files"
    count = len(finder.files)
    parts = [f"{count:,}{'+' if finder.has_more else ''} file{'' if count == 1 else 's'}"]
    if finder.refreshing:
        parts.append("refreshing …")
    elif finder.stale:
        parts.append(f"as of {_moment(finder)}, may have changed")
    if finder.truncated:
        parts.append("not all files are listed")
    return " · ".join(parts)


def _moment(finder: FileFinder) -> str:
    if finder.indexed_at is None:
        return "some time ago"
    return f"{finder.indexed_at.astimezone():%d %b %H:%M}"


def empty_words(finder: FileFinder) -> str:
    """What stands where no file was found."""
    if finder.asked is None:
        return ""
    return "No file matches." if finder.asked else "There are no files in its repositories."


def unreadable_words(state: ReplicaState | None) -> str:
    """Why no file can be read at this moment; empty when it should be possible."""
    match state.status if state else None:
        case None | WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return "It is being prepared: its files can be read in a moment."
        case WorkspaceStatus.ERROR:
            return keyed("It failed: {replica.wake} tries again, then its files can be read.")
        case status:
            return f"It is {status}: " + keyed(
                "{replica.wake} wakes it, then its files can be read."
            )
