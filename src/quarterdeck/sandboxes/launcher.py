"""Becomes a sandbox: a separate program that uses only the standard library.

Reads a `LaunchSpec` (JSON) from standard input, or from the descriptor that its argument names,
then

1. joins the sandbox's control groups, and makes the kernel prefer it when memory runs out;
2. as root: makes a private mount namespace in which exactly the needed directories can be reached
   by the user who will run inside, and becomes that user, without groups and capabilities;
3. leaves the session keyring of the user who started the service, and applies what `kernel.Hardening`
   describes;
4. with bubblewrap: replaces itself by it;
5. without: stays as the parent of everything the engine starts. It is a "child subreaper", so a
   process that detaches itself becomes its child instead of leaving the tree, and when the engine
   ends, everything else is killed.

Standard output and error are the engine's log, descriptor 3 receives the status lines. With an
argument the standard streams are the command's, and the status is not read. Every other descriptor
is closed: nothing of the service leaks into a sandbox.
"""

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from base64 import b64decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # which takes longer to load than the rest

STATUS_FD = 3
CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 0x1000, 0x4000, 0x40000, 0x2, 0x4
PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 22, 36, 38
SECCOMP_MODE_FILTER = 2
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446
LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL = 0x1, 0x2
KEYCTL = {"x86_64": 250, "aarch64": 219}
KEYCTL_JOIN_SESSION_KEYRING = 1
EXPENDABLE = 500
"""Added to `oom_score_adj`, in thousandths of the memory: the kernel ends sandboxes before the
service when memory runs out, unless the service itself uses half of it."""
ZEROED = (resource.RLIMIT_CORE, resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE)
"""Limits of what a sandbox does not get: core dumps, and priorities with which its programs would run before
all others, whatever the share of its control group is."""
COUNTED = (resource.RLIMIT_SIGPENDING, resource.RLIMIT_MSGQUEUE)
"""Limits of what the kernel counts for a user: pending signals with timers, and bytes of message queues."""
SHARE = 4
"""A sandbox may use 1/`SHARE` of these; the rest is for other programs of its user."""
REFUSED = 70
"""Exit code when the sandbox cannot be made; the reason is on standard error."""

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, action: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None) -> None:
    def text(value: str | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    result = _libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data))
    _check(result, f"mount {target}")


def closed_ancestor(path: str, uid: int, gid: int) -> str | None:
    """Return the topmost directory above `path` that a user without groups cannot pass through."""
    current = "/"
    for part in path.strip("/").split("/")[:-1]:
        current = os.path.join(current, part)  # noqa: PTH118
        status = os.stat(current)  # noqa: PTH116
        if status.st_uid == uid:
            needed = 0o100
        elif status.st_gid == gid:
            needed = 0o010
        else:
            needed = 0o001
        if not status.st_mode & needed:
            return current
    return None


def expose(paths: list[str], uid: int, gid: int) -> None:
    """Make `paths` reachable for a user, in a mount namespace of this process alone.

    A directory that is closed to the user is covered by an empty one, in which only the needed
    paths are bound again; everything else in it is hidden.
    """
    _check(_libc.unshare(CLONE_NEWNS), "unshare the mount namespace")
    _mount(None, "/", None, MS_REC | MS_PRIVATE, None)
    covered = [(path, closed_ancestor(path, uid, gid)) for path in paths]
    descriptors = [
        (path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path, cover in covered if cover
    ]
    for cover in sorted({cover for _, cover in covered if cover}):
        _mount("tmpfs", cover, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m")
    for path, descriptor in descriptors:
        _bind(path, descriptor)
        os.close(descriptor)


def _bind(path: str, descriptor: int) -> None:
    source = f"/proc/self/fd/{descriptor}"
    # An earlier bind shows the real file: it may be running, and is never opened for writing.
    if not os.path.exists(path):  # noqa: PTH110
        _make_target(path, os.path.isdir(source))  # noqa: PTH112
    _mount(source, path, None, MS_BIND | MS_REC, None)


def _make_target(path: str, directory: bool) -> None:
    if directory:
        os.makedirs(path, mode=0o755)  # noqa: PTH103
        return
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)  # noqa: PTH103, PTH120
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def become(uid: int, gid: int) -> None:
    """Drop to a user for good.

    Raises:
        PermissionError: some of root's rights remain.
    """
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if 0 in os.getresuid() + os.getresgid() or _capable():
        raise PermissionError("root's rights could not be dropped")


def _capable() -> bool:
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123
        lines = [line.split() for line in status if line.startswith(("CapEff", "CapPrm"))]
    return any(int(fields[1], 16) for fields in lines)


def join_groups(directories: list[str]) -> None:
    """Move this process into control groups."""
    for directory in directories:
        with open(f"{directory}/cgroup.procs", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("0")


def become_expendable() -> None:
    """Make the kernel end this process, and what it starts, before others of this machine."""
    with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as file:  # noqa: PTH123
        score = min(1000, int(file.read()) + EXPENDABLE)
        file.seek(0)
        file.write(str(score))


def take_share() -> None:
    """Leave most of what the kernel counts for a user to other programs of that user.

    A user namespace takes these limits over when it is made, so they also hold for all within it together.
    """
    for name in COUNTED:
        limit, _ = resource.getrlimit(name)
        if limit != resource.RLIM_INFINITY:
            resource.setrlimit(name, (limit // SHARE, limit // SHARE))


def leave_session_keyring() -> None:
    """Take a new session keyring.

    Where the kernel has no keyrings, a container forbids the call or too many keys exist, the
    filter of system calls still keeps the old one out of reach.
    """
    number = KEYCTL.get(os.uname().machine)
    if number is not None:
        _libc.syscall(number, ctypes.c_int(KEYCTL_JOIN_SESSION_KEYRING), None)


def harden(program: bytes, scoped: bool) -> None:
    """Restrict this process and all that it starts, permanently.

    Args:
        program: a seccomp filter; empty for none.
        scoped: keep abstract unix sockets and signals within the sandbox, by Landlock.
    """
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "forbid new privileges")
    if scoped:
        scopes = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL
        rules = struct.pack("=QQQ", 0, 0, scopes)
        size, flags = ctypes.c_size_t(len(rules)), ctypes.c_uint(0)
        ruleset = _libc.syscall(LANDLOCK_CREATE_RULESET, rules, size, flags)
        _check(min(ruleset, 0), "create a Landlock ruleset")
        _check(_libc.syscall(LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), flags), "use Landlock")
        os.close(ruleset)
    if program:
        filter = ctypes.create_string_buffer(program)
        description = struct.pack("@HP", len(program) // 8, ctypes.addressof(filter))
        result = _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, description, 0, 0)
        _check(result, "filter system calls")


def enter(spec: "dict[str, Any]") -> None:
    """Leave the service behind: its control groups, user, signals, limits and keys.

    Raises:
        OSError: something of it could not be left.
    """
    os.umask(0o022)
    uid, gid = spec["uid"], spec["gid"]
    join_groups(spec["groups"])
    become_expendable()
    if spec["expose"]:
        expose(spec["expose"], uid, gid)
    if uid is not None:
        become(uid, gid)
    if os.geteuid() == 0:
        raise PermissionError("nothing is ever run as root")
    restore_signals()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spec["open_files"], hard))
    for name in ZEROED:
        resource.setrlimit(name, (0, 0))
    take_share()
    leave_session_keyring()


