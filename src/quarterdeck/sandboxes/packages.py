"""What belongs to a program: its package, its virtual environment, its interpreter's directories."""

from collections.abc import Iterator
from pathlib import Path

_LINKS = 16
_MODULES = "node_modules"
_STORES = (".pnpm", "links")
"""Directories in which a package manager keeps every package once, linked to one another."""


def package_of(program: Path) -> Path | None:
    """The directory that a program works with; None when it is a program by itself."""
    return _node_package(program) or _environment(program) or _linked_package(program)


def names_of(interpreter: Path) -> Iterator[Path]:
    """All that has to be there for an interpreter to be found, and to find its own files."""
    current = interpreter
    for _ in range(_LINKS):
        library = _environment(current) or (current.parents[1] if is_python(current) else None)
        for name in (current, library or current):
            yield name
            yield name.resolve()
        if not current.is_symlink():
            return
        current = current.parent / current.readlink()


def is_python(program: Path) -> bool:
    """Whether this is a Python, whose library lies beside its directory."""
    return program.name.startswith(("python", "pypy"))


def user_packages(program: Path) -> list[Path]:
    """Packages that were installed for one user, beside the directory of the program."""
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
        return modules  # packages lie beside those that they need
    # npm's global ones each hold what they need
    scoped = parts[first + 1].startswith("@")
    return Path(*parts[: first + (3 if scoped else 2)])


def _store(parts: tuple[str, ...]) -> int | None:
    """How many parts of a path name the directory that a store is shown by."""
    if ".pnpm" in parts:
        return parts.index(".pnpm")
    if "store" in parts and "links" in parts[parts.index("store") :]:
        return parts.index("links", parts.index("store")) + 1
    return None


def _environment(program: Path) -> Path | None:
    above = program.parent.parent
    return above if (above / "pyvenv.cfg").is_file() else None


def _linked_package(program: Path) -> Path | None:
    """The package of a script that was linked from where it is worked on."""
    if program.suffix not in (".js", ".mjs", ".cjs", ".ts"):
        return None
    return next((one for one in program.parents if (one / "package.json").is_file()), None)
