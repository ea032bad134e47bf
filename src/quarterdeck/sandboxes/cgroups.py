"""Control groups: bounds of processor, memory and processes for each sandbox.

A group is made below the service's own, in every hierarchy that has one of the controllers: the
unified one (version 2), or one per controller (version 1). Where systemd manages the unified one,
it must have delegated the service's unit (`Delegate=`, see docs/operations.md).

In the unified hierarchy the processes are in a group within the one with the bounds: a sandbox of
the service's own user could otherwise lift them, because its group is the top of what it sees. What it sees
it can also freeze and kill. So where the service's group belongs to an ordinary user, each sandbox has a group
even when it has no controller, or none that is the service's to divide.
"""

import asyncio
import errno
import os
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.local.processes import PROC
from quarterdeck.sandboxes.port import Size

CONTROLLERS = ("cpu", "memory", "pids")
_PREFIX = "quarterdeck-"
_INNER = "replica"
OTHERS = "service"
"""The group of the service, where it has to leave the group in which others are made."""
SYSTEMD = Path("/run/systemd/system")
_DELEGATED = ("user.delegate", "trusted.delegate")
"""Attributes by which systemd says that a group is its unit's to divide."""
_ASK_SECONDS = 10.0
MOST_GROUPS = 100
"""Groups within that of a sandbox: where it has the service's own user, programs inside can make some,
and the service looks through all of them."""
_PERIOD = 100_000
"""Microseconds over which processor time is measured."""
_REMOVE_TRIES = 50
_STEP = 0.02


@dataclass(frozen=True)
class Bounds:
    """The bounds of a size: processors, bytes of memory, and processes with their threads."""

    processors: int
    memory: int
    processes: int


BOUNDS: dict[Size, Bounds] = {
    "small": Bounds(2, 8 << 30, 4096),
    "large": Bounds(4, 16 << 30, 8192),
}


