"""What codex asks a person, as a desk takes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quarterdeck.agents.port import AgentError
from quarterdeck.agents.session.desk import Asked


@dataclass(frozen=True)
class Option:
    """One answer to choose."""

    id: str
    name: str
    kind: str = "allow_once"


@dataclass(frozen=True)
class Question:
    """One thing to decide. With `free`, a text is an answer as well; a secret one is not kept."""

    title: str
    options: Sequence[Option] = ()
    call: dict[str, Any] | None = None
    free: bool = False
    secret: bool = False

    @property
    def asked(self) -> Asked:
        """The question for a desk."""
        told = {
            "title": self.title,
            **({"toolCall": self.call} if self.call else {}),
            "options": [
                {"optionId": one.id, "name": one.name, "kind": one.kind} for one in self.options
            ],
            **({"acceptsText": True} if self.free else {}),
            **({"secret": True} if self.secret else {}),
        }
        return Asked(told, [one.id for one in self.options], self._check, self.secret)

    def _check(self, _: str) -> None:
        if not self.free:
            offered = ", ".join(one.name for one in self.options)
            raise AgentError(f"This question is answered with one of its options: {offered}.")
