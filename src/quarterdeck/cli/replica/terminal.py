"""`qd replica exec` and `attach`: commands and terminals in the sandbox."""

import asyncio
import codecs
import os
import shlex
import signal
import sys
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.lookup import begins_id, with_replica
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import print_json, print_message, print_safe
from quarterdeck.cli.replica.terminal_filter import RESET, TerminalFilter
from quarterdeck.wire.terminals import (
    DEFAULT_TIMEOUT_SECONDS,
    MAX_COLS,
    MAX_ROWS,
    MIN_COLS,
    MIN_ROWS,
    ExecResponse,
    TerminalEvent,
    TerminalExit,
    TerminalOutput,
    TerminalReplay,
    TerminalSession,
)

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.client.terminals import Keyboard


@click.command(name="exec")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.IntRange(1, 50),
    default=DEFAULT_TIMEOUT_SECONDS,
    show_default=True,
    help="Timeout.",
)
@replica_argument
@click.argument("command_line", metavar="-- COMMAND...", nargs=-1, required=True)
@common_options
def execute(common: Common, replica: str, command_line: tuple[str, ...], timeout: int) -> None:
    """Run a command where terminals start and print its output.

    That is the repository, or the directory above several. One word is a line for the shell; several are a command and its arguments. Exit code 0 when the
    command ended with 0, else 1; --json reports its exit status. What it prints comes without control
    sequences; --json has it as it was, at most the last 64 KB.
    """
    if command_line[0] == "--":  # it comes after REPLICA, where click treats it as an argument
        command_line = command_line[1:]
    if not command_line:
        raise click.UsageError("Missing argument '-- COMMAND...'.")
    line = command_line[0] if len(command_line) == 1 else shlex.join(command_line)

    result = with_replica(
        common, replica, lambda client, id: client.exec.run(id, line, timeout, in_repository=True)
    )
    if common.json:
        print_json(result)
    else:
        _print_result(result)
    _check_status(result, timeout)


def _print_result(result: ExecResponse) -> None:
    if result.truncated:
        print_message("Only the last 64 KB are shown.")
    from quarterdeck.transcript.text import clean_output  # slow to import

    print_safe(clean_output(result.output), end="")


def _check_status(result: ExecResponse, timeout: int) -> None:
    if result.timed_out:
        raise FailedError(f"The command was stopped after {timeout} seconds.")
    if result.exit_code:
        raise FailedError(f"exit status {result.exit_code}")


@contextmanager
def raw_terminal() -> Generator[None]:
    """Switch the terminal to raw mode for the block and restore it afterwards.

    Raises:
        OSError: stdin is not a terminal.
    """
    source, sink = sys.stdin.fileno(), sys.stdout.fileno()
    before = termios.tcgetattr(source)
    tty.setraw(source, termios.TCSADRAIN)  # keeps keys that were already typed
    try:
        yield
    finally:
        write_all(sink, RESET + b"\r\n")
        termios.tcsetattr(source, termios.TCSAFLUSH, before)


