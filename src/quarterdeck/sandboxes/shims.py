"""Programs behind the shims of version managers, which ask at each call which version is meant.

A sandbox has neither the manager nor its configuration, so the newest version is taken: it serves
every agent. Nothing is run to find it.
"""

from collections.abc import Iterable
from pathlib import Path

_VOLTA = "volta-shim"
_SHIMS = "shims"
"""The directory in which mise, asdf and pyenv keep theirs, beside what they installed."""
_INSTALLED = ("installs/*/*/bin", "versions/*/bin")


def behind_shim(program: Path) -> Path | None:
    """The program that the shim would run; None when it is no shim, or runs none."""
    if program.resolve().name == _VOLTA:
        return _behind_volta(program)
    if program.parent.name == _SHIMS:
        root = program.parents[1]
        return _newest(
            path for where in _INSTALLED for path in root.glob(f"{where}/{program.name}")
        )
    return None


def _behind_volta(program: Path) -> Path | None:
    image = program.parents[1] / "tools" / "image"
    if program.name == "node":
        return _newest((image / "node").glob("*/bin/node"))
    packages = image / "packages"
    found = [
        path for where in ("*", "@*/*") for path in packages.glob(f"{where}/bin/{program.name}")
    ]
    return min(found, default=None)


def _newest(programs: Iterable[Path]) -> Path | None:
    """Of `VERSION/bin/NAME`; names such as `latest` are links to one of the versions."""
    found = [path for path in programs if path.is_file()]
    return max(found, key=lambda path: _numbers(path.parents[1].name), default=None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
