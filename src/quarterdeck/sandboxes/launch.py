"""Launches sandboxes: the environment of their processes, and the start."""

import asyncio
import errno
import fcntl
import logging
import os
import socket
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from json import dumps, loads
from pathlib import Path
from typing import Any, cast

from quarterdeck.local.sockets import refuse_descriptors
from quarterdeck.sandboxes.interpreter import SYSTEM_PATH
from quarterdeck.sandboxes.layout import Places
from quarterdeck.sandboxes.processes import INSIDE_NAME, MARKER

log = logging.getLogger(__name__)

LAUNCHER = Path(__file__).with_name("launcher.py")

_NEUTRAL = {"LANG": "C.UTF-8"}
_ANSWER_SECONDS = 20.0
_TEMPORARY = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETOOMANYREFS)
"""Errors of a machine or a process that is at a limit: a later start may succeed."""
_COMMAND_BYTES, _VARIABLES_BYTES = 1024, 4096
"""Room for the command and the variables of an engine, which replace those of the fork server."""
_ABOVE = 16  # descriptors are duplicated above the numbers they are put on


@dataclass(frozen=True)
class LaunchSpec:
    """The launcher's instructions. Written as JSON to its standard input.

    `bubblewrap` is the program's path, `options` its options and `inside` the command's variables,
    which they set; without it the command is run as a plain process in `directory`. `uid` and `gid`
    are set when the launcher starts as root and must become someone else; `expose` then names the
    paths that user must reach. `open_files` is the soft limit inside: the service's own is raised.
    `processes` limits their number. `filter` and `scoped` are those of `kernel.Hardening`; `groups`
    are the directories of its control groups.
    """

    command: list[str]
    environment: dict[str, str]
    directory: str
    open_files: int
    processes: int | None = None
    inside: dict[str, str] = field(default_factory=dict[str, str])
    bubblewrap: str | None = None
    options: list[str] = field(default_factory=list[str])
    uid: int | None = None
    gid: int | None = None
    expose: list[str] = field(default_factory=list[str])
    filter: str | None = None
    scoped: bool = False
    groups: list[str] = field(default_factory=list[str])


def spawn(spec: LaunchSpec, log: int, status: int) -> int:
    """Start a sandbox in a new session and return the pid of its outermost process.

    That process is a child of this one: `processes.reap` collects it when it ends.

    Args:
        log: descriptor for standard output and error.
        status: descriptor for the JSON lines with the inner process and the exit code.
    """
    with _described(spec) as described, _raised(described, log, status) as (source, out, lines):
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(LAUNCHER)],
            spec.environment,
            setsid=True,
            setsigmask=[],
            file_actions=[
                (os.POSIX_SPAWN_DUP2, source, 0),
                (os.POSIX_SPAWN_DUP2, out, 1),
                (os.POSIX_SPAWN_DUP2, out, 2),
                (os.POSIX_SPAWN_DUP2, lines, 3),
            ],
        )


class Launchers:
    """Opens commands in sandboxes.

    In `kept_ready`, a launcher waits for the next command: its interpreter takes longer to start
    than the sandbox. It ends with this process, because its pipe is closed.
    """

    def __init__(self) -> None:
        self._keep_ready = False
        self._ahead: asyncio.Task[_Launcher] | None = None

    @asynccontextmanager
    async def kept_ready(self) -> AsyncGenerator[None]:
        """Keep a launcher ready after the first command, until the block ends."""
        self._keep_ready = True
        try:
            yield
        finally:
            self._keep_ready = False
            if self._ahead:
                await asyncio.wait({self._ahead})
            if launcher := self._take():
                await launcher.discard()

    async def open_process(self, spec: LaunchSpec) -> asyncio.subprocess.Process:
        """Start a command in a sandbox, with pipes for its standard streams.

        It is the leader of a process group, whose end is the command's end. The caller waits for
        it.
        """
        if spec.bubblewrap is None:
            # This launcher stays, and is found by the marker in its environment.
            return (await _start_launcher(spec.environment)).run(spec)
        launcher = self._take()
        try:
            if launcher is None:
                launcher = await _start_launcher(_NEUTRAL)
            try:
                return launcher.run(spec)
            except BrokenPipeError:  # it was killed
                await launcher.process.communicate()
                return (await _start_launcher(_NEUTRAL)).run(spec)
        finally:
            if self._keep_ready and self._ahead is None:
                self._ahead = asyncio.create_task(_start_launcher(_NEUTRAL), name="a launcher")

    def _take(self) -> "_Launcher | None":
        """Return the waiting launcher; None when there is none yet, or it could not be started."""
        if self._ahead is None or not self._ahead.done():
            return None
        ahead, self._ahead = self._ahead, None
        return None if ahead.exception() else ahead.result()


@dataclass(frozen=True)
class _Launcher:
    """A launcher that waits for its specification at the end of a pipe."""

    process: asyncio.subprocess.Process
    pipe: int

    def run(self, spec: LaunchSpec) -> asyncio.subprocess.Process:
        """Turn it into the command.

        Raises:
            BrokenPipeError: it has ended.
        """
        with os.fdopen(self.pipe, "wb") as pipe:
            pipe.write(_json(spec))
        return self.process

    async def discard(self) -> None:
        """End it."""
        os.close(self.pipe)
        await self.process.communicate()


