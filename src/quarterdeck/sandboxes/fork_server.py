"""Starts engines as forks of one process that has loaded their code.

Loading an engine's code takes 23 MB of memory and most of its start-up time. Forks share both. Run as
`python -I -m quarterdeck.sandboxes.fork_server DESCRIPTOR MODULE... PADDING`, it loads the modules, then
reads requests from a socket until the other end is closed, or until none has come for `IDLE_SECONDS`.

Bubblewrap decides which files a sandbox sees. So for each request, a fork

1. does what `launcher` does before bubblewrap;
2. starts bubblewrap with a shell that only waits;
3. joins the namespaces that bubblewrap made, and forks the engine in them, which gives up every capability and is
   restricted as all other programs of a sandbox are.

The engine holds a pipe that the shell reads from. When the engine ends, for whatever reason, the shell exits with its
exit code, which bubblewrap then reports.

This process knows no secrets: its memory is readable in every sandbox. It has no threads, which a fork would lose.
"""

import contextlib
import ctypes
import json
import os
import resource
import runpy
import signal
import socket
import struct
import sys
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from quarterdeck.loading import loading
from quarterdeck.sandboxes import launcher

IDLE_SECONDS = 600.0
"""It takes as much memory as an engine, which is wasted while no replica is started."""

_WAIT = ("/bin/sh", "-c", 'echo; read -r code; exit "${code:-1}"')
_NAMESPACES = {
    "user": 0x10000000,
    "mnt": 0x00020000,
    "pid": 0x20000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
}
MOST_NAMESPACES = 1_024
"""Of each kind within a sandbox. The kernel also counts them for the user, about 100,000 on a large machine; they take
hardly any memory, and no sandbox could be made when a program had used up all."""
_WATCHERS = (
    *("max_inotify_instances", "max_inotify_watches"),
    *("max_fanotify_groups", "max_fanotify_marks"),
)
_PART = 2
"""A sandbox may use 1/`_PART` of its user's file watches."""
_LIMITED = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _CLEAR_ALL = 4, 24, 47, 4
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64
_STACK = slice(45, 49)
"""Where `/proc/PID/stat` has the addresses of arguments and variables, counted from the third field."""

_libc = ctypes.CDLL(None, use_errno=True)


