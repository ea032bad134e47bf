"""Processes of a sandbox and their identity."""

import asyncio
import os
import pwd
import time
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.local.files import write_file
from quarterdeck.local.processes import (
    PROC,
    ProcessRef,
    find,
    is_running,
    process_ids,
    read_environment,
    read_stat,
)
from quarterdeck.sandboxes.errors import IsolationError

MARKER = "QUARTERDECK_SANDBOX"
"""Environment variable of every process of a sandbox; see `Places.mark`."""

_STEP = 0.01


def parent_of(ref: ProcessRef) -> ProcessRef | None:
    """Return the process that started this one, or took it over."""
    stat = read_stat(ref.pid)
    return find(stat.parent) if stat and stat.started == ref.started else None


async def wait_for_end(ref: ProcessRef, seconds: float) -> bool:
    """Wait for the end of a process; return False when it still runs after `seconds`."""
    end = time.monotonic() + seconds
    while is_running(ref):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(_STEP)
    return True


def reap(pid: int) -> int | None:
    """Collect a child that has ended; return its exit code, None while it runs, -1 when not ours."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return -1
    if ended == 0:
        return None
    return os.waitstatus_to_exitcode(status)


def is_namespace_init(ref: ProcessRef) -> bool:
    """Return whether the process is the first one of a pid namespace that was made in ours."""
    try:
        lines = (PROC / str(ref.pid) / "status").read_text().splitlines()
    except OSError:
        return False
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), None)
    return numbers is not None and len(numbers) == 2 and numbers[-1] == "1"


def is_marked(ref: ProcessRef, mark: str) -> bool:
    """Return whether the process belongs to the sandbox with this mark."""
    return f"{MARKER}={mark}".encode() in read_environment(ref.pid)


def find_marked(pid: int, mark: str) -> ProcessRef | None:
    """Return the process of that number if it belongs to the sandbox with this mark.

    A number that others report may by now be another process's, even one of the machine.
    """
    ref = find(pid)
    if ref is None or not is_marked(ref, mark):
        return None
    return ref if is_running(ref) else None


def marked(mark: str) -> list[ProcessRef]:
    """Return every running process of the sandbox with this mark."""
    return [ref for ref in map(find, process_ids()) if ref and is_marked(ref, mark)]


USER_VARIABLE = "QD_SANDBOX_USER"
SPARE_UID = 60917
"""The sandbox's user when the service is root: between the ranges that distributions and systemd
use, and below 65,536, the limit of a nested container."""

INSIDE_NAME = "agent"
_SYSTEM_UIDS = 1000
_NOBODY = 65534


@dataclass(frozen=True)
class SandboxUser:
    """The user inside. `drop` says that the launcher starts as root and must become this user."""

    uid: int
    gid: int
    name: str
    drop: bool


def sandbox_user(configured: str | None) -> SandboxUser:
    """Return the user of this service, or the one for sandboxes of root.

    Raises:
        IsolationError: the configured user does not exist, or is root.
    """
    if os.geteuid() != 0:
        uid = os.geteuid()
        return SandboxUser(uid, os.getegid(), _name_of(uid), drop=False)
    configured = configured or os.environ.get(USER_VARIABLE)
    user = _configured(configured) if configured else (SPARE_UID, SPARE_UID)
    if 0 in user:
        raise IsolationError(
            f"{USER_VARIABLE} names root or its group, and sandboxes never run as root. "
            "Name another user, or unset it."
        )
    return SandboxUser(user[0], user[1], _name_of(user[0]), drop=True)


def _configured(text: str) -> tuple[int, int]:
    try:
        account = pwd.getpwuid(int(text)) if text.isdigit() else pwd.getpwnam(text)
    except KeyError as e:
        if text.isdigit():
            return int(text), int(text)
        raise IsolationError(
            f"{USER_VARIABLE} names {text!r}, and there is no such user here. "
            "Create that user, or give a number."
        ) from e
    return account.pw_uid, account.pw_gid


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def write_accounts(directory: Path, user: SandboxUser, home: str, shell: str, host: str) -> None:
    """Write `passwd`, `group` and `hosts` as the sandbox sees them: system accounts and the user."""
    directory.mkdir(mode=0o755, exist_ok=True)
    entry = f"{INSIDE_NAME}:x:{user.uid}:{user.gid}:{INSIDE_NAME}:{home}:{shell}"
    users = _system_entries(Path("/etc/passwd"), user.uid)
    groups = _system_entries(Path("/etc/group"), user.gid)
    hosts = _lines(Path("/etc/hosts")) or ["127.0.0.1 localhost", "::1 localhost"]
    _replace(directory / "passwd", [*users, entry])
    _replace(directory / "group", [*groups, f"{INSIDE_NAME}:x:{user.gid}:"])
    _replace(directory / "hosts", [*hosts, f"127.0.1.1 {host}"])


def _system_entries(path: Path, excluded: int) -> list[str]:
    entries: list[str] = []
    for line in _lines(path):
        fields = line.split(":")
        number = int(fields[2]) if len(fields) > 2 and fields[2].isdigit() else None
        if number is None or number == excluded or fields[0] == INSIDE_NAME:
            continue
        if number < _SYSTEM_UIDS or number == _NOBODY:
            entries.append(":".join([*fields[:3], ""]) if len(fields) == 4 else line)
    return entries


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _replace(path: Path, lines: list[str]) -> None:
    write_file(path, "\n".join(lines) + "\n", mode=0o644, durable=False)