def limited_command(command: list[str], processes: int) -> list[str]:
    """Return a command that runs another with a limit of processes and threads.

    It has to run inside: only there are the sandbox's processes counted separately. Shells name
    this limit differently, and a lower one that holds already is kept.
    """
    script = 'ulimit -u "$0" 2>/dev/null || ulimit -p "$0" 2>/dev/null; exec "$@"'
    return ["/bin/sh", "-c", script, str(processes), *command]


def read_spec(arguments: list[str]) -> bytes:
    """Read the specification; standard input is empty afterwards, or the command's."""
    if not arguments:
        text = sys.stdin.buffer.read()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        return text
    with os.fdopen(int(arguments[0]), "rb") as file:
        text = file.read()
    os.dup2(os.open("/dev/null", os.O_WRONLY), STATUS_FD)
    os.set_inheritable(STATUS_FD, True)  # it may have been opened with that number
    return text


def close_others() -> None:
    """Close descriptors that were inherited by accident."""
    os.closerange(STATUS_FD + 1, max(map(int, os.listdir("/proc/self/fd"))) + 1)  # noqa: PTH208


def restore_signals() -> None:
    """Undo changes of signals by Python and the service's shell, which exec would pass on."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def run_bubblewrap(
    program: str, options: list[str], command: list[str], environment: dict[str, str]
) -> None:
    """Replace this process. Options go through a descriptor: `/proc/1/cmdline` shows none."""
    descriptor = os.memfd_create("options", 0)
    os.write(descriptor, b"".join(os.fsencode(option) + b"\0" for option in options))
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.execve(program, [program, "--args", str(descriptor), "--", *command], environment)


def supervise(command: list[str], environment: dict[str, str]) -> int:
    """Run the engine as a child and end everything it started once it ends."""
    _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "become a subreaper")
    engine = os.fork()
    if engine == 0:
        os.close(STATUS_FD)
        _execute(command, environment)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    os.write(STATUS_FD, json.dumps({"child-pid": os.getpid()}).encode() + b"\n")
    code = _wait_for(engine)
    os.write(STATUS_FD, json.dumps({"exit-code": code}).encode() + b"\n")
    end_children()
    return code


def _execute(command: list[str], environment: dict[str, str]) -> None:
    try:
        os.execve(command[0], command, environment)
    except OSError as e:
        print(f"{command[0]}: {e.strerror}", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(127)


def _wait_for(engine: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == engine:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def end_children() -> None:
    """Kill every descendant: grandchildren of a killed child become children."""
    while True:
        for pid in _children():
            os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    children: list[int] = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and _parent(name) == os.getpid():
            children.append(int(name))
    return children


def _parent(name: str) -> int | None:
    try:
        with open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return None


def main() -> int:
    """Start the sandbox that the specification on the given descriptor describes."""
    text = read_spec(sys.argv[1:])
    if not text:
        return 0  # the service ended, or needs no further sandbox
    spec = json.loads(text)
    close_others()
    enter(spec)
    if spec["filter"] or spec["scoped"]:
        harden(b64decode(spec["filter"] or ""), spec["scoped"])
    command, environment = spec["command"], spec["environment"]
    if spec["processes"]:
        command = limited_command(command, spec["processes"])
    if spec["bubblewrap"]:
        os.chdir("/")
        run_bubblewrap(spec["bubblewrap"], spec["options"], command, environment)
    os.chdir(spec["directory"])
    return supervise(command, environment)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(f"the sandbox could not be created: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(REFUSED)
