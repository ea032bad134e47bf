"""The terminal sessions of a workspace (INTERFACE 6).

Eight may run at once. A session whose shell has ended stays listed with its exit code, and its
output can still be replayed, until it is closed; it takes no place beside running ones, but of
ended ones only the eight newest are kept.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from uuid import UUID, uuid4

from quarterdeck.engine.errors import EngineRefused
from quarterdeck.engine.pty import spawn_shell
from quarterdeck.engine.starting import not_started
from quarterdeck.engine.terminal import Terminal
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


class Terminals:
    """Opens, finds and closes terminals. `on_output` is told of any output (cheap, often)."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], on_output: Callable[[], None]
    ) -> None:
        self._directory = directory
        self._environment = environment
        self._on_output = on_output
        self._terminals: dict[UUID, Terminal] = {}
        self._made = 0
        self._closing = False

    @property
    def running(self) -> int:
        return sum(not terminal.exited for terminal in self._terminals.values())

    @property
    def attached(self) -> int:
        """Open output streams."""
        return sum(len(terminal.viewers) for terminal in self._terminals.values())

    def list(self) -> TerminalList:
        return TerminalList(sessions=[t.record() for t in self._terminals.values()])

    async def create(self, request: CreateTerminal) -> TerminalAnswer:
        """Opens a terminal where the work is.

        Raises:
            EngineRefused: TERMINAL_LIMIT_REACHED, or INTERNAL_ERROR when no shell can be started.
        """
        if self._closing:
            raise EngineRefused.conflict("The workspace is being stopped.")
        if self.running >= MAX_SESSIONS:
            raise EngineRefused(
                ErrorCode.TERMINAL_LIMIT_REACHED,
                f"At most {MAX_SESSIONS} terminals can run at once; close one first.",
            )
        size = (request.cols, request.rows)
        try:
            shell = spawn_shell(self._directory, self._environment, *size)
        except OSError as error:
            raise not_started("The shell could not be started.", error) from error
        self._made += 1
        title = f"{shell.name} {self._made}"
        terminal = Terminal(uuid4(), title, shell, size, self._on_output)
        self._terminals[terminal.id] = terminal
        await self._forget_oldest_ended()
        return TerminalAnswer(session=terminal.record())

    async def type(self, id: UUID, request: TerminalInput) -> None:
        """Types into a terminal; see `Terminal.type`."""
        await self._find(id).type(request)

    def resize(self, id: UUID, request: ResizeTerminal) -> None:
        """Resizes a terminal; see `Terminal.resize`."""
        self._find(id).resize(request.cols, request.rows)

    def watch(self, id: UUID, offset: int | None) -> AsyncGenerator[TerminalFrame, None]:
        """A terminal's frames; see `Terminal.watch`."""
        return self._find(id).watch(offset)

    async def close(self, id: UUID) -> None:
        """Ends a terminal with everything in it, and forgets it."""
        terminal = self._find(id)
        await terminal.close()
        self._terminals.pop(id, None)

    async def close_all(self) -> None:
        """Ends every terminal, for good."""
        self._closing = True
        await asyncio.gather(*(terminal.close() for terminal in self._terminals.values()))

    async def _forget_oldest_ended(self) -> None:
        ended = [terminal for terminal in self._terminals.values() if terminal.exited]
        for terminal in ended[:-MAX_SESSIONS]:
            await self.close(terminal.id)

    def _find(self, id: UUID) -> Terminal:
        terminal = self._terminals.get(id)
        if terminal is None:
            raise EngineRefused.not_found("There is no terminal with this id.")
        return terminal
