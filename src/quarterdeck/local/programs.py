"""Where the programs of the person who runs this installation are looked for.

The PATH comes first. A service that was started by something other than the person's shell has a
short one, so the usual places below the home directory follow, and then the directory into which
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
    """The search path for programs, as the variable PATH has it. Without relative directories."""
    given = os.environ if environment is None else environment
    person = given.get("HOME")
    places = [
        *given.get("PATH", os.defpath).split(os.pathsep),
        *([os.path.join(person, place) for place in USUAL] if person else []),  # noqa: PTH118
        str(home.agents / "bin"),
    ]
    return os.pathsep.join(dict.fromkeys(place for place in places if place.startswith("/")))


def find_program(name: str, path: str) -> Path | None:
    """A program on a search path; None when there is none."""
    found = shutil.which(name, path=path)
    return Path(found) if found else None