def write_all(sink: int, data: bytes) -> None:
    """Write every byte, blocking. A closed terminal is not an error here."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(sink, view) :]
        except OSError:
            return


DETACH_KEYS = (b"\x1d", b"\x1b[93;5u", b"\x1b[27;5;93~")
"""Ctrl+] as terminals send it: plain, and in two protocols for modified keys."""

CLEAR = b"\x1b[0m\x1b[H\x1b[2J"


class DetachedError(Exception):
    """The person detached; the session continues."""


class AttachedTerminal:
    """One attached session. `size` returns the columns and rows of this terminal."""

    def __init__(
        self,
        client: "Client",
        replica_id: UUID,
        session_id: UUID,
        size: Callable[[], tuple[int, int]],
    ) -> None:
        self._client = client
        self._replica_id = replica_id
        self._session_id = session_id
        self._size = size
        self._untouched = True
        self._resized = asyncio.Event()
        self._resized.set()
        self._over: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._filter = TerminalFilter(answers=True)

    async def run(self) -> int | None:
        """Run until the shell ends.

        Returns:
            The shell's exit status.

        Raises:
            DetachedError: the detach key was pressed.
            ClientError: the session has ended, or the service refuses.
        """
        terminals = self._client.terminals
        keyboard = terminals.keyboard(self._replica_id, self._session_id, self._fail)
        with raw_terminal(), self._signals():
            async with keyboard:
                with self._reading(keyboard):
                    return await self._until_over(keyboard)

    async def _until_over(self, keyboard: "Keyboard") -> int | None:
        tasks = [asyncio.create_task(self._show()), asyncio.create_task(self._resize())]
        for task in tasks:
            task.add_done_callback(self._task_ended)
        try:
            return await self._over
        except DetachedError:
            await self._last_keys(keyboard)
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _last_keys(self, keyboard: "Keyboard") -> None:
        """Send the keys typed before the detach key, if the connection is up."""
        from quarterdeck.client.errors import ClientError

        try:
            async with asyncio.timeout(1):
                await keyboard.drain()
        except (TimeoutError, ClientError):
            return

    async def _show(self) -> None:
        from quarterdeck.client.stream_events import (
            ConnectionLost,
            ConnectionRestored,
            TerminalReceived,
        )

        stream = self._client.terminals.stream(self._replica_id, self._session_id)
        async with stream:
            async for item in stream:
                match item:
                    case TerminalReceived(_, event, data):
                        await self._write(self._bytes_of(event, data))
                    case ConnectionLost():
                        await self._write(_title("qd: line lost, trying again"))
                    case ConnectionRestored():
                        await self._write(_title("qd: attached"))
                    case _:
                        pass

    def _bytes_of(self, event: TerminalEvent, data: bytes) -> bytes:
        match event:
            case TerminalReplay():
                self._filter = TerminalFilter(answers=False)
                drawn = self._filter.filter(data)
                self._filter.answers = True
                return self._cleared() + drawn
            case TerminalOutput():
                return self._filter.filter(data)
            case TerminalExit(exit_code=status):
                self._end(status)
            case _:
                pass
        return b""

    def _cleared(self) -> bytes:
        """Return an empty screen; the first time, its old content is moved to the scrollback."""
        room, self._untouched = b"\n" * self._size()[1] if self._untouched else b"", False
        return room + CLEAR

    async def _write(self, data: bytes) -> None:
        # In a thread: a slow terminal delays the output, but not the keys.
        if data:
            await asyncio.to_thread(write_all, sys.stdout.fileno(), data)

    async def _resize(self) -> None:
        while True:
            await self._resized.wait()
            self._resized.clear()
            cols, rows = self._size()
            await self._client.terminals.resize(self._replica_id, self._session_id, cols, rows)

    @contextmanager
    def _reading(self, keyboard: "Keyboard") -> Generator[None]:
        loop = asyncio.get_running_loop()
        source = sys.stdin.fileno()
        loop.add_reader(source, self._typed, source, keyboard)
        try:
            yield
        finally:
            loop.remove_reader(source)

    def _typed(self, source: int, keyboard: "Keyboard") -> None:
        try:
            keys = os.read(source, 65_536)
        except OSError:
            keys = b""
        self._filter.note_input()
        before, detached = _until_detach(keys)
        if before and keyboard.fault is None:
            keyboard.type(self._decoder.decode(before))
        if detached or not keys:
            self._fail(DetachedError())

    @contextmanager
    def _signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._resized.set)
        endings = (signal.SIGTERM, signal.SIGHUP)
        for ending in endings:
            loop.add_signal_handler(ending, self._fail, KeyboardInterrupt())
        try:
            yield
        finally:
            for handled in (signal.SIGWINCH, *endings):
                loop.remove_signal_handler(handled)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    def _end(self, status: int | None) -> None:
        if not self._over.done():
            self._over.set_result(status)


def _until_detach(keys: bytes) -> tuple[bytes, bool]:
    places = [place for key in DETACH_KEYS if (place := keys.find(key)) >= 0]
    return (keys[: min(places)], True) if places else (keys, False)


def _title(text: str) -> bytes:
    """Return the sequence that sets the window's title, as the screen belongs to the session."""
    return b"\x1b]2;" + text.encode() + b"\x07"


@click.command(name="attach")
@click.option("--session", metavar="SESSION", help="Session: its id, a prefix of it, or its title.")
@click.option("--new", is_flag=True, help="Open a new session.")
@replica_argument
@common_options
def attach(common: Common, replica: str, session: str | None, new: bool) -> None:
    """Attach to a terminal in the sandbox; Ctrl+] detaches, the session keeps running.

    Default: the first running session, or a new one. Programs in the session can draw, but not set
    the clipboard or the title, or show images.
    """
    if session and new:
        raise UsageError("Give one of --session and --new.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("Attaching needs a terminal.", "For a command use: qd replica exec.")

    async def work(client: "Client", replica_id: UUID) -> None:
        chosen = await _choose_session(client, replica_id, session, new)
        await _attach(client, common, replica_id, chosen)

    with_replica(common, replica, work)


async def _choose_session(
    client: "Client", replica_id: UUID, wanted: str | None, new: bool
) -> TerminalSession:
    running = [known for known in await client.terminals.list(replica_id) if not known.exited]
    if wanted is not None:
        matches = [known for known in running if _is_meant(known, wanted)]
        if len(matches) != 1:
            raise FailedError(f"{len(matches) or 'No'} running sessions fit {wanted!r}.")
        return matches[0]
    if running and not new:
        return min(running, key=lambda known: known.created_at)
    return await client.terminals.create(replica_id, *terminal_size())


def _is_meant(session: TerminalSession, wanted: str) -> bool:
    return session.title == wanted or begins_id(wanted, session.id)


def terminal_size() -> tuple[int, int]:
    """Return the columns and rows of this terminal, within the limits of the contract."""
    size = os.get_terminal_size(sys.stdout.fileno())
    cols = max(MIN_COLS, min(MAX_COLS, size.columns or 80))
    return cols, max(MIN_ROWS, min(MAX_ROWS, size.lines or 24))


async def _attach(
    client: "Client", common: Common, replica_id: UUID, session: TerminalSession
) -> None:

    print_message(f"Attached to {session.title}. Ctrl+] detaches; the session keeps running.")
    attachment = AttachedTerminal(client, replica_id, session.id, terminal_size)
    try:
        status = await attachment.run()
    except asyncio.CancelledError:
        print_message("Detached.")
        raise
    except DetachedError:
        if common.json:
            print_json({"session": session.id, "exited": False, "exit_code": None})
        print_message("Detached; the session keeps running.")
        return
    if common.json:
        print_json({"session": session.id, "exited": True, "exit_code": status})
    print_message(f"The shell ended{'' if status is None else f' with status {status}'}.")
