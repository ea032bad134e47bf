"""A terminal session: a shell on its pseudo-terminal, its retained output and its viewers.

    master -> ring -> every viewer at its own offset

Output is read while a viewer keeps up: with every viewer more than `LAG_BYTES` late, reading
pauses, the kernel's buffer fills and the program waits. A viewer that takes nothing for
`STALL_SECONDS` no longer counts; when it continues and its position is no longer retained, it gets
a replay. Without a counting viewer, output is read into the ring, so that unwatched programs keep
running.
"""

import asyncio
import fcntl
import logging
import os
import pwd
import signal
import struct
import termios
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from uuid import UUID

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.exec import kill_session, members_of, signal_session, wait_for_exit
from quarterdeck.local.processes import read_name
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.engine import TerminalFrame
from quarterdeck.wire.terminals import (
    REPLAY_BYTES,
    TerminalEvent,
    TerminalExit,
    TerminalInput,
    TerminalOutput,
    TerminalReplay,
    TerminalResized,
    TerminalSession,
)

_SLACK = 1 << 17


class OutputBuffer:
    """Keeps at least the last `capacity` bytes. Offsets count from the terminal's first byte."""

    def __init__(self, capacity: int = REPLAY_BYTES) -> None:
        self._capacity = capacity
        self._data = bytearray()
        self.start = 0
        """Offset of the oldest retained byte."""

    @property
    def end(self) -> int:
        """Offset after the newest byte."""
        return self.start + len(self._data)

    def append(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > self._capacity + _SLACK:
            surplus = len(self._data) - self._capacity
            del self._data[:surplus]
            self.start += surplus

    def read(self, offset: int, limit: int | None = None) -> bytes:
        """Return the bytes from a retained offset on."""
        begin = offset - self.start
        return bytes(self._data[begin : None if limit is None else begin + limit])


GAP_SECONDS = 5.0


class InputFate(Enum):
    """The outcome of one numbered input."""

    APPLY = auto()
    DROP = auto()
    """It was typed before, or belongs to an older generation."""
    GAP = auto()
    """Earlier input did not arrive in time."""


class InputOrder:
    """Puts numbered inputs into their order. A higher generation starts again at sequence 0."""

    def __init__(self, gap_seconds: float = GAP_SECONDS) -> None:
        self._gap_seconds = gap_seconds
        self._generation = 0
        self._expected = 0
        self._moved = asyncio.Event()

    async def turn(self, generation: int, sequence: int) -> InputFate:
        """Wait for an input's turn. On APPLY the caller types it before it waits for anything."""
        if generation > self._generation:
            self._move(generation, 0)
        try:
            async with asyncio.timeout(self._gap_seconds):
                while (fate := self._look(generation, sequence)) is None:
                    await self._moved.wait()
        except TimeoutError:
            return InputFate.GAP
        if fate is InputFate.APPLY:
            self._move(generation, sequence + 1)
        return fate

    def _look(self, generation: int, sequence: int) -> InputFate | None:
        if generation < self._generation or sequence < self._expected:
            return InputFate.DROP
        return InputFate.APPLY if sequence == self._expected else None

    def _move(self, generation: int, expected: int) -> None:
        self._generation, self._expected = generation, expected
        self._moved.set()
        self._moved = asyncio.Event()


_IN_DIRECTORY = 'cd -- "$1" || exit 1; shift; exec "$@"'
_NO_SHELLS = ("nologin", "false", "sync")
_FALLBACKS = ("/bin/bash", "/bin/sh")
_MARK_END = r"printf '\033]133;D;%s\007' $?"
"""Tells a terminal that a command has ended, as other shells do by themselves: it undoes what a program
that died has changed about its keys."""


@dataclass(frozen=True)
class Shell:
    """A running shell: its pid (also its session's id) and the terminal's master side."""

    pid: int
    master: int
    name: str


def spawn_shell(directory: Path, environment: Mapping[str, str], cols: int, rows: int) -> Shell:
    """Start the user's shell in a directory, with the terminal as its controlling one.

    Raises:
        OSError: no pseudo-terminal is left, or no shell can be started.
    """
    shell = find_shell(environment)
    settings = {k: v for k, v in environment.items() if k not in ("LINES", "COLUMNS")}
    settings |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "SHELL": shell}
    if Path(shell).name == "bash":
        settings.setdefault("PROMPT_COMMAND", _MARK_END)
    master, slave = os.openpty()
    try:
        set_size(master, cols, rows)
        os.set_blocking(master, False)
        pid = _spawn(["/bin/sh", "-c", _IN_DIRECTORY, "sh", str(directory), shell], settings, slave)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    return Shell(pid, master, Path(shell).name)


