"""What can be done to replicas, one or many, and when it makes no sense."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from quarterdeck.client.errors import ClientError
from quarterdeck.store.bulk import Outcome
from quarterdeck.store.commands import Commands
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import BY_STATE
from quarterdeck.tui.text import one_line
from quarterdeck.wire.replicas import WorkspaceStatus

MOST_NAMED = 6


@dataclass(frozen=True)
class Deed:
    """`done` is said of what it was done to. `unfit` says why it does nothing here, or nothing."""

    verb: str
    done: str
    unfit: Callable[[ReplicaState], str]
    command: Callable[[Commands, UUID], Awaitable[object]]


def _already(words: str, *statuses: WorkspaceStatus) -> Callable[[ReplicaState], str]:
    return lambda state: words if state.status in statuses else ""


def _awake_not(state: ReplicaState) -> str:
    match state.status:
        case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
            return "It sleeps already."
        case WorkspaceStatus.PREPARING:
            return "It is still being prepared."
        case WorkspaceStatus.ERROR:
            return "It has failed: nothing runs in it."
        case _:
            return ""


INTERRUPT = Deed(
    "Interrupt",
    "interrupted",
    lambda state: "" if state.works else "Nothing is running in it.",
    Commands.interrupt,
)
SLEEP = Deed(
    "Put to sleep",
    "put to sleep",
    _awake_not,
    Commands.sleep,
)
ARCHIVE = Deed(
    "Archive",
    "archived",
    _already("It is archived already.", WorkspaceStatus.ARCHIVED),
    Commands.archive,
)
WAKE = Deed(
    "Wake",
    "woken",
    _already("It is awake already.", WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING),
    Commands.wake,
)
DELETE = Deed("Delete", "deleted", lambda state: "", Commands.delete)


_OF_KEYS = {"replica.sleep": SLEEP, "replica.wake": WAKE}


def pointless(states: list[ReplicaState]) -> set[str]:
    """Those of `BY_STATE` that would do nothing to any of these replicas."""
    return {id for id in BY_STATE if all(_OF_KEYS[id].unfit(state) for state in states)}


def names(states: list[ReplicaState]) -> str:
    """Who is meant, in words; of many the first ones and how many more."""
    named = [one_line(state.name) for state in states[:MOST_NAMED]]
    more = len(states) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def reasons(outcome: Outcome) -> list[tuple[list[ReplicaState], ClientError]]:
    """Who was refused, gathered by the reason: many refusals are told as one."""
    told: dict[str, tuple[list[ReplicaState], ClientError]] = {}
    for state, error in outcome.refused:
        told.setdefault(f"{error.title} {error}", ([], error))[0].append(state)
    return list(told.values())


def title(verb: str, states: list[ReplicaState]) -> str:
    """The question before it is done."""
    if len(states) == 1:
        return f"{verb} {one_line(states[0].name)}?"
    return f"{verb} {len(states)} replicas?"


def what_goes(states: list[ReplicaState]) -> str:
    """What is lost when they are deleted."""
    pairs = [state.changed_lines for state in states]
    added, removed = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    changes = f", with +{added} -{removed} changed lines" if added or removed else ""
    if len(states) == 1:
        whose = f"Its sandbox, files{changes}, terminals and history go for good. "
    else:
        whose = f"{names(states)}: their sandboxes, files{changes}, terminals and histories go for good. "
    return f"{whose}Your own checkout is not touched."
