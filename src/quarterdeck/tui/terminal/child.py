"""The emulator's process as the cockpit holds it: started, spoken to, ended."""

import asyncio
import socket
import sys
from collections.abc import Callable, Sequence

from quarterdeck.tui.terminal.channel import Parcel, Report, Splitter, pack
from quarterdeck.tui.terminal.errors import BadFrame

END_SECONDS = 0.5
COMMAND = (sys.executable, "-I", "-m", "quarterdeck.tui.terminal.worker")


class Child(asyncio.Protocol):
    """One run of the process. `changed` is called when it is ready, and when it is gone."""

    def __init__(
        self,
        take: Callable[[Parcel], None],
        changed: Callable[[], None],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._command = command
        self.ready = False
        self.gone = False
        self._take = take
        self._changed = changed
        self._splitter = Splitter()
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The process id, null before the start."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Starts the process; it is `ready` when it can be spoken to.

        Raises:
            OSError: it cannot be started.
        """
        here, there = socket.socketpair()
        try:
            with there:
                # Its own session: a hang-up or interrupt of the cockpit's terminal is not for it.
                # What the library prints when it dies must not reach the reader's screen.
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=there.fileno(),
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            loop = asyncio.get_running_loop()
            await loop.create_unix_connection(lambda: self, sock=here)
        except BaseException:
            here.close()
            await self.stop()
            raise

    def say(self, kind: int, terminal: int, body: bytes = b"") -> None:
        """Sends a command; ignored when the process is gone."""
        if self._transport is not None and not self.gone:
            self._transport.write(pack(kind, terminal, body))

    async def stop(self) -> None:
        """Ends the process and waits for its end."""
        self.abort()
        if self._process is None:
            return
        try:
            # It ends by itself at the end of its input; a hung one does not.
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Part of `asyncio.Protocol`: a process that talks nonsense counts as dead."""
        try:
            for parcel in self._splitter.feed(data):
                if parcel.kind == Report.READY:
                    self.ready = True
                    self._changed()
                else:
                    self._take(parcel)
        except BadFrame:
            self.abort()

    def abort(self) -> None:
        """Gives the process up; it counts as gone from now on."""
        if self._transport is not None:
            self._transport.abort()
        if not self.gone:
            self.gone = True
            self._changed()

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of `asyncio.Protocol`."""
        self.abort()