@dataclass(frozen=True)
class Hierarchy:
    """One hierarchy of groups; groups are made in `base`."""

    base: Path
    controllers: tuple[str, ...]
    unified: bool

    def group(self, mark: str) -> Path:
        """Return the group of a sandbox, which has the bounds."""
        return self.base / f"{_PREFIX}{mark}"

    def members(self, mark: str) -> Path:
        """Return the group with the processes of a sandbox."""
        return self.group(mark) / _INNER if self.unified else self.group(mark)

    def make(self, mark: str, bounds: Bounds) -> None:
        """Make a group, or change the bounds of an existing one.

        Raises:
            OSError: this process may not.
        """
        self._enable()
        self.members(mark).mkdir(parents=True, exist_ok=True)
        for name, value in self._values(bounds):
            path = self.group(mark) / name
            # Swap is accounted for only where the kernel was built and started so.
            if path.exists() or "sw" not in name:
                path.write_text(value)

    def _enable(self) -> None:
        if not self.unified:
            return
        path = self.base / "cgroup.subtree_control"
        missing = set(self.controllers) - set(path.read_text().split())
        if not missing:
            return
        wanted = " ".join(f"+{name}" for name in sorted(missing))
        try:
            path.write_text(wanted)
        except OSError as e:
            if e.errno != errno.EBUSY:
                raise
            self._leave()
            path.write_text(wanted)

    def _leave(self) -> None:
        """Move the service and its companions out of the base: a group with processes has no parts."""
        group = self.base / OTHERS
        group.mkdir(exist_ok=True)
        for pid in (self.base / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                (group / "cgroup.procs").write_text(pid)

    def _values(self, bounds: Bounds) -> Generator[tuple[str, str]]:
        """Yield files and what is written to them, in that order."""
        quota = bounds.processors * _PERIOD
        if "pids" in self.controllers:
            yield "pids.max", str(bounds.processes)
        if self.unified:
            yield "cgroup.max.descendants", str(MOST_GROUPS)
        if self.unified and "memory" in self.controllers:
            yield "memory.max", str(bounds.memory)
            yield "memory.swap.max", "0"
        elif "memory" in self.controllers:
            # The sum with swap can never be below the memory, so it is lifted before.
            yield "memory.memsw.limit_in_bytes", "-1"
            yield "memory.limit_in_bytes", str(bounds.memory)
            yield "memory.memsw.limit_in_bytes", str(bounds.memory)
        if self.unified and "cpu" in self.controllers:
            yield "cpu.max", f"{quota} {_PERIOD}"
        elif "cpu" in self.controllers:
            yield "cpu.cfs_period_us", str(_PERIOD)
            yield "cpu.cfs_quota_us", str(quota)


class ControlGroups:
    """The groups of all sandboxes, in the hierarchies that this process could find.

    Args:
        hierarchies: those in which it may make groups.
        own: the service's group in the unified hierarchy, where a mount shows it.
    """

    def __init__(self, hierarchies: tuple[Hierarchy, ...], own: Path | None = None) -> None:
        self.hierarchies = hierarchies
        self._own = own

    def shared_with(self, uid: int) -> bool:
        """Return whether a user could change the service's group, were a sandbox of theirs in it."""
        try:
            return self._own is not None and (self._own / "cgroup.procs").stat().st_uid == uid
        except OSError:
            return False

    @property
    def missing(self) -> list[str]:
        """The controllers that no hierarchy has."""
        found = {name for one in self.hierarchies for name in one.controllers}
        return [name for name in CONTROLLERS if name not in found]

    def enter(self, mark: str, size: Size | None) -> list[str]:
        """Make the groups of a sandbox; return the directories that its processes join.

        Args:
            size: None keeps the bounds of groups that exist.

        Raises:
            OSError: this process may not.
        """
        for hierarchy in self.hierarchies:
            if size or not hierarchy.members(mark).is_dir():
                hierarchy.make(mark, BOUNDS[size or "small"])
        return [str(hierarchy.members(mark)) for hierarchy in self.hierarchies]

    def pids(self, mark: str) -> set[int]:
        """Return the processes in the groups of a sandbox."""
        found: set[int] = set()
        for hierarchy in self.hierarchies:
            for path in hierarchy.group(mark).glob("**/cgroup.procs"):
                with suppress(OSError):  # removed meanwhile
                    found.update(map(int, path.read_text().split()))
        return found

    async def remove(self, mark: str) -> bool:
        """Remove the groups of a sandbox whose processes have ended; return False if one is in use."""
        for _ in range(_REMOVE_TRIES):
            remaining = [one for one in self.hierarchies if not _remove(one.group(mark))]
            if not remaining:
                return True
            await asyncio.sleep(_STEP)  # a killed process leaves its group a little later
        return False


def _remove(group: Path) -> bool:
    if not group.is_dir():
        return True
    inner = sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
    try:
        for path in (*inner, group):
            path.rmdir()
    except OSError:
        return False
    return True


_MOUNT = re.compile(
    r"\S+ \S+ \S+ (?P<root>\S+) (?P<point>\S+) .* - (?P<kind>cgroup2?) \S+ (?P<options>\S+)"
)


def find_groups(proc: Path = PROC / "self") -> ControlGroups:
    """Find the hierarchies with a controller, by what `/proc` says of this process."""
    try:
        mounts = (proc / "mountinfo").read_text().splitlines()
        lines = (proc / "cgroup").read_text().splitlines()
    except OSError:
        return ControlGroups(())
    own = {names: path for _, names, path in (line.split(":", 2) for line in lines)}
    found: dict[tuple[str, ...], Hierarchy] = {}
    group: Path | None = None
    for mount in filter(None, map(_MOUNT.fullmatch, mounts)):
        unified = mount["kind"] == "cgroup2"
        names = next(
            (name for name in own if (not name if unified else _covers(mount["options"], name))),
            None,
        )
        place = _place(mount, own[names]) if names is not None else None
        if place is None:
            continue
        if unified:
            group = group or place
            hierarchy = _unified(place)
        else:
            hierarchy = _hierarchy(place, (names or "").split(","))
        if hierarchy is not None:
            found.setdefault(hierarchy.controllers, hierarchy)
    return ControlGroups(tuple(found.values()), group)


def _covers(options: str, names: str) -> bool:
    """Return whether a mount of version 1 is the hierarchy of these controllers."""
    return bool(names) and set(names.split(",")) <= set(options.split(","))


def _place(mount: re.Match[str], own: str) -> Path | None:
    """Return the directory of the service's group; None where the mount does not show it."""
    try:
        return Path(mount["point"]) / Path(own).relative_to(mount["root"])
    except ValueError:
        return None


def _hierarchy(base: Path, controllers: list[str], unified: bool = False) -> Hierarchy | None:
    """Return the hierarchy for the controllers that bound replicas; None without any."""
    wanted = tuple(name for name in CONTROLLERS if name in controllers)
    return Hierarchy(base, wanted, unified) if wanted and os.access(base, os.W_OK) else None


def _unified(own: Path) -> Hierarchy | None:
    """Return where groups are made in the unified hierarchy.

    That is the service's group or the one above, if the service has left that. In a group that belongs to an
    ordinary user and cannot be divided, groups without bounds are made.
    """
    candidates = [own.parent, own] if own.name == OTHERS else [own]
    base = next((one for one in candidates if _may_divide(one)), None)
    hierarchy = _hierarchy(base, _available(base), unified=True) if base else None
    if hierarchy is None and _belongs_to_user(own):
        return Hierarchy(base or own, (), unified=True)
    return hierarchy


def _belongs_to_user(group: Path) -> bool:
    """Return whether a group that this process can change is not root's alone."""
    if not all(os.access(path, os.W_OK) for path in (group, group / "cgroup.procs")):
        return False
    return os.geteuid() != 0 or group.stat().st_uid != 0


def _may_divide(base: Path) -> bool:
    if not os.access(base / "cgroup.subtree_control", os.W_OK):
        return False
    if not SYSTEMD.is_dir() or any(_attribute(base, name) == b"1" for name in _DELEGATED):
        return True
    return os.geteuid() != 0 and _delegated_by_user_manager(base.name)


def _delegated_by_user_manager(unit: str) -> bool:
    """Ask the user's own systemd, which does not set the attributes in every version."""
    systemctl = shutil.which("systemctl")
    if systemctl is None or not unit.endswith((".scope", ".service")):
        return False
    try:
        shown = subprocess.run(
            [systemctl, "--user", "show", "--property=Delegate", "--value", "--", unit],
            capture_output=True,
            env=user_manager_environment(),
            timeout=_ASK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return shown.stdout.strip() == b"yes"


def user_manager_environment() -> dict[str, str]:
    """Return the environment in which the user's systemd is found."""
    return {"XDG_RUNTIME_DIR": f"/run/user/{os.geteuid()}", **os.environ}


def _attribute(path: Path, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name)
    except OSError:
        return None


def _available(base: Path) -> list[str]:
    try:
        return (base / "cgroup.controllers").read_text().split()
    except OSError:
        return []
