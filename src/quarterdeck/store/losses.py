"""What ends or is lost when replicas are interrupted, put to sleep, archived, rewound or deleted: sentences for a person."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.text import name_line, one_line

if TYPE_CHECKING:
    from quarterdeck.store.changes_diff import FileChange
    from quarterdeck.wire.git import Checkpoint

MOST_NAMED = 6


def names(states: Sequence[ReplicaState]) -> str:
    """Return the names of replicas: the first ones, and how many more."""
    named = [name_line(state.full_name) for state in states[:MOST_NAMED]]
    more = len(states) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def turns_stopped(states: Sequence[ReplicaState]) -> str:
    """Return whose running turns end; empty for none."""
    working = [state for state in states if state.works]
    if not working:
        return ""
    return f"Stops the running turn{'' if len(working) == 1 else 's'} of {names(working)}."


def what_stops(states: Sequence[ReplicaState]) -> str:
    """Return which turns, and which programs in terminals, end with the processes; empty for none."""
    busy = [state for state in states if state.programs]
    lines = [turns_stopped(states), *map(_programs_stopped, busy[:MOST_NAMED])]
    if more := busy[MOST_NAMED:]:
        lines.append(f"Stops programs in terminals of {names(more)}.")
    return "\n".join(filter(None, lines))


def _programs_stopped(state: ReplicaState) -> str:
    programs = ", ".join(map(one_line, state.programs))
    what = "a program in a terminal" if len(state.programs) == 1 else "programs in terminals"
    return f"Stops {what} of {name_line(state.full_name)}: {programs}."


def work_words(states: Sequence[ReplicaState]) -> str:
    """Return the work that exists in these replicas alone; empty for none."""
    seen = [status for state in states for status in state.record.repository_statuses]
    commits = sum(one.unpushed or 0 for one in seen)
    files = sum(one.uncommitted.files if one.uncommitted else 0 for one in seen)
    parts = [f"{commits} {'commit' if commits == 1 else 'commits'} never pushed"] if commits else []
    parts += [f"{files} {'file' if files == 1 else 'files'} not committed"] if files else []
    return ", ".join(parts)


def what_rests(states: Sequence[ReplicaState]) -> str:
    """Return what a user should know before they are archived; empty for nothing."""
    parts = [stopped] if (stopped := what_stops(states)) else []
    if words := work_words(states):
        whose = [state for state in states if work_words([state])]
        them = "it" if len(whose) == 1 else "them"
        parts.append(
            f"{names(whose)}: {words}. Archiving keeps {them}; to push, wake {them} first."
        )
    return "\n".join(parts)


def what_rewinds(
    checkpoint: "Checkpoint", changes: "tuple[Sequence[FileChange], bool] | None", *, chat: bool
) -> str:
    """Return what a rewind of the files takes back.

    Args:
        changes: from `Commands.changes_since`.
        chat: whether the agent is informed.
    """
    repositories = ", ".join(one_line(name) for name in sorted(checkpoint.commits))
    informed = "is informed with your next message" if chat else "is not informed"
    return (
        f"Restores the files and branches of {repositories} to the start of this turn.\n"
        f"{_changes_words(changes)}\n"
        "Later commits and changes are removed; ignored files are kept.\n"
        f"The agent {informed}.\n"
        "This can be undone."
    )


def _changes_words(found: "tuple[Sequence[FileChange], bool] | None") -> str:
    changes, is_cut = found or ((), True)
    if not changes:
        unknown = "The changes that it takes back could not be read."
        return unknown if is_cut else "No file has changed since then."
    added, removed = sum(one.added for one in changes), sum(one.removed for one in changes)
    named = ", ".join(one_line(one.path) for one in changes[:MOST_NAMED])
    more = f" and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
    least = "at least " if is_cut else ""
    return f"Takes back {least}+{added} -{removed} in {named}{more}."


def what_goes(states: Sequence[ReplicaState]) -> str:
    """Return a sentence about the work that is lost when they are deleted."""
    pairs = [state.changed_lines for state in states]
    added, removed = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    lines = f"+{added} -{removed} changed lines" if added or removed else ""
    inside = ", ".join(filter(None, (lines, work_words(states))))
    changes = f" ({inside})" if inside else ""
    if len(states) == 1:
        whose = f"This permanently deletes the sandbox, files{changes}, terminals and history. "
    else:
        whose = f"This permanently deletes {names(states)}: sandboxes, files{changes}, terminals and histories. "
    return f"{whose}Your local checkout is not affected."
