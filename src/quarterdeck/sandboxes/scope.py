"""Puts the service into a unit of systemd in which it may make control groups.

A service that a person starts is in the unit of their login, which is not the service's to divide. The user's
systemd, or the machine's for root, makes a scope with `Delegate=yes` for it. The scope has a name for each
installation, keeps the replicas when the service ends, and takes the next service in; systemd removes it
after the last process.
"""

import asyncio
import hashlib
import logging
import os
import pwd
import shutil
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.local.processes import PROC, end_process
from quarterdeck.sandboxes.cgroups import OTHERS, SYSTEMD, find_groups, user_manager_environment

_LINGER = Path("/var/lib/systemd/linger")
_MANAGER = (
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
)
_SECONDS = 10.0
_STEP = 0.02

log = logging.getLogger(__name__)


async def enter_scope(home: Home) -> None:
    """Move this process into the scope of an installation, where that gives it control groups.

    A service that systemd itself started as a unit stays there: it is not ours to move.
    """
    if not SYSTEMD.is_dir() or not find_groups().missing or not _unit().endswith(".scope"):
        return
    if not stays_after_logout() or shutil.which("busctl") is None:
        return
    name = scope_name(home)
    error = await _attach(name)
    if error is not None:
        error = await _start(name, home)
    if error is not None:
        log.warning("systemd makes no scope, so replicas are not limited: %s", error)


def stays_after_logout() -> bool:
    """Return whether units of this user's systemd continue when the last login ends."""
    if os.geteuid() == 0:
        return True
    try:
        return (_LINGER / pwd.getpwuid(os.geteuid()).pw_name).exists()
    except KeyError:
        return False


def scope_name(home: Home) -> str:
    """Return the name of an installation's scope."""
    return f"quarterdeck-{hashlib.sha256(bytes(home.root.resolve())).hexdigest()[:12]}.scope"


def _unit() -> str:
    """Return the last part of this process's group in the unified hierarchy."""
    lines = (PROC / "self/cgroup").read_text().splitlines()
    paths = [line.removeprefix("0::") for line in lines if line.startswith("0::")]
    return Path(paths[0]).name if paths else ""


async def _attach(name: str) -> str | None:
    """Move into a scope in which replicas of an earlier service run."""
    arguments = ("AttachProcessesToUnit", "ssau", name, f"/{OTHERS}", "1", str(os.getpid()))
    return await _call(*arguments) or await _wait_for(OTHERS)


async def _start(name: str, home: Home) -> str | None:
    properties = (
        *("Description", "s", f"Quarterdeck at {home.root}"),
        *("PIDs", "au", "1", str(os.getpid())),
        *("Delegate", "b", "true"),
        *("CollectMode", "s", "inactive-or-failed"),
    )
    arguments = ("StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail", "4", *properties, "0")
    return await _call(*arguments) or await _wait_for(name)


async def _call(method: str, *arguments: str) -> str | None:
    """Call the manager of units; return the error, if any."""
    bus = "--system" if os.geteuid() == 0 else "--user"
    process = await asyncio.create_subprocess_exec(
        *("busctl", bus, f"--timeout={_SECONDS:.0f}", "call", *_MANAGER, method, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=user_manager_environment(),
    )
    try:
        _, error = await process.communicate()
    finally:
        await end_process(process)
    if process.returncode == 0:
        return None
    return error.decode(errors="replace").strip() or f"busctl ended with {process.returncode}"


async def _wait_for(group: str) -> str | None:
    for _ in range(int(_SECONDS / _STEP)):
        if _unit() == group:
            return None
        await asyncio.sleep(_STEP)
    return f"this process did not get into {group}"
