"""One terminal session: a shell on its pseudo-terminal, its retained output and its viewers.

    master -> ring -> every viewer at its own offset

Output is read as long as somebody takes it: with every viewer more than `LAG_BYTES` behind, reading
pauses, the kernel's buffer fills and the program waits. A viewer that takes nothing for
`STALL_SECONDS` no longer counts; when it moves again and its place is gone, it gets a replay. With
no viewer that counts, output is read into the ring, so that work nobody watches goes on.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable
from uuid import UUID

from quarterdeck.engine.errors import EngineRefused
from quarterdeck.engine.input_order import InputOrder, Turn
from quarterdeck.engine.processes import kill_session, members_of, signal_session, wait_for_exit
from quarterdeck.engine.pty import Shell, set_size
from quarterdeck.engine.ring import Ring
from quarterdeck.engine.viewer import Viewer
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.engine import TerminalFrame
from quarterdeck.wire.terminals import TerminalInput, TerminalSession

logger = logging.getLogger(__name__)

LAG_BYTES = 1 << 18
STALL_SECONDS = 5.0
GATHER_SECONDS = 0.003
"""After a chunk was passed on, more is gathered this long; the first after quiet goes at once."""
HANGUP_SECONDS = 0.5
UNTYPED_BYTES = 1 << 20
_TURN_BYTES = 1 << 16
_DRAIN_BYTES = 1 << 20


class Terminal:
    """A running or ended session. `close` ends it; nothing of it is left after that."""

    def __init__(
        self,
        id: UUID,
        title: str,
        shell: Shell,
        size: tuple[int, int],
        on_output: Callable[[], None],
    ) -> None:
        self.id = id
        self.title = title
        self.size = size
        """Columns and rows."""
        self.created_at = utc_now()
        self.exited = False
        self.exit_code: int | None = None
        self.ring = Ring()
        self.viewers: set[Viewer] = set()
        self.changed = asyncio.Event()
        """Set, and replaced by a new one, when there is something new for viewers."""
        self._shell = shell
        self._on_output = on_output
        self._order = InputOrder()
        self._untyped = bytearray()
        self._reading = False
        self._hung_up = False
        self._recheck: asyncio.TimerHandle | None = None
        self._gathering: asyncio.TimerHandle | None = None
        self._told = 0
        self._orphans = False
        self._loop = asyncio.get_running_loop()
        self._resume()
        self._life = asyncio.create_task(self._live(), name=f"terminal {title}")

    def record(self) -> TerminalSession:
        """The session as the contract shows it."""
        return TerminalSession(
            id=self.id,
            title=self.title,
            created_at=self.created_at,
            exited=self.exited,
            exit_code=self.exit_code,
        )

    async def type(self, request: TerminalInput) -> None:
        """Types numbered input in its turn; a repeat is dropped.

        Raises:
            EngineRefused: CONFLICT: ended, a gap was not filled, or the program reads nothing.
        """
        turn = await self._order.turn(request.generation, request.sequence)
        if turn is Turn.GAP:
            raise EngineRefused.conflict("Input that belongs before this did not arrive.")
        if turn is Turn.DROP:
            return
        self._require_running()
        data = request.data.encode()
        if len(self._untyped) + len(data) > UNTYPED_BYTES:
            raise EngineRefused.conflict("The program in this terminal does not read its input.")
        self._untyped += data
        self._write()

    def resize(self, cols: int, rows: int) -> None:
        """Changes the size; its programs are told.

        Raises:
            EngineRefused: CONFLICT: the terminal has ended.
        """
        self._require_running()
        if self.size == (cols, rows):
            return
        set_size(self._shell.master, cols, rows)
        self.size = (cols, rows)
        self._tell()

    async def watch(self, offset: int | None) -> AsyncGenerator[TerminalFrame, None]:
        """Frames from an offset on, or with a replay first; ends after `exit`."""
        viewer = Viewer(self, offset, self._flow)
        self.viewers.add(viewer)
        try:
            async for frame in viewer.frames():
                yield frame
        finally:
            self.viewers.discard(viewer)
            self._on_output()  # somebody was here until now
            self._flow()

    async def close(self) -> None:
        """Hangs up, then kills whatever is left of the session."""
        pid = self._shell.pid
        if not self.exited:
            signal_session(pid, signal.SIGHUP)
            signal_session(pid, signal.SIGCONT)
            await asyncio.wait({self._life}, timeout=HANGUP_SECONDS)
        if not self.exited or self._orphans:
            await kill_session(pid)
        await self._life

    def _require_running(self) -> None:
        if self.exited:
            raise EngineRefused.conflict("This terminal has ended.")

    # From the program

    def _readable(self) -> None:
        if self._read(_TURN_BYTES):
            self._on_output()
            self._announce()
            self._flow()

    def _read(self, budget: int) -> int:
        taken = 0
        while taken < budget:
            try:
                data = os.read(self._shell.master, _TURN_BYTES)
            except BlockingIOError:
                break
            except OSError:
                self._hung_up = True  # EIO: no program has the terminal open any more
                self._pause()
                break
            self.ring.append(data)
            taken += len(data)
        return taken

    def _announce(self) -> None:
        if self._gathering is None and self._told < self.ring.end:
            self._tell()
            self._gathering = self._loop.call_later(GATHER_SECONDS, self._gathered)

    def _gathered(self) -> None:
        self._gathering = None
        self._announce()

    def _tell(self) -> None:
        self._told = self.ring.end
        self.changed.set()
        self.changed = asyncio.Event()

    # Flow control

    def _flow(self) -> None:
        if self.exited:
            return
        if not self._all_behind():
            self._resume()
        elif self._reading:
            self._pause()
            self._recheck = self._loop.call_later(STALL_SECONDS, self._flow_later)

    def _flow_later(self) -> None:
        self._recheck = None
        if self._all_behind():
            self._recheck = self._loop.call_later(STALL_SECONDS / 5, self._flow_later)
        else:
            self._flow()

    def _all_behind(self) -> bool:
        now = self._loop.time()
        counting = [viewer for viewer in self.viewers if not viewer.stalled(now, STALL_SECONDS)]
        return bool(counting) and all(
            self.ring.end - viewer.position > LAG_BYTES for viewer in counting
        )

    def _resume(self) -> None:
        if not self._reading and not self._hung_up:
            self._reading = True
            self._loop.add_reader(self._shell.master, self._readable)
        if self._recheck is not None:
            self._recheck.cancel()
            self._recheck = None

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._shell.master)

    # To the program

    def _write(self) -> None:
        try:
            while self._untyped:
                written = os.write(self._shell.master, self._untyped[:_TURN_BYTES])
                del self._untyped[:written]
        except BlockingIOError:
            self._loop.add_writer(self._shell.master, self._write)
            return
        except OSError:
            self._untyped.clear()  # the program is gone; its end is told by `exit`
        self._loop.remove_writer(self._shell.master)

    # The end

    async def _live(self) -> None:
        code = await wait_for_exit(self._shell.pid)
        self._orphans = bool(members_of(self._shell.pid))
        self._read(_DRAIN_BYTES)
        self._pause()
        self._loop.remove_writer(self._shell.master)
        for timer in (self._gathering, self._recheck):
            if timer is not None:
                timer.cancel()
        os.close(self._shell.master)
        self.exited, self.exit_code = True, code
        self._tell()
        self._on_output()
