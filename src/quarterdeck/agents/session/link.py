"""One running agent process and what is said over its streams, in whatever protocol."""

from abc import ABC, abstractmethod

from quarterdeck.agents.session import lines
from quarterdeck.agents.session.activity import Activity
from quarterdeck.agents.session.lines import LineTransport, Message
from quarterdeck.agents.session.process import AgentProcess


class LinkLostError(Exception):
    """The agent ended, or stopped speaking the protocol."""


class RefusedError(Exception):
    """The agent answered a request with an error."""

    def __init__(self, message: str, code: object = None, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Link(ABC):
    """Reads an agent's lines; each is done with before the next is read."""

    def __init__(self, name: str, process: AgentProcess, activity: Activity) -> None:
        self._name = name
        self._process = process
        self._activity = activity
        self._transport = LineTransport(process.stdout, process.stdin, self._heard)
        self._closed = False
        self._lost = False
        self._reason: str | None = None
        self.fault: Exception | None = None
        """What the engine's sink raised; nothing more is read from the agent then."""

    @property
    def process_id(self) -> int:
        """Process id of the agent."""
        return self._process.pid

    @property
    def usable(self) -> bool:
        """Whether anything can be asked."""
        return not self._closed and not self._lost and self._process.running

    async def obituary(self) -> str:
        """A sentence on why the link was lost."""
        if self._reason:
            return self._reason
        if self._transport.overflowed:
            return f"{self._name} printed a line of more than {lines.LINE_LIMIT >> 20} MB."
        noise = "\n".join(self._transport.noise)
        said = f" It printed what is not protocol: {noise}" if noise else ""
        return await self._process.obituary(self._name) + said

    async def give_up(self, why: str) -> None:
        """Ends an agent that is of no use any more; whoever awaits it is told why."""
        self._reason = why
        await self.close(0)

    @abstractmethod
    async def close(self, grace: float) -> None:
        """Ends the agent and everything it started. Safe to call twice."""

    @abstractmethod
    async def _sorted(self, message: Message) -> Message | None:
        """Takes a message and returns what is left to do with it."""

    async def _heard(self, message: Message) -> Message | None:
        self._activity.touch()
        try:
            return await self._sorted(message)
        except Exception as error:
            self.fault = error
            raise
