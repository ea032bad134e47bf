"""Which directories a sandbox needs to run this very Python with this very package."""

import sys
from pathlib import Path

import quarterdeck

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix")))
"""Directories that every sandbox sees, read-only."""

SYSTEM_PATH = tuple(
    f"{place}/{name}" for place in ("/usr/local", "/usr", "") for name in ("sbin", "bin")
)
"""What the PATH inside ends with."""

_LINKS = 16


def needed_directories() -> list[Path]:
    """The interpreter's directories outside the system's, each under every name it is known by.

    Rpaths and the first lines of scripts hold absolute names, so they keep them inside.
    """
    wanted = [Path(sys.prefix), Path(sys.base_prefix), *_executables()]
    package = Path(quarterdeck.__file__).parents[1]
    found: list[Path] = []
    for directory in [*wanted, package]:
        for name in (directory, directory.resolve()):
            if not _covered(name, (*SYSTEM, *found)):
                found.append(name)
    return found


def _executables() -> list[Path]:
    """Prefixes along the chain of links from the virtual environment to the true executable."""
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
