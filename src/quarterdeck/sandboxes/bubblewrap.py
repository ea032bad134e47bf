"""Isolation by bubblewrap: the files that a sandbox sees.

They include the user's programs, and no more of the user's home than these need. A program is
followed through links to the real file, and from there to what it needs: its package, its virtual
environment, the interpreter of its first line. Each keeps its own path, because scripts contain
absolute ones; a small script in the sandbox's own directory of programs calls the program, so that
no directory of the PATH has to exist.
"""

import logging
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.local.programs import find_program, person_path
from quarterdeck.sandboxes.interpreter import (
    SYSTEM,
    SYSTEM_PATH,
    always_visible,
    is_python,
    names_of,
    package_of,
    shim_target,
    user_packages,
)
from quarterdeck.sandboxes.launcher import STATUS_FD, closed_ancestor
from quarterdeck.sandboxes.layout import (
    INSIDE,
    MIRRORS_INSIDE,
    PROGRAMS_INSIDE,
    SOCKETS_INSIDE,
    Places,
)
from quarterdeck.sandboxes.processes import SandboxUser

_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)


@dataclass(frozen=True)
class SandboxProfile:
    """The settings that differ from sandbox to sandbox.

    `mirrors` maps repository ids to object directories, `shown` are optional paths.
    """

    places: Places
    user: SandboxUser
    hostname: str
    environment: dict[str, str]
    read_only: tuple[Path, ...]
    memory: int | None
    """Bytes that it may use; None where file systems in memory cannot have a size."""
    mirrors: dict[str, Path] = field(default_factory=dict[str, Path])
    shown: tuple[Path, ...] = ()
    directory: str = INSIDE.workspace_dir
    tied: bool = False
    """Whether it ends with the process that started it."""


def options(profile: SandboxProfile) -> list[str]:
    """Return the options for one sandbox, without the command.

    No `--die-with-parent` for an engine: its sandbox outlives the service. The network is shared.
    Processes cannot gain rights, but may create user namespaces, so agents can use their own
    sandboxes.
    """
    return [
        *_NAMESPACES,
        *(["--die-with-parent"] if profile.tied else []),
        *("--hostname", profile.hostname, "--new-session", "--cap-drop", "ALL"),
        *("--json-status-fd", str(STATUS_FD)),
        *_scratch(profile.memory),
        *_system(),
        *_own(profile),
        *_masks(profile),
        *_environment(profile.environment),
        *("--chdir", profile.directory, "--remount-ro", "/"),
    ]


def _system() -> list[str]:
    arguments: list[str] = []
    for directory in SYSTEM:
        if directory.name not in _ROOT_LINKS:
            arguments += ["--ro-bind-try", str(directory), str(directory)]
    for name in _ROOT_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    if Path("/etc/ssl/private").is_dir():
        arguments += ["--tmpfs", "/etc/ssl/private"]
    return arguments + _resolver()


_IN_MEMORY = {
    "/tmp": ("1777", 2),
    "/var/tmp": ("1777", 4),
    "/dev/shm": ("1777", 8),
    "/run": ("0755", 16),
}
"""File systems in memory: the mode, and the part of the replica's memory that it may fill. Together they are
less than all of it: killing programs would not empty them."""


