"""The terminal sessions of a workspace (docs/interface.md 6).

Eight may run at once. A session whose shell has ended does not count. It stays listed with its
exit code, and its output can still be replayed, for ten minutes or until it is closed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from uuid import UUID, uuid4

from quarterdeck.engine.agent_session import not_started
from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.engine.terminal import Terminal, spawn_shell
from quarterdeck.wire.engine import TerminalFrame
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.terminals import (
    MAX_SESSIONS,
    CreateTerminal,
    ResizeTerminal,
    TerminalAnswer,
    TerminalInput,
    TerminalList,
)

ENDED_SECONDS = 600.0
"""How long an ended session is kept (docs/interface.md 11)."""

MOST_ENDED = 64
"""With more, the oldest are removed earlier: each holds a megabyte of output."""


class TerminalRegistry:
    """Opens, finds and closes terminals. `on_output` is called for any output (cheap, often)."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], on_output: Callable[[], None]
    ) -> None:
        self._directory = directory
        self._environment = environment
        self._on_output = on_output
        self._terminals: dict[UUID, Terminal] = {}
        self._created = 0
        self._closing = False
        self._forgotten = TaskOwner()
        """Ends the processes of sessions that are no longer listed."""

    @property
    def running(self) -> int:
        return sum(not terminal.exited for terminal in self._terminals.values())

    @property
    def attached(self) -> int:
        """Open output streams."""
        return sum(len(terminal.viewers) for terminal in self._terminals.values())

    def list(self) -> TerminalList:
        self._forget_ended()
        return TerminalList(sessions=[t.record() for t in self._terminals.values()])

    async def create(self, request: CreateTerminal) -> TerminalAnswer:
        """Open a terminal in the working directory.

        Raises:
            EngineRefusedError: TERMINAL_LIMIT_REACHED, or INTERNAL_ERROR when no shell can be
                started.
        """
        if self._closing:
            raise EngineRefusedError.conflict("The workspace is being stopped.")
        if self.running >= MAX_SESSIONS:
            raise EngineRefusedError(
                ErrorCode.TERMINAL_LIMIT_REACHED,
                f"At most {MAX_SESSIONS} terminals can run at once; close one first.",
            )
        size = (request.cols, request.rows)
        try:
            shell = spawn_shell(self._directory, self._environment, *size)
        except OSError as error:
            raise not_started("The shell could not be started.", error) from error
        self._created += 1
        title = f"{shell.name} {self._created}"
        terminal = Terminal(uuid4(), title, shell, size, self._on_output)
        self._terminals[terminal.id] = terminal
        self._forget_ended()
        return TerminalAnswer(session=terminal.record())

    async def type(self, id: UUID, request: TerminalInput) -> None:
        """Type into a terminal; see `Terminal.type`."""
        await self._find(id).type(request)

    def resize(self, id: UUID, request: ResizeTerminal) -> None:
        """Resize a terminal; see `Terminal.resize`."""
        self._find(id).resize(request.cols, request.rows)

    def watch(self, id: UUID, offset: int | None) -> AsyncGenerator[TerminalFrame, None]:
        """Yield a terminal's frames; see `Terminal.watch`."""
        return self._find(id).watch(offset)

    async def close(self, id: UUID) -> None:
        """End a terminal with everything in it, and forget it."""
        terminal = self._find(id)
        await terminal.close()
        self._terminals.pop(id, None)

    async def close_all(self) -> None:
        """End every terminal, for good."""
        self._closing = True
        await asyncio.gather(*(terminal.close() for terminal in self._terminals.values()))
        await self._forgotten.close()

    def _forget_ended(self) -> None:
        """Forget sessions that ended long ago and have no viewers."""
        before = asyncio.get_running_loop().time() - ENDED_SECONDS
        ended = [terminal for terminal in self._terminals.values() if terminal.ended_at is not None]
        newest = {terminal.id for terminal in ended[-MOST_ENDED:]}
        for terminal in ended:
            over = terminal.ended_at is not None and terminal.ended_at <= before
            if terminal.id not in newest or (over and not terminal.viewers):
                del self._terminals[terminal.id]
                self._forgotten.start(terminal.close(), f"end of {terminal.title}")

    def _find(self, id: UUID) -> Terminal:
        self._forget_ended()
        terminal = self._terminals.get(id)
        if terminal is None:
            raise EngineRefusedError.not_found("There is no terminal with this id.")
        return terminal