def main(descriptor: int, modules: Sequence[str]) -> None:
    """Serve requests. A fork does not return.

    A request is one byte with four descriptors: the `LaunchSpec` as JSON, the engine's log, the file for status
    lines, and a socket for the answer, which is bubblewrap's pid, or an error and its number.
    """
    with loading():
        for name in modules:
            import_module(name)
    # Engines and bubblewrap become children of this process, and nobody has to wait for them.
    _libc.prctl(launcher.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as channel:
        channel.settimeout(IDLE_SECONDS)
        with contextlib.suppress(TimeoutError):
            while True:
                request, passed, _, _ = socket.recv_fds(channel, 1, 4)
                if not request:
                    return
                try:
                    if os.fork() == 0:
                        _end_with(_start, *passed)
                except OSError as e:
                    _refuse(passed[-1], e)
                for one in passed:
                    os.close(one)


def _refuse(reply: int, error: OSError) -> None:
    with contextlib.suppress(BrokenPipeError):  # the start was given up
        os.write(reply, json.dumps({"error": str(error), "number": error.errno}).encode())


def _end_with(work: Callable[..., int], *arguments: object) -> NoReturn:
    """Do the work of a fork, and end without what this program would do at its end."""
    code = 1
    try:
        code = work(*arguments)
    except BaseException as e:  # noqa: BLE001  # it must not get into the loop of the program that forked
        sys.excepthook(type(e), e, e.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _start(source: int, log: int, status: int, reply: int) -> int:
    """Make a sandbox and fork the engine in it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    with os.fdopen(source, "rb") as file:
        spec = json.load(file)
    lines = os.open(f"/proc/self/fd/{status}", os.O_RDONLY)
    for descriptor, number in ((os.open("/dev/null", os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(descriptor, number)
    _close_all_but(status, reply, lines)
    with socket.socket(fileno=reply) as answer:
        try:
            launcher.enter(spec)
            # The service knows the processes of a sandbox by their variables.
            _show(spec["command"][:1], spec["environment"])
            bubblewrap, shell = _start_bubblewrap(spec, status)
            try:
                first = _first_process(lines)
                watchers = {
                    name: most // _PART for name in _WATCHERS if (most := _user_limit(name))
                }
                _join(first)
                _fork_engine(spec, shell, watchers)
            except OSError:
                os.close(shell)
                os.waitpid(bubblewrap, 0)  # it writes to the file for status lines until then
                raise
        except OSError as e:
            _refuse(reply, e)
            return launcher.REFUSED
        try:
            answer.send(json.dumps({"pid": bubblewrap}).encode())
        except BrokenPipeError:  # the start was given up
            os.kill(first, signal.SIGKILL)
    return 0


def _close_all_but(*kept: int) -> None:
    first = 3
    for number in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(first, number)
        first = number + 1


def _start_bubblewrap(spec: Mapping[str, Any], status: int) -> tuple[int, int]:
    """Start bubblewrap, and wait until it has made the sandbox.

    Returns:
        Its pid, and the pipe that the shell inside reads from.

    Raises:
        OSError: it failed; the log says why.
    """
    wait, release = os.pipe()
    made, ready = os.pipe()
    bubblewrap = os.fork()
    if bubblewrap == 0:
        _end_with(_become_bubblewrap, spec, wait, ready, status)
    os.close(wait)
    os.close(ready)
    if not os.read(made, 1):
        _, ended = os.waitpid(bubblewrap, 0)
        raise OSError(f"bubblewrap ended with code {os.waitstatus_to_exitcode(ended)}")
    os.close(made)
    return bubblewrap, release


def _become_bubblewrap(spec: Mapping[str, Any], wait: int, ready: int, status: int) -> int:
    for descriptor, number in ((wait, 0), (ready, 1), (status, launcher.STATUS_FD)):
        os.dup2(descriptor, number)
    launcher.close_others()
    if spec["filter"] or spec["scoped"]:
        launcher.harden(b64decode(spec["filter"] or ""), spec["scoped"])
    os.chdir("/")
    launcher.run_bubblewrap(spec["bubblewrap"], spec["options"], list(_WAIT), spec["environment"])
    return launcher.REFUSED


def _first_process(lines: int) -> int:
    """Return the number of the sandbox's first process, from bubblewrap's status lines."""
    first = os.read(lines, 1 << 16).partition(b"\n")[0]
    return int(json.loads(first)["child-pid"])


def _join(pid: int) -> None:
    """Enter the namespaces of a process; the pid namespace counts for later children."""
    flags = 0
    for name, flag in _NAMESPACES.items():
        if not os.path.samefile(f"/proc/self/ns/{name}", f"/proc/{pid}/ns/{name}"):  # noqa: PTH121
            flags |= flag
    process = os.pidfd_open(pid)
    if _libc.setns(process, flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"join the sandbox: {os.strerror(number)}")
    os.close(process)


def _fork_engine(spec: Mapping[str, Any], shell: int, watchers: Mapping[str, int]) -> None:
    """Fork the engine, and wait until it is restricted.

    Raises:
        OSError: a restriction was refused.
    """
    # As the interpreter does when it starts; `enter` has undone it.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    refused, refusal = os.pipe()
    if os.fork() == 0:
        _end_with(_run_engine, spec, shell, refusal, watchers)
    os.close(refusal)
    with os.fdopen(refused) as file:
        if reason := file.read():
            raise OSError(reason)


def _run_engine(
    spec: Mapping[str, Any], shell: int, refusal: int, watchers: Mapping[str, int]
) -> int:
    """Become the engine, in the sandbox; return its exit code, after telling it to the shell.

    If the machine refuses a restriction, the reason goes to `refusal`: other engines would fail in the same way.
    """
    _close_all_but(shell, refusal)
    os.setsid()
    os.chdir(spec["directory"])
    try:
        _restrict(spec, watchers)
    except OSError as e:
        os.write(refusal, os.fsencode(str(e)))
        return launcher.REFUSED
    os.close(refusal)
    _show(spec["command"], spec["inside"] | {"PWD": spec["directory"]})
    code = 1
    try:
        code = _run_python(spec["command"])
    finally:
        with contextlib.suppress(BrokenPipeError):
            os.write(shell, b"%d\n" % code)
    return code


def _restrict(spec: Mapping[str, Any], watchers: Mapping[str, int]) -> None:
    _limit_user(watchers)
    if spec["processes"]:
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        limit = min(spec["processes"], hard) if hard >= 0 else spec["processes"]
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
    _drop_capabilities()
    launcher.harden(b64decode(spec["filter"] or ""), spec["scoped"])
    # Becoming another user has turned it off, and without it a process cannot read its own variables.
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def _user_limit(name: str) -> int:
    """Return a limit of this process's user namespace."""
    try:
        with open(f"/proc/sys/user/{name}", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read())
    except OSError:
        return 0  # this kernel does not have it


def _limit_user(watchers: Mapping[str, int]) -> None:
    """Limit what the sandbox's user namespace counts. This needs capabilities in that namespace."""
    namespaces = {f"max_{kind}_namespaces": MOST_NAMESPACES for kind in _LIMITED}
    for name, most in {**namespaces, **watchers}.items():
        # A kernel may not have this kind, and a machine may protect its settings.
        with (
            contextlib.suppress(OSError),
            open(f"/proc/sys/user/{name}", "w", encoding="ascii") as file,  # noqa: PTH123
        ):
            file.write(str(most))


def _run_python(command: Sequence[str]) -> int:
    """Do what `PYTHON -I -m MODULE ARGUMENT...` or `PYTHON -I -c CODE ARGUMENT...` would do."""
    _, _, option, what, *arguments = command
    sys.argv = [option, *arguments]
    try:
        if option == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _drop_capabilities() -> None:
    """Give up all capabilities, in the namespaces of the sandbox too.

    Raises:
        OSError: some remain.
    """
    _libc.prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    for number in range(_CAPABILITIES):
        _libc.prctl(
            _PR_CAPBSET_DROP, number, 0, 0, 0
        )  # fails for those that the kernel does not have
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    if _libc.capset(header, bytes(24)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"drop capabilities: {os.strerror(number)}")


def _show(command: Iterable[str], environment: Mapping[str, str]) -> None:
    """Set the variables, and let `/proc` show them and the command as those of this process."""
    os.environ.clear()
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
        fields = file.read().rpartition(b")")[2].split()
    arguments, end, variables, last = map(int, fields[_STACK])
    _write(arguments, end - arguments, command)
    _write(variables, last - variables, (f"{name}={value}" for name, value in environment.items()))
    os.environ.update(environment)


def _write(address: int, size: int, words: Iterable[str]) -> None:
    text = b""
    for word in words:
        longer = text + os.fsencode(word) + b"\0"
        if len(longer) <= size:
            text = longer
    ctypes.memmove(address, text.ljust(size, b"\0"), size)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:-1])