async def _start_launcher(environment: dict[str, str]) -> _Launcher:
    source, pipe = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(LAUNCHER), str(source)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            pass_fds=(source,),
            start_new_session=True,
        )
    except BaseException:
        os.close(pipe)
        raise
    finally:
        os.close(source)
    _refuse_descriptors_on_streams(process)
    return _Launcher(process, pipe)


def _refuse_descriptors_on_streams(process: asyncio.subprocess.Process) -> None:
    """Refuse open files that the process sends: uvloop's standard streams are unix sockets.

    Those of asyncio are pipes, which have no `socket`. The transport is a private attribute: without it,
    such files are accepted.
    """
    transport = cast("asyncio.SubprocessTransport | None", vars(process).get("_transport"))
    for number in range(3):
        stream = transport and transport.get_pipe_transport(number)
        if stream and (channel := stream.get_extra_info("socket")) is not None:
            refuse_descriptors(channel.fileno())


class ForkServer:
    """Starts engines in sandboxes, as forks of a process that has loaded `modules`; see `fork_server`.

    Only within `kept_ready`, where it is started for the first engine. It ends with this process.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules
        self._usable = False
        self._server: _Server | None = None
        self._starting = asyncio.Lock()

    @asynccontextmanager
    async def kept_ready(self) -> AsyncGenerator[None]:
        """Allow its use until the block ends."""
        self._usable = True
        try:
            yield
        finally:
            self._usable = False
            await self._discard()

    async def start(self, spec: LaunchSpec, out: int, status: int) -> int | None:
        """Start a sandbox in a new session and return the pid of its outermost process.

        The process is not a child of this one. Return None where engines cannot be forked.

        Args:
            spec: a Python that runs a module.
            out: descriptor for standard output and error.
            status: descriptor for the JSON lines with the inner process and the exit code.
        """
        if spec.bubblewrap is None or not self._usable:
            return None
        try:
            answer: dict[str, Any]
            async with asyncio.timeout(_ANSWER_SECONDS):
                try:
                    answer = await self._ask(spec, out, status)
                except ConnectionError:  # an idle one ends
                    answer = await self._ask(spec, out, status)
        except OSError as e:
            answer = {"error": str(e) or "it does not answer", "number": e.errno}
        if answer.get("number") in _TEMPORARY:
            log.warning("An engine is started without the fork server: %s", answer["error"])
        elif "error" in answer:
            log.warning("Engines are started without the fork server: %s", answer["error"])
            self._usable = False
            await self._discard()
        return answer.get("pid")

    async def _ask(self, spec: LaunchSpec, out: int, status: int) -> dict[str, Any]:
        async with self._starting:
            if self._server is None:
                self._server = await _start_server(self._modules)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            try:
                with _described(spec) as source:
                    passed = [source, out, status, theirs.fileno()]
                    socket.send_fds(self._server.channel, [b"+"], passed)
                theirs.close()
                answer = await asyncio.get_running_loop().sock_recv(ours, 1 << 16)
                if not answer:
                    raise ConnectionResetError("it ended")
            except ConnectionError:
                await self._discard()
                raise
        return loads(answer)

    async def _discard(self) -> None:
        """End the process. What it has started goes on."""
        server, self._server = self._server, None
        if server:
            server.channel.close()
            with suppress(ProcessLookupError):
                server.process.kill()
            await server.process.wait()


@dataclass(frozen=True)
class _Server:
    process: asyncio.subprocess.Process
    channel: socket.socket


async def _start_server(modules: Sequence[str]) -> _Server:
    channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.setblocking(False)
    with theirs:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-m", "quarterdeck.sandboxes.fork_server"),
                *(str(theirs.fileno()), *modules, " " * _COMMAND_BYTES),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                env={**_NEUTRAL, "PADDING": " " * _VARIABLES_BYTES},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            channel.close()
            raise
    return _Server(process, channel)


@contextmanager
def _described(spec: LaunchSpec) -> Generator[int]:
    descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, _json(spec))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _json(spec: LaunchSpec) -> bytes:
    return dumps(asdict(spec)).encode()


@contextmanager
def _raised(*descriptors: int) -> Generator[list[int]]:
    copies: list[int] = []
    try:
        for descriptor in descriptors:
            copies.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE))
        yield copies
    finally:
        for copy in copies:
            os.close(copy)


def login_shell() -> str:
    """Return the shell of the user inside."""
    return next((name for name in ("/bin/bash", "/usr/bin/bash") if Path(name).exists()), "/bin/sh")


def clean_environment(places: Places, home: str, programs: tuple[Path, ...] = ()) -> dict[str, str]:
    """Return the variables of a new sandbox.

    Args:
        home: the home directory, as seen inside.
        programs: directories of programs besides the system's.
    """
    own = [f"{home}/.local/bin", *map(str, programs)]
    return {
        "QUARTERDECK_WORKSPACE": places.root.name,
        MARKER: places.mark,
        "HOME": home,
        "USER": INSIDE_NAME,
        "LOGNAME": INSIDE_NAME,
        "SHELL": login_shell(),
        "PATH": ":".join([*own, *SYSTEM_PATH]),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }
