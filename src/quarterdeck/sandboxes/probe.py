"""Finds how sandboxes can run here, by running one that only imports the package."""

import asyncio
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.local.processes import find, send
from quarterdeck.sandboxes.cgroups import SYSTEMD, ControlGroups
from quarterdeck.sandboxes.counters import counter_gap
from quarterdeck.sandboxes.errors import IsolationError
from quarterdeck.sandboxes.kernel import find_hardening
from quarterdeck.sandboxes.launch import spawn
from quarterdeck.sandboxes.layout import Places, make_directory, read_tail
from quarterdeck.sandboxes.port import Gap, Isolation
from quarterdeck.sandboxes.processes import SandboxUser, reap, sandbox_user
from quarterdeck.sandboxes.record import CloneBook
from quarterdeck.sandboxes.sandbox import Confinement, describe, installed_memory
from quarterdeck.sandboxes.scope import stays_after_logout
from quarterdeck.sandboxes.trees import remove_abandoned, remove_tree, temporary_name

_TRIAL = "trial"
_JOIN = 'for group; do echo 0 > "$group/cgroup.procs" || exit 1; done'
_SECONDS = 15.0
_STEP = 0.005
_COMMAND = (sys.executable, "-I", "-c", "import quarterdeck")
_INSTALL = "Install it (Debian, Ubuntu: apt install bubblewrap) and restart the service."
_SWITCHES = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "user/max_user_namespaces": ("0", "10000"),
}
_SHARED = (
    "network: shared with this machine, its loopback addresses included",
    "disk: shared; what fills it is killed",
)
_SHARED_GROUP = Gap(
    "programs in sandboxes can end the service and other replicas, through the control group that they share",
    "Start the service in a group in which it may make others: a unit with Delegate=yes, or a container whose "
    "/sys/fs/cgroup is writable.",
)
_UNCONFINED = (
    "files: everything that the user inside may read or write on this machine",
    "processes: a program that kills its supervisor and clears its environment outlives `stop`",
)


@dataclass(frozen=True)
class Machine:
    """The result: how sandboxes are run here, and its description."""

    confinement: Confinement
    isolation: Isolation


async def examine(home: Home, configured_user: str | None, groups: ControlGroups) -> Machine:
    """Try bubblewrap, then plain processes.

    Raises:
        IsolationError: neither works; the text says why and what to do.
        OSError: the home cannot be written.
    """
    user = sandbox_user(configured_user)
    grouped, unlimited = await _try_groups(groups)
    apart = grouped and any(one.unified for one in groups.hierarchies)
    shared = [] if apart or not groups.shared_with(user.uid) else [_SHARED_GROUP]
    program = shutil.which("bwrap")
    reason = f"bubblewrap is not installed. {_INSTALL}"
    if program:
        confinement, gaps = _confinement(program, user, grouped)
        error = await _try(home, confinement)
        if error is None:
            gaps += shared
            return Machine(confinement, _isolation(confinement, None, _SHARED, gaps, unlimited))
        reason = _bubblewrap_reason(program, error)
    confinement, gaps = _confinement(None, user, grouped)
    error = await _try(home, confinement)
    if error is not None:
        raise _impossible(user, reason, error)
    gaps += shared
    note = f"Sandboxes are not kept apart: {reason}"
    return Machine(
        confinement, _isolation(confinement, note, (*_UNCONFINED, *_SHARED), gaps, unlimited)
    )


def _confinement(
    program: str | None, user: SandboxUser, grouped: bool
) -> tuple[Confinement, list[Gap]]:
    hardening, gaps = find_hardening(program)
    return Confinement(program, user, hardening, grouped), gaps


def _isolation(
    confinement: Confinement,
    note: str | None,
    limits: tuple[str, ...],
    gaps: list[Gap],
    unlimited: Gap | None,
) -> Isolation:
    user = _account(confinement.user)
    # Without limits of memory nothing but these numbers bounds what a replica takes of it.
    last = unlimited or counter_gap(installed_memory())
    every = (*gaps, last) if last else tuple(gaps)
    return Isolation(confinement.mode, user, note, limits, unlimited is None, every)


async def _try_groups(groups: ControlGroups) -> tuple[bool, Gap | None]:
    """Make the control groups of a sandbox.

    Returns:
        Whether sandboxes have groups, and what they do not limit, if anything.
    """
    mark = temporary_name(_TRIAL)
    reason = f"there is no control group for {', '.join(groups.missing)}"
    made = False
    try:
        entered = await asyncio.to_thread(groups.enter, mark, "small")
        made = bool(entered) and await _can_join(entered)
        reason = reason if made or not entered else "control groups cannot be joined"
    except OSError as e:
        reason = f"control groups cannot be made: {e.strerror or e}"
    finally:
        await groups.remove(mark)
    if made and not groups.missing:
        return True, None
    return made, Gap(f"replicas are not limited by their size: {reason}", unlimited_step())


async def _can_join(groups: list[str]) -> bool:
    """Try it: the kernel refuses some groups that can be made, such as those of threads."""
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", _JOIN, "sh", *groups), stderr=asyncio.subprocess.DEVNULL
    )
    return await process.wait() == 0


def unlimited_step() -> str:
    """Return the step after which the service could make control groups."""
    if not SYSTEMD.is_dir():
        return "Run the service as root, or in a control group of version 2 that it may divide."
    if not stays_after_logout():
        return "Run: loginctl enable-linger, then qd stop and qd: the service then gets a unit."
    return "Start the service from a login (qd stop; qd), or in a unit with Delegate=yes."


def _account(user: SandboxUser) -> str:
    return user.name if user.name.startswith("uid ") else f"{user.name} (uid {user.uid})"


def _impossible(user: SandboxUser, bubblewrap: str, plain: str) -> IsolationError:
    if not user.drop:
        return IsolationError("No sandbox can be run here.", f"{bubblewrap}\n{plain}")
    return IsolationError(
        "The service runs as root, sandboxes never do, and handing them to another user does not "
        "work here. Run qd as an ordinary user.",
        f"{bubblewrap}\nAs {_account(user)}, without bubblewrap: {plain}",
    )


def _bubblewrap_reason(program: str, output: str) -> str:
    last = output.splitlines()[-1] if output else "no reason given"
    for name, (forbidden, allowed) in _SWITCHES.items():
        if _setting(name) == forbidden:
            key = name.replace("/", ".")
            return (
                f"this machine forbids user namespaces to ordinary users ({key} is {forbidden}; "
                f"bubblewrap says: {last}). Allow them: sysctl -w {key}={allowed}"
            )
    step = f". Run: chmod u-s {program}" if Path(program).stat().st_mode & stat.S_ISUID else ""
    return f"bubblewrap does not work here: {last}{step}"


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None


async def _try(home: Home, confinement: Confinement) -> str | None:
    """Run the trial; return None when it worked, else its output."""
    places = Places(home.workspaces / temporary_name(_TRIAL), home)
    try:
        await asyncio.to_thread(_prepare, home, places, confinement.user)
        with tempfile.TemporaryFile() as log, places.status.open("wb") as status:
            spec = describe(confinement, places, _COMMAND, {}, CloneBook())
            pid = spawn(spec, log.fileno(), status.fileno())
            code = await _exit_code(pid)
            return None if code == 0 else read_tail(log.fileno()) or f"exit code {code}"
    finally:
        await asyncio.to_thread(remove_tree, places.root)


def _prepare(home: Home, places: Places, user: SandboxUser) -> None:
    remove_abandoned(home.workspaces, _TRIAL)
    for directory in (home.root, home.workspaces, places.root):
        directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    for directory in places.owned_inside:
        make_directory(directory, user)


async def _exit_code(pid: int) -> int:
    end = time.monotonic() + _SECONDS
    try:
        while (code := reap(pid)) is None:
            if time.monotonic() > end:
                return -1
            await asyncio.sleep(_STEP)
        return code
    finally:
        if ref := find(pid):
            send(ref, signal.SIGKILL)
            await asyncio.to_thread(os.waitpid, pid, 0)
