"""The search path for the user's programs.

The PATH comes first. A service that was not started from the user's shell has a short one, so the
usual directories below the home directory follow, and then the directory into which
`qd agents install` puts programs when it cannot put them elsewhere.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from quarterdeck.local.home import Home

USUAL = (
    ".local/bin",
    ".cargo/bin",
    ".bun/bin",
    ".volta/bin",
    ".local/share/pnpm",
    ".npm-global/bin",
    "go/bin",
)
"""Below the home directory: where installers put programs, whether or not the PATH has them."""


def person_path(home: Home, environment: Mapping[str, str] | None = None) -> str:
    """Return the search path for programs, in the form of PATH, without relative directories."""
    variables = os.environ if environment is None else environment
    person = variables.get("HOME")
    places = [
        *variables.get("PATH", os.defpath).split(os.pathsep),
        *([os.path.join(person, place) for place in USUAL] if person else []),  # noqa: PTH118
        str(home.agents / "bin"),
    ]
    return os.pathsep.join(dict.fromkeys(place for place in places if place.startswith("/")))


def drop_relative_path_entries() -> None:
    """Take relative directories out of this process's PATH: in a checkout they hold its programs."""
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [place for place in places if place.startswith("/")]
    os.environ["PATH"] = (
        os.pathsep.join(kept) or os.defpath
    )  # an empty one is the current directory


def find_program(name: str, path: str) -> Path | None:
    """Return a program on a search path; None when there is none."""
    match = shutil.which(name, path=path)
    return Path(match) if match else None
