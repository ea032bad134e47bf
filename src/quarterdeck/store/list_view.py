"""How the list of replicas is arranged: pinned ones, order, groups. It is kept on this machine."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import BaseModel

if TYPE_CHECKING:
    from quarterdeck.store.replicas import ReplicaState

Names = Mapping[UUID, str]
"""Environments' names by their ids."""


class SortKey(StrEnum):
    """What the list is sorted by; its words stand above the columns of the table."""

    NAME = "name"
    ATTENTION = "state"
    SERVICE = "service"
    AGENT = "agent"
    BRANCH = "repo@branch"
    CHANGES = "changes"
    AHEAD = "ahead"
    PULL = "pr"
    CONTEXT = "ctx"
    AGE = "age"


class Grouping(StrEnum):
    """What the list is grouped by."""

    NONE = "none"
    REPOSITORY = "repository"
    ENVIRONMENT = "environment"
    SOURCE = "source"
    SERVICE = "service"


class ListView(BaseModel, defer_build=True):
    """The arrangement. By state, those that need the person come first."""

    table: bool = False
    """Whether the list has the whole width, in columns, while it has the focus."""
    sort: SortKey = SortKey.ATTENTION
    reverse: bool = False
    group: Grouping = Grouping.NONE
    pinned: list[UUID] = []
    wider: int = 0
    """Columns that the list has next to a replica in addition to the usual ones."""

    def sort_by(self, step: int, *, several: bool = False) -> dict[str, Any]:
        """Return the change to the column that is `step` after this one, in its usual direction.

        `several` is whether several services are shown, here and below.
        """
        columns = [key for key in SortKey if several or key is not SortKey.SERVICE]
        at = columns.index(self.sort) if self.sort in columns else 0
        return {"sort": columns[(at + step) % len(columns)], "reverse": False}

    def next_group(self, *, several: bool = False) -> Grouping:
        """Return what the list is grouped by after this."""
        groupings = [one for one in Grouping if several or one is not Grouping.SERVICE]
        at = groupings.index(self.group) if self.group in groupings else -1
        return groupings[(at + 1) % len(groupings)]

    def ordered(self, states: "Iterable[ReplicaState]") -> "list[ReplicaState]":
        """Return replicas in their order. Those without a value come last, in either direction."""
        found = sorted(states, key=lambda state: state.sort_key())
        if self.sort is not SortKey.ATTENTION:
            value = _VALUES[self.sort]
            pairs = [(value(state), state) for state in found]
            turned = self.reverse is not (self.sort in _LARGEST_FIRST)
            pairs.sort(key=itemgetter(0), reverse=turned)
            found = [state for known, state in pairs if known]
            found += [state for known, state in pairs if not known]
        elif self.reverse:
            found.reverse()
        if self.pinned:
            pinned = set(self.pinned)
            found.sort(key=lambda state: state.id not in pinned)
        return self.grouped(found)

    def grouped(self, states: "Sequence[ReplicaState]") -> "list[ReplicaState]":
        """Return replicas with those of a group together; groups are in the order of their first ones."""
        if self.group is Grouping.NONE:
            return list(states)
        groups: dict[object, list[ReplicaState]] = {}
        for state in states:
            groups.setdefault(self.group_of(state), []).append(state)
        return [state for group in groups.values() for state in group]

    def group_of(self, state: "ReplicaState") -> UUID | str | None:
        """Return what names the group of a replica: an environment's id, or words."""
        if state.id in self.pinned:
            return PINNED
        match self.group:
            case Grouping.NONE:
                return None
            case Grouping.REPOSITORY:
                return state.repository_name or "no repository"
            case Grouping.ENVIRONMENT:
                return state.record.environment_id or "no environment"
            case Grouping.SOURCE:
                return state.record.source
            case Grouping.SERVICE:
                return state.service


PINNED = "Pinned"


def group_name(group: UUID | str | None, names: Names) -> str:
    """Return the words above a group."""
    return names.get(group, str(group)) if isinstance(group, UUID) else group or ""


def _urgency(state: "ReplicaState") -> int:
    """Return more for a pull request that asks for more, and 0 for none."""
    pull = state.pull_request
    if pull is None:
        return 1 if state.pull_request_urls else 0
    if pull.state != "open":
        return 2
    return {"failing": 5, "pending": 4}.get(pull.checks.state or "", 3)


_VALUES: "dict[SortKey, Callable[[ReplicaState], Any]]" = {
    SortKey.NAME: lambda state: state.name.casefold(),
    SortKey.SERVICE: lambda state: state.service.casefold(),
    SortKey.AGENT: lambda state: state.agent,
    SortKey.BRANCH: lambda state: state.repository_and_branch,
    SortKey.CHANGES: lambda state: sum(state.changed_lines),
    SortKey.AHEAD: lambda state: sum(state.distance),
    SortKey.PULL: _urgency,
    SortKey.CONTEXT: lambda state: state.context_percent or 0,
    SortKey.AGE: lambda state: state.active_at.timestamp(),
}
_LARGEST_FIRST = {
    SortKey.CHANGES,
    SortKey.AHEAD,
    SortKey.PULL,
    SortKey.CONTEXT,
    SortKey.AGE,
}
