"""Programs of the person's that sandboxes are shown, and no more of their home than these need.

A program is followed through links to what is really run, and from there to what that cannot do
without: its package, its virtual environment, the interpreter of its first line. Each is shown
under its own name, because scripts hold absolute ones; the program itself is called by a small
script in the sandbox's own directory of programs, so that no directory of the PATH has to be there.
"""

import logging
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.local.programs import find_program, person_path
from quarterdeck.sandboxes.interpreter import SYSTEM, SYSTEM_PATH
from quarterdeck.sandboxes.packages import is_python, names_of, package_of, user_packages
from quarterdeck.sandboxes.shims import behind_shim

log = logging.getLogger(__name__)

_DEPTH = 6
_HEAD = 4096
_SCRIPT = 64 << 10
_SHELLS = frozenset(("sh", "bash", "dash", "zsh"))
_BESIDE = re.compile(r'"\$basedir/([^"$]+)"')
_ABSOLUTE = re.compile(r'^\s*exec\s+["\']?(/[^"\'$\s]+)', re.MULTILINE)
_BY_NAME = re.compile(r"^\s*exec\s+(node|bun|deno)\s", re.MULTILINE)
"""What the scripts run by which package managers and installers start a program."""


@dataclass(frozen=True)
class Wanted:
    """Programs by name or by an absolute path, and paths that go with them."""

    programs: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Call:
    """What is run when a program is called, and variables that it needs for that."""

    program: Path
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Shown:
    """Paths that sandboxes see, and how programs are called there that are not on their PATH."""

    paths: tuple[Path, ...] = ()
    calls: dict[str, Call] = field(default_factory=dict[str, Call])


NOTHING = Shown()


def shown_to_sandboxes(wanted: Wanted, home: Home) -> Shown:
    """Finds what is wanted as it lies now. Blocking."""
    finder = Finder(person_path(home), (Path.home(), home.root))
    for name in wanted.programs:
        with _unfollowable(name):
            finder.add(name)
    for path in wanted.paths:
        with _unfollowable(path):
            finder.show(path)
    return finder.shown


@contextmanager
def _unfollowable(what: object) -> Generator[None]:
    """A program that cannot be followed is not shown; sandboxes start without it."""
    try:
        yield
    except (OSError, RuntimeError) as e:  # a directory that is closed to us, links in a circle
        log.warning("%s cannot be shown to sandboxes: %s", what, e)


class Finder:
    """Follows programs of one search path. `private` are directories that are never shown whole."""

    def __init__(self, path: str, private: tuple[Path, ...]) -> None:
        self._path = path
        self._private = tuple({one for place in private for one in (place, place.resolve())})
        self._paths: dict[Path, None] = {}
        self._calls: dict[str, Call] = {}
        self._met: set[Path] = set()

    @property
    def shown(self) -> Shown:
        """All that was found. What lies in a directory that is shown is not named again."""
        paths = [path for path in self._paths if not self._covered(path)]
        return Shown(tuple(paths), dict(self._calls))

    def add(self, name: str, depth: int = 0) -> None:
        """Adds a program and what it needs; one that is not there adds nothing."""
        found = find_program(name, self._path)
        if found is None or name in self._calls or depth > _DEPTH:
            return
        call = self._follow(found, depth)
        if call is None:
            return
        if "/" in name:
            self.show(found)
        elif str(found.parent) not in SYSTEM_PATH or not _of_the_system(call.program):
            self._calls[name] = call

    def show(self, path: Path) -> None:
        """Adds a path, unless it is seen anyway or holds what is private."""
        if path.exists() and not _of_the_system(path) and not self._reveals(path):
            self._paths[path] = None

    def _covered(self, path: Path) -> bool:
        return any(path != other and path.is_relative_to(other) for other in self._paths)

    def _reveals(self, path: Path) -> bool:
        return any(place.is_relative_to(path) for place in self._private)

    def _follow(self, found: Path, depth: int) -> Call | None:
        """What a program really is; it and what it needs are added."""
        program = (behind_shim(found) or found).resolve()
        if not program.is_file():
            return None
        package = package_of(program)
        whole = package is not None and not self._reveals(package)
        self.show(package if package and whole else program)
        if program in self._met or depth > _DEPTH:
            return Call(program)
        self._met.add(program)
        interpreter = self._interpreter(program, depth)
        self._follow_script(program, depth)
        return Call(program, variables={} if whole else self._variables(program, interpreter))

    def _follow_script(self, program: Path, depth: int) -> None:
        """What a script for a shell starts: package managers write such for each program."""
        script = _shell_script(program)
        beside = [program.parent / name for name in _BESIDE.findall(script)]
        for target in [*beside, *map(Path, _ABSOLUTE.findall(script))]:
            named = package_of(target)
            if named is not None:
                self.show(named)
            self._follow(target, depth + 1)
        for name in _BY_NAME.findall(script):
            self.add(name, depth + 1)

    def _variables(self, program: Path, interpreter: Path | None) -> dict[str, str]:
        """A script of the person's own Python finds its packages beside the person's programs."""
        if interpreter is None or not is_python(interpreter) or _of_the_system(program):
            return {}
        packages = user_packages(program)
        for directory in packages:
            self.show(directory)
        return {"PYTHONUSERBASE": str(program.parents[1])} if packages else {}

    def _interpreter(self, program: Path, depth: int) -> Path | None:
        """Adds what the first line of a script names."""
        words = _first_line(program)
        if not words:
            return None
        if Path(words[0]).name != "env":
            # It is named absolutely, so each name on the way to it has to be there.
            for name in names_of(Path(words[0])):
                self.show(name)
            return Path(words[0])
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if not names:
            return None
        self.add(names[0], depth + 1)
        return find_program(names[0], self._path)


def _of_the_system(path: Path) -> bool:
    return any(path.is_relative_to(directory) for directory in SYSTEM)


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
    """The text of a script for a shell; empty for any other program."""
    words = _first_line(program)
    names = {Path(word).name for word in words}
    if not names & _SHELLS:
        return ""
    with program.open("rb") as file:
        return file.read(_SCRIPT).decode(errors="replace")
