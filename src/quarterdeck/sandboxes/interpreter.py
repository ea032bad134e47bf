"""The interpreter, the packages and the programs that a sandbox sees.

Shims of version managers choose the version at each call. A sandbox has neither the manager nor its
configuration, so the newest version is used: it works for every agent. Nothing is run to find it.
"""

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import quarterdeck

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix")))
"""Directories that every sandbox sees, read-only."""

SYSTEM_PATH = tuple(
    f"{place}/{name}" for place in ("/usr/local", "/usr", "") for name in ("sbin", "bin")
)
"""The end of the PATH inside."""

_LINKS = 16


def always_visible(path: Path, home: Path) -> bool:
    """Return whether every sandbox sees a path: a system path outside the service's home."""
    return _covered(path, SYSTEM) and not _covered(path, (home, home.resolve()))


def needed_directories(home: Path) -> list[Path]:
    """Return the interpreter's directories that not every sandbox sees, under every name of each.

    Rpaths and the first lines of scripts contain absolute paths, so directories keep them inside.
    `home` is the service's, which sandboxes do not see even below the system's directories.
    """
    candidates = [Path(sys.prefix), Path(sys.base_prefix), *_executables()]
    package = Path(quarterdeck.__file__).parents[1]
    directories: list[Path] = []
    for directory in [*candidates, package]:
        for name in (directory, directory.resolve()):
            if not always_visible(name, home) and not _covered(name, tuple(directories)):
                directories.append(name)
    return directories


def _executables() -> list[Path]:
    """Return prefixes along the links from the virtual environment to the true executable."""
    prefixes: list[Path] = []
    current = Path(sys.executable)
    for _ in range(_LINKS):
        if not current.is_symlink():
            break
        current = current.parent / current.readlink()
        prefixes.append(Path(*current.parts[:-2]))
    return [prefix for prefix in prefixes if prefix.is_dir() and len(prefix.parts) > 1]


def _covered(path: Path, directories: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(directory) for directory in directories)


_MODULES = "node_modules"
_STORES = (".pnpm", "links")
"""Directories in which a package manager keeps every package once, linked to one another."""


def package_of(program: Path) -> Path | None:
    """Return the directory of a program's package or environment; None when it stands alone."""
    return _node_package(program) or _environment(program) or _linked_package(program)


def names_of(interpreter: Path) -> Iterator[Path]:
    """Yield all paths that an interpreter needs to be found, and to find its own files.

    Raises:
        OSError, RuntimeError: its links form a circle.
    """
    current = interpreter
    for _ in range(_LINKS):
        library = _environment(current) or (current.parents[1] if is_python(current) else None)
        for name in (current, library or current):
            yield name
            yield name.resolve()
        if not current.is_symlink():
            return
        current = current.parent / current.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(interpreter))


def is_python(program: Path) -> bool:
    """Return whether this is a Python, whose library is next to its directory."""
    return program.name.startswith(("python", "pypy"))


def user_packages(program: Path) -> list[Path]:
    """Return the packages installed for one user, next to the directory of the program."""
    if program.parent.name != "bin":
        return []
    return sorted(program.parents[1].glob("lib/python3*/site-packages"))


def _node_package(program: Path) -> Path | None:
    parts = program.parts
    store = _store(parts)
    if store is not None:
        return Path(*parts[:store])
    if _MODULES not in parts:
        return None
    first = parts.index(_MODULES)
    if len(parts) < first + 3:
        return None
    modules = Path(*parts[: first + 1])
    if modules.parent.name != "lib":
        return modules  # packages are next to their dependencies
    # npm's global ones each contain their dependencies
    scoped = parts[first + 1].startswith("@")
    return Path(*parts[: first + (3 if scoped else 2)])


def _store(parts: tuple[str, ...]) -> int | None:
    """Return the number of parts of a path up to the store's directory."""
    if ".pnpm" in parts:
        return parts.index(".pnpm")
    if "store" in parts and "links" in parts[parts.index("store") :]:
        return parts.index("links", parts.index("store")) + 1
    return None


def _environment(program: Path) -> Path | None:
    above = program.parent.parent
    return above if (above / "pyvenv.cfg").is_file() else None


def _linked_package(program: Path) -> Path | None:
    """Return the package of a script that is linked from its working directory."""
    if program.suffix not in (".js", ".mjs", ".cjs", ".ts"):
        return None
    return next(
        (directory for directory in program.parents if (directory / "package.json").is_file()), None
    )


_VOLTA = "volta-shim"
_SHIMS = "shims"
"""The directory of the shims of mise, asdf and pyenv, next to what they installed."""
_INSTALLED = ("installs/*/*/bin", "versions/*/bin")


def shim_target(program: Path) -> Path | None:
    """Return the program that a shim would run; None when it is not a shim, or has no program."""
    if program.resolve().name == _VOLTA:
        return _volta_target(program)
    if program.parent.name == _SHIMS:
        root = program.parents[1]
        return _newest(
            path for pattern in _INSTALLED for path in root.glob(f"{pattern}/{program.name}")
        )
    return None


def _volta_target(program: Path) -> Path | None:
    image = program.parents[1] / "tools" / "image"
    if program.name == "node":
        return _newest((image / "node").glob("*/bin/node"))
    packages = image / "packages"
    targets = [
        path for pattern in ("*", "@*/*") for path in packages.glob(f"{pattern}/bin/{program.name}")
    ]
    return min(targets, default=None)


def _newest(programs: Iterable[Path]) -> Path | None:
    """Return the newest `VERSION/bin/NAME`; names such as `latest` link to one of the versions."""
    installed = [path for path in programs if path.is_file()]
    return max(installed, key=lambda path: _numbers(path.parents[1].name), default=None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
