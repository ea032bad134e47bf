"""What the server asks of a provider's protocol."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tests.real_agents.model.script import Entry, Step

Body = dict[str, Any]

USAGE = {"input": 100, "cached": 40, "output": 10}
"""What every answer is said to have used, in tokens."""


class Reply(Protocol):
    """One answer, written piece by piece. Each piece is the text of events as it goes out."""

    def opening(self) -> Iterable[str]: ...

    def step(self, step: Step) -> Iterable[str]:
        """A step that the server does not do itself (`slow`, `wait`, `fail`, `garbage`, `cut`)."""
        ...

    def closing(self) -> Iterable[str]: ...


class Dialect(Protocol):
    """A provider's protocol. Stateless."""

    def takes(self, path: str) -> bool:
        """Whether requests to a path, query cut off, are in this dialect."""
        ...

    def entries(self, body: Body) -> Sequence[Entry]:
        """The conversation so far: users' texts and results of tools, in order."""
        ...

    def is_call(self, body: Body, step: Step) -> bool:
        """Whether a step is done by calling a tool, as the agent offers tools in this request."""
        ...

    def reply(self, body: Body) -> Reply:
        """A new answer to a request."""
        ...

    def answer(self, path: str, body: Body) -> Body | None:
        """The whole answer of a request that is not answered by a stream."""
        ...

    def failure(self, status: int) -> Body:
        """The body of an HTTP error."""
        ...
