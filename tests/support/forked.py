"""`subprocess.Popen` that takes a program run as a module from the fork server."""

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import threading
from functools import cache
from typing import Any

# What an interpreter looks at when it starts, so what a fork cannot be given any more.
_DECIDED_EARLY = ("LANG", "LC_ALL", "LC_CTYPE", "PYTHONPATH", "PYTHONUNBUFFERED")
_ASKING = threading.Lock()


class ForkedPopen(subprocess.Popen[Any]):
    """As its base; `[sys.executable, ("-P",) "-m", MODULE, ...]` becomes a fork that has imported
    the program, and every other command, or an environment that only a new interpreter can have, is
    started as usual. Session and process group, limits and user stay those of this process.
    """

    _told: int | None = None
    """A pipe that says how a fork ended."""

    def _execute_child(
        self,
        args: Any,
        executable: Any,
        preexec_fn: Any,
        close_fds: Any,
        pass_fds: Any,
        cwd: Any,
        env: Any,
        startupinfo: Any,
        creationflags: Any,
        shell: Any,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        *rest: Any,
    ) -> None:
        request = None if executable or shell or preexec_fn else _request(args, cwd, env)
        if request is None:
            return super()._execute_child(  # type: ignore[misc]
                *(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo),
                *(creationflags, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite),
                *rest,
            )
        given = (p2cread, c2pwrite, errwrite)
        standard = [number if one == -1 else one for number, one in enumerate(given)]
        self._told, telling = os.pipe()
        with _ASKING:
            server = _server()
            socket.send_fds(server, [json.dumps(request).encode()], [*standard, telling])
            self.pid = json.loads(server.recv(64))
        self._child_created = True
        os.close(telling)
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._told is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc]
        if wait_flags & os.WNOHANG and not select.select([self._told], [], [], 0)[0]:
            return 0, 0
        status = json.loads(os.read(self._told, 64) or b"9")
        os.close(self._told)
        self._told = None
        return self.pid, status

    def _internal_poll(self, _deadstate: int | None = None, **more: Any) -> int | None:
        if self._told is None or self.returncode is not None:
            return super()._internal_poll(_deadstate, **more)  # type: ignore[misc]
        if self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


def run(args: Any, *, input: Any = None, timeout: float | None = None, **more: Any) -> Any:
    """As `subprocess.run` with captured output."""
    pipe = subprocess.PIPE
    options = {"stdin": pipe if input is not None else None, "stdout": pipe, "stderr": pipe, **more}
    with ForkedPopen(args, **options) as process:
        try:
            out, said = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(args, process.returncode, out, said)


def prepare() -> None:
    """Start the fork server now, not with the first program: it takes a second."""
    _server()


def _request(args: Any, cwd: Any, env: Any) -> dict[str, Any] | None:
    words = [os.fspath(word) for word in args]
    if not words or words[0] != sys.executable:
        return None
    words = words[2:] if words[1:2] == ["-P"] else words[1:]
    environment = dict(os.environ if env is None else env)
    early = (environment.get(name) != os.environ.get(name) for name in _DECIDED_EARLY)
    if words[:1] != ["-m"] or any(early):
        return None
    return {
        "module": words[1],
        "arguments": words[2:],
        "environment": environment,
        "directory": os.fspath(cwd or os.getcwd()),  # noqa: PTH109
    }


@cache
def _server() -> socket.socket:
    """One per process; it ends with it, for then its socket is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.support.fork_server", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