def set_size(master: int, cols: int, rows: int) -> None:
    """Set the terminal's size; its programs get SIGWINCH."""
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def find_shell(environment: Mapping[str, str]) -> str:
    """Return the shell named by SHELL, else the account's, else bash, else sh."""
    candidates = (environment.get("SHELL"), _account_shell(), *_FALLBACKS)
    return next((shell for shell in candidates if shell and _is_shell(shell)), _FALLBACKS[-1])


def _account_shell() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return None


def _is_shell(path: str) -> bool:
    named = path.startswith("/") and Path(path).name not in _NO_SHELLS
    return named and os.access(path, os.X_OK)


def _spawn(argv: list[str], environment: Mapping[str, str], slave: int) -> int:
    """Start a program with the terminal as its controlling one.

    `setsid` comes before the files are opened, so opening the terminal makes it the controlling
    one. Signals that Python ignores get their default back.
    """
    device = os.ttyname(slave)
    return os.posix_spawn(
        argv[0],
        argv,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, device, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)],
    )


CHUNK_BYTES = 1 << 16


class Viewer:
    """Yields frames as fast as they are consumed; `position` is the offset after the last one."""

    def __init__(
        self, terminal: "Terminal", offset: int | None, on_move: Callable[[], None]
    ) -> None:
        ring = terminal.ring
        self._terminal = terminal
        self._on_move = on_move
        self._clock = asyncio.get_running_loop().time
        self._needs_replay = offset is None or not ring.start <= offset <= ring.end
        self.position = ring.end if offset is None or self._needs_replay else offset
        self._size = terminal.size
        self._offered_at: float | None = None

    def stalled(self, now: float, seconds: float) -> bool:
        """Return whether a frame has been waiting for its consumer for that long."""
        return self._offered_at is not None and now - self._offered_at >= seconds

    async def frames(self) -> AsyncGenerator[TerminalFrame, None]:
        """End after the `exit` frame."""
        while True:
            changed = self._terminal.changed
            event = self._next()
            if event is None:
                await changed.wait()
                continue
            offset = self._offset_after(event)
            self._offered_at = self._clock()
            yield TerminalFrame(offset=offset, event=event)
            self._offered_at = None
            self.position = offset
            if event.type == "exit":
                return
            self._on_move()

    def _next(self) -> TerminalEvent | None:
        terminal, ring = self._terminal, self._terminal.ring
        if self._needs_replay or self.position < ring.start:
            return self._replay()
        if self._size != terminal.size:
            self._size = terminal.size
            return TerminalResized(cols=self._size[0], rows=self._size[1])
        if self.position < ring.end:
            self._data = ring.read(self.position, CHUNK_BYTES)
            return TerminalOutput(data=b64encode(self._data).decode())
        return TerminalExit(exit_code=terminal.exit_code) if terminal.exited else None

    def _replay(self) -> TerminalReplay:
        ring = self._terminal.ring
        self._needs_replay = False
        self._size = self._terminal.size
        data = b64encode(ring.read(ring.start)).decode()
        return TerminalReplay(data=data, offset=ring.end, cols=self._size[0], rows=self._size[1])

    def _offset_after(self, event: TerminalEvent) -> int:
        match event:
            case TerminalReplay():
                return event.offset
            case TerminalOutput():
                return self.position + len(self._data)
            case _:
                return self.position


logger = logging.getLogger(__name__)

LAG_BYTES = 1 << 18
STALL_SECONDS = 5.0
GATHER_SECONDS = 0.003
"""After a chunk, output is gathered for this long; the first after a pause is sent at once."""
HANGUP_SECONDS = 0.5
UNTYPED_BYTES = 1 << 20
_TURN_BYTES = 1 << 16
_DRAIN_BYTES = 1 << 20


class Terminal:
    """A running or ended session. `close` ends it with all its processes."""

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
        self.ended_at: float | None = None
        """When the shell ended, in the loop's time."""
        self.exit_code: int | None = None
        self.ring = OutputBuffer()
        self.viewers: set[Viewer] = set()
        self.changed = asyncio.Event()
        """Set, and replaced by a new one, when there is output or another change for viewers."""
        self._shell = shell
        self._on_output = on_output
        self._order = InputOrder()
        self._untyped = bytearray()
        self._reading = False
        self._hung_up = False
        self._recheck: asyncio.TimerHandle | None = None
        self._gathering: asyncio.TimerHandle | None = None
        self._announced = 0
        self._orphans = False
        self._loop = asyncio.get_running_loop()
        self._resume()
        self._life = asyncio.create_task(self._live(), name=f"terminal {title}")

    def record(self) -> TerminalSession:
        """Return the session as the contract shows it."""
        return TerminalSession(
            id=self.id,
            title=self.title,
            created_at=self.created_at,
            exited=self.exited,
            ended=self.exited,
            exit_code=self.exit_code,
            program=self._program(),
        )

    def _program(self) -> str | None:
        """Return the name of the program in the foreground, else of one in the background."""
        shell = self._shell
        if self.exited or self._hung_up:
            return None
        foreground = os.tcgetpgrp(shell.master)
        if foreground not in (0, shell.pid) and (name := read_name(foreground)):
            return name
        others = (pid for pid in members_of(shell.pid) if pid != shell.pid)
        return next(filter(None, map(read_name, others)), None)

    async def type(self, request: TerminalInput) -> None:
        """Type numbered input in order; a repeat is dropped.

        Raises:
            EngineRefusedError: CONFLICT: ended, a gap was not filled, or the program reads nothing.
        """
        turn = await self._order.turn(request.generation, request.sequence)
        if turn is InputFate.GAP:
            raise EngineRefusedError.conflict("Input that belongs before this did not arrive.")
        if turn is InputFate.DROP:
            return
        self._require_running()
        data = request.data.encode()
        if len(self._untyped) + len(data) > UNTYPED_BYTES:
            raise EngineRefusedError.conflict(
                "The program in this terminal does not read its input."
            )
        self._untyped += data
        self._write()

    def resize(self, cols: int, rows: int) -> None:
        """Change the size; its programs are notified.

        Raises:
            EngineRefusedError: CONFLICT: the terminal has ended.
        """
        self._require_running()
        if self.size == (cols, rows):
            return
        set_size(self._shell.master, cols, rows)
        self.size = (cols, rows)
        self._notify_viewers()

    async def watch(self, offset: int | None) -> AsyncGenerator[TerminalFrame, None]:
        """Yield the frames from an offset, or with a replay first; ends after `exit`."""
        viewer = Viewer(self, offset, self._flow)
        self.viewers.add(viewer)
        try:
            async for frame in viewer.frames():
                yield frame
        finally:
            self.viewers.discard(viewer)
            self._on_output()  # it was in use until now
            self._flow()

    async def close(self) -> None:
        """Hang up, then kill the remaining processes of the session."""
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
            raise EngineRefusedError.conflict("This terminal has ended.")

    # From the program

    def _readable(self) -> None:
        if self._read(_TURN_BYTES):
            self._on_output()
            self._announce()
            self._flow()

    def _read(self, budget: int) -> int:
        count = 0
        while count < budget:
            try:
                data = os.read(self._shell.master, _TURN_BYTES)
            except BlockingIOError:
                break
            except OSError:
                self._hung_up = True  # EIO: no program has the terminal open any more
                self._pause()
                break
            self.ring.append(data)
            count += len(data)
        return count

    def _announce(self) -> None:
        if self._gathering is None and self._announced < self.ring.end:
            self._notify_viewers()
            self._gathering = self._loop.call_later(GATHER_SECONDS, self._gathered)

    def _gathered(self) -> None:
        self._gathering = None
        self._announce()

    def _notify_viewers(self) -> None:
        self._announced = self.ring.end
        self.changed.set()
        self.changed = asyncio.Event()

    # Flow control

    def _flow(self) -> None:
        if self.exited:
            return
        if not self._all_lagging():
            self._resume()
        elif self._reading:
            self._pause()
            self._recheck = self._loop.call_later(STALL_SECONDS, self._flow_later)

    def _flow_later(self) -> None:
        self._recheck = None
        if self._all_lagging():
            self._recheck = self._loop.call_later(STALL_SECONDS / 5, self._flow_later)
        else:
            self._flow()

    def _all_lagging(self) -> bool:
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
            self._untyped.clear()  # the program has ended; `exit` reports it
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
        self.ended_at = self._loop.time()
        self._notify_viewers()
        self._on_output()
