"""The bubblewrap profile: what a sandbox sees, as the program's options."""

from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.sandboxes.interpreter import SYSTEM
from quarterdeck.sandboxes.launcher import STATUS_FD
from quarterdeck.sandboxes.layout import (
    DOORWAY_INSIDE,
    INSIDE,
    MIRRORS_INSIDE,
    PROGRAMS_INSIDE,
    Places,
)

_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)


@dataclass(frozen=True)
class Profile:
    """What differs from sandbox to sandbox. `mirrors` maps repository ids to object directories,
    `shown` are paths that a sandbox can do without.
    """

    places: Places
    hostname: str
    environment: dict[str, str]
    read_only: tuple[Path, ...]
    mirrors: dict[str, Path] = field(default_factory=dict[str, Path])
    shown: tuple[Path, ...] = ()


def options(profile: Profile) -> list[str]:
    """The options for one sandbox, without the command.

    No `--die-with-parent`: the sandbox outlives the service. The network is shared. Processes
    cannot gain rights, but may make user namespaces, so agents can bring sandboxes of their own.
    """
    return [
        *_NAMESPACES,
        *("--hostname", profile.hostname, "--new-session", "--cap-drop", "ALL"),
        *("--json-status-fd", str(STATUS_FD)),
        *_system(),
        *_scratch(),
        *_own(profile),
        *_environment(profile.environment),
        *("--chdir", INSIDE.workspace_dir, "--remount-ro", "/"),
    ]


def _system() -> list[str]:
    found: list[str] = []
    for directory in SYSTEM:
        if directory.name not in _ROOT_LINKS:
            found += ["--ro-bind-try", str(directory), str(directory)]
    for name in _ROOT_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            found += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            found += ["--ro-bind", str(path), str(path)]
    return found


def _scratch() -> list[str]:
    made = ["--proc", "/proc", "--dev", "/dev", "--dir", "/home", "--dir", "/var"]
    for name in ("/tmp", "/var/tmp", "/run"):
        made += ["--perms", "1777" if name != "/run" else "0755", "--tmpfs", name]
    if Path("/etc/ssl/private").is_dir():
        made += ["--tmpfs", "/etc/ssl/private"]
    return made + _resolver()


def _resolver() -> list[str]:
    """Name servers: often a link into `/run`, which is empty inside."""
    try:
        true = Path("/etc/resolv.conf").resolve(strict=True)
    except OSError:
        return []
    return [] if true.is_relative_to("/etc") else ["--ro-bind", str(true), str(true)]


def _own(profile: Profile) -> list[str]:
    places = profile.places
    bound = [
        *("--bind", str(places.home), INSIDE.home_dir),
        *("--bind", str(places.files), INSIDE.workspace_dir),
        *("--bind", str(places.state), INSIDE.state_dir),
        *("--bind", str(places.run), INSIDE.run_dir),
        *("--ro-bind", str(places.doorway), DOORWAY_INSIDE),
        *("--ro-bind", str(places.programs), PROGRAMS_INSIDE),
    ]
    for name in ("passwd", "group", "hosts"):
        # a missing or linked file cannot be mounted upon
        if Path("/etc", name).is_file() and not Path("/etc", name).is_symlink():
            bound += ["--ro-bind", str(places.etc / name), f"/etc/{name}"]
    for directory in profile.read_only:
        bound += ["--ro-bind", str(directory), str(directory)]
    for path in profile.shown:
        bound += ["--ro-bind-try", str(path), str(path)]
    for repository_id, objects in profile.mirrors.items():
        bound += ["--ro-bind", str(objects), f"{MIRRORS_INSIDE}/{repository_id}/objects"]
    return bound


def _environment(environment: dict[str, str]) -> list[str]:
    found = ["--clearenv"]
    for name, value in environment.items():
        found += ["--setenv", name, value]
    return found
