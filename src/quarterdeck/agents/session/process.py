"""The agent's process: its streams, its last words, its end."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from quarterdeck.agents.processes import Tree, new_mark

_TAIL = 4096
_QUOTED_LINES = 5
MARK = "QUARTERDECK_AGENT"


class AgentProcess:
    """A running agent with the end of what it wrote to its standard error."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._tail = bytearray()
        self._listening = asyncio.create_task(self._listen(), name="agent stderr")
        self._following = asyncio.create_task(self._follow(), name="agent's end")
        self._ending = asyncio.Lock()

    @classmethod
    async def start(
        cls, command: Sequence[str], directory: str, environment: Mapping[str, str]
    ) -> "AgentProcess":
        """Starts the agent; it and all it starts carry one mark, so `end` misses nothing.

        Raises:
            OSError: the program or the directory cannot be used.
        """
        return cls(await Tree.start(command, directory, environment, new_mark(MARK)))

    @property
    def pid(self) -> int:
        """Process id of the agent."""
        return self._tree.pid

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Protocol lines from the agent."""
        return self._tree.stdout

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Protocol lines to the agent."""
        return self._tree.stdin

    @property
    def running(self) -> bool:
        """Whether the agent itself has not ended yet."""
        return self._tree.exit_status is None

    async def obituary(self, name: str) -> str:
        """A sentence on how the agent ended, with its last lines on standard error."""
        ended = await self._tree.exited(within=1.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await asyncio.shield(self._listening)
        how = _how(self._tree.exit_status) if ended else "closed its output"
        words = "\n".join(self._tail.decode(errors="replace").splitlines()[-_QUOTED_LINES:])
        return f"{name} {how}." + (f" Its last lines: {words}" if words.strip() else "")

    async def end_some(self, variable: str) -> None:
        """Kills what the agent started with this variable; the agent itself goes on."""
        await self._tree.end_some(variable)

    async def end(self, grace: float) -> None:
        """Ends the agent and everything it started. Safe to call twice.

        The end of its input comes first: a good agent leaves by itself and tidies up.
        """
        async with self._ending:
            self._following.cancel()
            if grace > 0 and self.running:
                self.stdin.close()
                await self._tree.exited(within=grace)
            await self._tree.end(grace)
            self._listening.cancel()
            await asyncio.gather(self._listening, self._following, return_exceptions=True)

    async def _follow(self) -> None:
        """Some agents start themselves anew as their child, which would hold the pipes open."""
        await self._tree.exited()
        await self._tree.end_rest()

    async def _listen(self) -> None:
        while chunk := await self._tree.stderr.read(_TAIL):
            self._tail += chunk
            del self._tail[:-_TAIL]


def _how(status: int | None) -> str:
    if status is not None and status < 0:
        return f"was killed by signal {-status}"
    return f"ended with exit status {status}"
