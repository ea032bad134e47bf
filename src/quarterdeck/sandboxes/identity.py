"""Who runs inside a sandbox, and the account files that say so inside."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.sandboxes.port import IsolationError

USER_VARIABLE = "QD_SANDBOX_USER"
SPARE_UID = 60917
"""Stands for the sandbox's user when the service is root: between the ranges that distributions
and systemd hand out, and below 65,536, which is all a nested container may have."""

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
    """The user of this service itself, or the one that root hands sandboxes to.

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
        found = pwd.getpwuid(int(text)) if text.isdigit() else pwd.getpwnam(text)
    except KeyError as e:
        if text.isdigit():
            return int(text), int(text)
        raise IsolationError(
            f"{USER_VARIABLE} names {text!r}, and there is no such user here. "
            "Make that user, or give a number."
        ) from e
    return found.pw_uid, found.pw_gid


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def write_accounts(directory: Path, user: SandboxUser, home: str, shell: str, host: str) -> None:
    """Writes `passwd`, `group` and `hosts` as the sandbox sees them: system accounts and the user."""
    directory.mkdir(mode=0o755, exist_ok=True)
    entry = f"{INSIDE_NAME}:x:{user.uid}:{user.gid}:{INSIDE_NAME}:{home}:{shell}"
    users = _system_entries(Path("/etc/passwd"), user.uid)
    groups = _system_entries(Path("/etc/group"), user.gid)
    hosts = _lines(Path("/etc/hosts")) or ["127.0.0.1 localhost", "::1 localhost"]
    _replace(directory / "passwd", [*users, entry])
    _replace(directory / "group", [*groups, f"{INSIDE_NAME}:x:{user.gid}:"])
    _replace(directory / "hosts", [*hosts, f"127.0.1.1 {host}"])


def _system_entries(path: Path, taken: int) -> list[str]:
    kept: list[str] = []
    for line in _lines(path):
        fields = line.split(":")
        number = int(fields[2]) if len(fields) > 2 and fields[2].isdigit() else None
        if number is None or number == taken or fields[0] == INSIDE_NAME:
            continue
        if number < _SYSTEM_UIDS or number == _NOBODY:
            kept.append(":".join([*fields[:3], ""]) if len(fields) == 4 else line)
    return kept


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _replace(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o644)