def _scratch(memory: int | None) -> list[str]:
    arguments = ["--proc", "/proc", "--dev", "/dev", "--dir", "/home", "--dir", "/var"]
    for name, (mode, part) in _IN_MEMORY.items():
        size = [] if memory is None else ["--size", str(memory // part)]
        arguments += ["--perms", mode, *size, "--tmpfs", name]
    return [*arguments, "--remount-ro", "/dev"]


def _resolver() -> list[str]:
    """Return options for name servers: often a link into `/run`, which is empty inside."""
    try:
        target = Path("/etc/resolv.conf").resolve(strict=True)
    except OSError:
        return []
    return [] if target.is_relative_to("/etc") else ["--ro-bind", str(target), str(target)]


def _own(profile: SandboxProfile) -> list[str]:
    places = profile.places
    arguments = [
        *("--bind", str(places.home), INSIDE.home_dir),
        *("--bind", str(places.files), INSIDE.workspace_dir),
        *("--bind", str(places.state), INSIDE.state_dir),
        *("--bind", str(places.run), INSIDE.run_dir),
        *("--ro-bind", str(places.inside_sockets), SOCKETS_INSIDE),
        *("--ro-bind", str(places.programs), PROGRAMS_INSIDE),
    ]
    for name in ("passwd", "group", "hosts"):
        # a missing or linked file cannot be a mount point
        if Path("/etc", name).is_file() and not Path("/etc", name).is_symlink():
            arguments += ["--ro-bind", str(places.etc / name), f"/etc/{name}"]
    for directory in profile.read_only:
        arguments += ["--ro-bind", str(directory), str(directory)]
    for path in profile.shown:
        arguments += ["--ro-bind-try", str(path), str(path)]
    for repository_id, objects in profile.mirrors.items():
        arguments += ["--ro-bind", str(objects), f"{MIRRORS_INSIDE}/{repository_id}/objects"]
    return arguments


def _masks(profile: SandboxProfile) -> list[str]:
    """Cover the service's home wherever the sandbox would see it, except for its shown parts.

    The home may be below a directory of the system, below a shown directory, or be mounted there a
    second time. Its keys and other workspaces must stay hidden, and an ordinary user's sandbox runs
    as their owner.
    """
    places = set(_places_of_home(profile))
    arguments: list[str] = []
    for place in sorted(places):
        if not places.isdisjoint(place.parents):
            continue
        arguments += ["--tmpfs", str(place)]
        for path in (*profile.read_only, *profile.shown):
            if path.is_relative_to(place):
                arguments += ["--ro-bind-try", str(path), str(path)]
        arguments += ["--remount-ro", str(place)]
    return arguments


def _places_of_home(profile: SandboxProfile) -> Iterator[Path]:
    """Yield each path under which the bound directories show the home or a part of it."""
    home = profile.places.installation
    parts = (home.root, home.service, home.workspaces, home.archives, home.mirrors, home.client)
    hidden = {alias for part in parts for alias in _aliases(part.resolve())}
    for directory in (*SYSTEM, *profile.read_only, *profile.shown):
        target = directory.resolve()
        for path in hidden:
            if path.is_relative_to(target) and path.is_dir() and not _closed(path, target, profile):
                yield directory / path.relative_to(target)


def _closed(path: Path, directory: Path, profile: SandboxProfile) -> bool:
    """Return whether root's sandbox cannot reach a path below a directory: it may not exist there.

    The launcher covers directories that are closed to the user inside, with their content.
    """
    user = profile.user
    closed = closed_ancestor(str(path), user.uid, user.gid) if user.drop else None
    return closed is not None and Path(closed).is_relative_to(directory)


def _aliases(path: Path) -> Iterator[Path]:
    """Yield every path of a directory: itself, and the same directory in other mounts of its disk."""
    yield path
    mounts = list(_mounts())
    # The last mount on the longest path is the visible one.
    own = max(
        (mount for mount in mounts if path.is_relative_to(mount.point)), key=_depth, default=None
    )
    if own is None:
        return
    on_disk = own.root / path.relative_to(own.point)
    for other in mounts:
        if other.device == own.device and on_disk.is_relative_to(other.root):
            yield other.point / on_disk.relative_to(other.root)


@dataclass(frozen=True)
class _Mount:
    """A line of `/proc/self/mountinfo`: the directory `root` of a disk is mounted on `point`."""

    order: int
    device: str
    root: Path
    point: Path


def _depth(mount: _Mount) -> tuple[int, int]:
    return len(mount.point.parts), mount.order


def _mounts() -> Iterator[_Mount]:
    for order, line in enumerate(Path("/proc/self/mountinfo").read_text().splitlines()):
        _, _, device, root, point, *_ = line.split(" ")
        yield _Mount(order, device, _unescaped(root), _unescaped(point))


def _unescaped(field: str) -> Path:
    """Return a path of a mount table, where blanks and some other characters are octal numbers."""
    return Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field))


def _environment(environment: dict[str, str]) -> list[str]:
    arguments = ["--clearenv"]
    for name, value in environment.items():
        arguments += ["--setenv", name, value]
    return arguments


log = logging.getLogger(__name__)

_DEPTH = 6
_HEAD = 4096
_SCRIPT = 64 << 10
_SHELLS = frozenset(("sh", "bash", "dash", "zsh"))
_RELATIVE = re.compile(r'"\$basedir/([^"$]+)"')
_ABSOLUTE = re.compile(r'^\s*exec\s+["\']?(/[^"\'$\s]+)', re.MULTILINE)
_BY_NAME = re.compile(r"^\s*exec\s+(node|bun|deno)\s", re.MULTILINE)
"""Commands in the scripts with which package managers and installers start a program."""


@dataclass(frozen=True)
class Wanted:
    """Programs by name or by an absolute path, and further paths for them."""

    programs: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Call:
    """The command behind a program's name, and its variables."""

    program: Path
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class VisiblePaths:
    """Paths that sandboxes see, and the commands of programs that are not on their PATH."""

    paths: tuple[Path, ...] = ()
    calls: dict[str, Call] = field(default_factory=dict[str, Call])


NOTHING = VisiblePaths()


