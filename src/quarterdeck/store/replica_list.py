"""The list of replicas: its filter, and actions on several replicas.

    flaky is:asking env:staging service:work !from:automation sleeping

All words must match, in any order and case, the names of a replica or its state. A word with a known
key matches only that value; `!` before a word negates it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from quarterdeck.client.errors import ClientError
from quarterdeck.store.list_view import Names
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.status import WORDS


def _state(state: ReplicaState, _: Names) -> str:
    return f"{WORDS[state.attention]} {state.status}"


def _environment(state: ReplicaState, names: Names) -> str:
    wanted = state.record.environment_id
    return names.get(wanted, str(wanted)) if wanted is not None else ""


def _source(state: ReplicaState, _: Names) -> str:
    return state.record.source


def _service(state: ReplicaState, _: Names) -> str:
    return state.service


def _agent(state: ReplicaState, _: Names) -> str:
    providers = {chat.record.provider for chat in state.chats.values()}
    return " ".join(sorted({state.record.coding_agent or "", *providers}))


def _repository(state: ReplicaState, _: Names) -> str:
    named = [f"{repository.name} {repository.url}" for repository in state.record.repositories]
    branches = [status.branch or "" for status in state.record.repository_statuses]
    return " ".join([*named, *branches])


def _text(state: ReplicaState, names: Names) -> str:
    chats = [chat.record.title or "" for chat in state.chats.values()]
    return " ".join([state.name, _repository(state, names), *chats])


KEYS: dict[str, Callable[[ReplicaState, Names], str]] = {
    "is": _state,
    "env": _environment,
    "from": _source,
    "agent": _agent,
    "repo": _repository,
    "service": _service,
}
"""Values that a word can match by key."""


class FilterTerm(NamedTuple):
    """One word that a value of a replica must contain, or must not."""

    key: str
    text: str
    wanted: bool

    def met_by(self, state: ReplicaState, names: Names) -> bool:
        read = KEYS.get(self.key, _text)
        matches = self.text in read(state, names).casefold()
        if not self.key:
            # Only prefixes of a state: many names would match inside one.
            states = _state(state, names).split()
            matches = matches or any(word.startswith(self.text) for word in states)
        return matches is self.wanted


class ReplicaFilter(NamedTuple):
    """The filter of the list; without words everything is shown."""

    terms: tuple[FilterTerm, ...] = ()

    @classmethod
    def of(cls, typed: str) -> "ReplicaFilter":
        """Parse typed text. Nothing is invalid: a word with an unknown key is plain text."""
        return cls(tuple(term for word in typed.split() if (term := _term(word)) is not None))

    @property
    def needs_names(self) -> bool:
        """Whether the names of environments are needed."""
        return any(term.key == "env" for term in self.terms)

    def shows(self, state: ReplicaState, names: Names) -> bool:
        return all(term.met_by(state, names) for term in self.terms)


def _term(word: str) -> FilterTerm | None:
    bare = word.removeprefix("!")
    key, colon, rest = bare.partition(":")
    if not (colon and key in KEYS):
        key, rest = "", bare
    # A key without its text is still being typed.
    return FilterTerm(key, rest.casefold(), wanted=bare == word) if rest else None


AT_ONCE = 6
"""Replicas handled at the same time: packing and stopping use the service's machine."""


@dataclass
class BulkOutcome:
    """The result of an action on several replicas."""

    done: list[ReplicaState] = field(default_factory=list[ReplicaState])
    refused: list[tuple[ReplicaState, ClientError]] = field(
        default_factory=list[tuple[ReplicaState, ClientError]]
    )


async def on_each(
    states: Iterable[ReplicaState], command: Callable[[UUID], Awaitable[object]]
) -> BulkOutcome:
    """Run a command on every replica, a few at a time; a refusal does not stop the others."""
    outcome = BulkOutcome()
    room = asyncio.Semaphore(AT_ONCE)

    async def run(state: ReplicaState) -> None:
        async with room:
            try:
                await command(state.id)
            except ClientError as error:
                outcome.refused.append((state, error))
            else:
                outcome.done.append(state)

    async with asyncio.TaskGroup() as group:
        for state in states:
            group.create_task(run(state))
    return outcome
