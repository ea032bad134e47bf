"""Which replicas the list shows: what a person typed, understood.

    flaky is:asks env:staging !from:automation sleeping

Words must all be found, in any order and case, in what a replica is called or in its state. A word with a known key looks at one thing only; `!`
before a word turns it round.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from quarterdeck.store.attention import WORDS
from quarterdeck.store.replicas import ReplicaState

Names = Mapping[UUID, str]
"""Environments' names by their ids."""


def _state(state: ReplicaState, _: Names) -> str:
    return f"{WORDS[state.attention]} {state.status}"


def _environment(state: ReplicaState, names: Names) -> str:
    wanted = state.record.environment_id
    return names.get(wanted, str(wanted)) if wanted is not None else ""


def _source(state: ReplicaState, _: Names) -> str:
    return state.record.source


def _agent(state: ReplicaState, _: Names) -> str:
    providers = {chat.record.provider for chat in state.chats.values()}
    return " ".join(sorted({state.record.coding_agent or "", *providers}))


def _repository(state: ReplicaState, _: Names) -> str:
    named = [f"{one.name} {one.url}" for one in state.record.repositories]
    branches = [one.branch or "" for one in state.record.repository_statuses]
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
}
"""What a word can ask for by name."""


@dataclass(frozen=True)
class Wish:
    """One word: what of a replica must hold it, or must not."""

    key: str
    text: str
    wanted: bool

    def met_by(self, state: ReplicaState, names: Names) -> bool:
        look = KEYS.get(self.key, _text)
        found = self.text in look(state, names).casefold()
        if not self.key:
            # Only from its beginning: what names are searched for is in the middle of many states.
            states = _state(state, names).split()
            found = found or any(word.startswith(self.text) for word in states)
        return found is self.wanted


@dataclass(frozen=True)
class Narrowing:
    """What is shown; without a word everything is."""

    wishes: tuple[Wish, ...] = ()

    @classmethod
    def of(cls, typed: str) -> "Narrowing":
        """Understands what was typed. Nothing is wrong: an unknown key is text like any other."""
        return cls(tuple(wish for word in typed.split() if (wish := _wish(word)) is not None))

    @property
    def needs_names(self) -> bool:
        """Whether environments' names make a difference."""
        return any(wish.key == "env" for wish in self.wishes)

    def shows(self, state: ReplicaState, names: Names) -> bool:
        return all(wish.met_by(state, names) for wish in self.wishes)


def _wish(word: str) -> Wish | None:
    bare = word.removeprefix("!")
    key, colon, rest = bare.partition(":")
    if not (colon and key in KEYS):
        key, rest = "", bare
    # A key without its text is still being typed.
    return Wish(key, rest.casefold(), wanted=bare == word) if rest else None