def shown_to_sandboxes(wanted: Wanted, home: Home) -> VisiblePaths:
    """Find the wanted programs and paths. Blocking."""
    finder = ProgramFinder(person_path(home), home)
    for name in wanted.programs:
        with _unfollowable(name):
            finder.add(name)
    for path in wanted.paths:
        with _unfollowable(path):
            finder.show(path)
    return finder.shown


@contextmanager
def _unfollowable(program: object) -> Generator[None]:
    """Log and skip a program that cannot be followed; sandboxes start without it."""
    try:
        yield
    except (OSError, RuntimeError) as e:  # an unreadable directory, or circular links
        log.warning("%s cannot be shown to sandboxes: %s", program, e)


class ProgramFinder:
    """Follows programs of one search path.

    Neither the user's home directory nor the service's is ever shown completely.
    """

    def __init__(self, path: str, home: Home) -> None:
        self._path = path
        self._home = home.root
        private = (Path.home(), home.root)
        self._private = tuple({one for place in private for one in (place, place.resolve())})
        self._paths: dict[Path, None] = {}
        self._calls: dict[str, Call] = {}
        self._followed: set[Path] = set()

    @property
    def shown(self) -> VisiblePaths:
        """All that was found, without paths below other shown directories."""
        paths = [path for path in self._paths if not self._covered(path)]
        return VisiblePaths(tuple(paths), dict(self._calls))

    def add(self, name: str, depth: int = 0) -> None:
        """Add a program and its dependencies, if it exists."""
        program = find_program(name, self._path)
        if program is None or name in self._calls or depth > _DEPTH:
            return
        call = self._follow(program, depth)
        if call is None:
            return
        if "/" in name:
            self.show(program)
        elif str(program.parent) not in SYSTEM_PATH or not always_visible(call.program, self._home):
            self._calls[name] = call

    def show(self, path: Path) -> None:
        """Add a path, unless it is visible anyway or would reveal a private directory."""
        if path.exists() and not always_visible(path, self._home) and not self._reveals(path):
            self._paths[path] = None

    def _covered(self, path: Path) -> bool:
        return any(path != other and path.is_relative_to(other) for other in self._paths)

    def _reveals(self, path: Path) -> bool:
        return any(place.is_relative_to(path) for place in self._private)

    def _follow(self, called: Path, depth: int) -> Call | None:
        """Return the command of a program; add it and its dependencies."""
        program = (shim_target(called) or called).resolve()
        if not program.is_file():
            return None
        package = package_of(program)
        whole = package is not None and not self._reveals(package)
        self.show(package if package and whole else program)
        if program in self._followed or depth > _DEPTH:
            return Call(program)
        self._followed.add(program)
        interpreter = self._interpreter(program, depth)
        self._follow_script(program, depth)
        return Call(program, variables={} if whole else self._variables(program, interpreter))

    def _follow_script(self, program: Path, depth: int) -> None:
        """Follow the programs that a shell script starts, as those of package managers do."""
        script = _shell_script(program)
        siblings = [program.parent / name for name in _RELATIVE.findall(script)]
        for target in [*siblings, *map(Path, _ABSOLUTE.findall(script))]:
            package = package_of(target)
            if package is not None:
                self.show(package)
            self._follow(target, depth + 1)
        for name in _BY_NAME.findall(script):
            self.add(name, depth + 1)

    def _variables(self, program: Path, interpreter: Path | None) -> dict[str, str]:
        """Return variables for a script with packages of the user's own Python, and show these."""
        if interpreter is None or not is_python(interpreter) or always_visible(program, self._home):
            return {}
        packages = user_packages(program)
        for directory in packages:
            self.show(directory)
        return {"PYTHONUSERBASE": str(program.parents[1])} if packages else {}

    def _interpreter(self, program: Path, depth: int) -> Path | None:
        """Add the interpreter in the first line of a script."""
        command = _first_line(program)
        if not command:
            return None
        if Path(command[0]).name != "env":
            # Its path is absolute, so every link on the way to it has to exist.
            for name in names_of(Path(command[0])):
                self.show(name)
            return Path(command[0])
        names = [word for word in command[1:] if not word.startswith("-") and "=" not in word]
        if not names:
            return None
        self.add(names[0], depth + 1)
        return find_program(names[0], self._path)


def _first_line(program: Path) -> list[str]:
    try:
        with program.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return []
    if not head.startswith(b"#!"):
        return []
    return head[2:].partition(b"\n")[0].decode(errors="replace").split()


def _shell_script(program: Path) -> str:
    """Return the text of a script for a shell; empty for any other program."""
    words = _first_line(program)
    names = {Path(word).name for word in words}
    if not names & _SHELLS:
        return ""
    with program.open("rb") as file:
        return file.read(_SCRIPT).decode(errors="replace")
