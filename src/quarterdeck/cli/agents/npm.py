"""Where npm is, and where it may put programs that are found afterwards."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.cli.errors import NotDone
from quarterdeck.local.home import Home
from quarterdeck.local.programs import find_program, person_path

_SECONDS = 30.0


@dataclass(frozen=True)
class NpmPlace:
    """How npm is called; the package comes last. `note` says why not as usual."""

    command: tuple[str, ...]
    note: str | None = None


def find_npm() -> Path:
    """The person's npm.

    Raises:
        NotDone: there is none.
    """
    found = find_program("npm", os.environ.get("PATH", os.defpath))
    if found is None:
        raise NotDone(
            "npm is not installed, and this agent comes from there.",
            "Install Node.js with npm (Debian, Ubuntu: apt install npm), and try again.",
        )
    return found


def place_for(npm: Path, home: Home) -> NpmPlace:
    """Into the person's global prefix when that can be written and is found, else into our own.

    Raises:
        NotDone: npm does not say its prefix, or the own directory cannot be made.
    """
    install = (str(npm), "install", "--global", "--no-audit", "--no-fund")
    prefix = _prefix(npm)
    if str(prefix / "bin") not in person_path(home).split(os.pathsep):
        why = f"{prefix}/bin, where npm puts programs, is not in the PATH"
    elif not all(_writable(prefix / part) for part in ("lib/node_modules", "bin")):
        why = f"{prefix}, where npm puts programs, is not yours to write"
    else:
        return NpmPlace(install)
    try:
        home.agents.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as e:
        raise NotDone(f"{why}, and {home.agents} cannot be made: {e.strerror}.") from e
    return NpmPlace(
        (*install, "--prefix", str(home.agents)), f"{why}; so it goes to {home.agents}."
    )


def _prefix(npm: Path) -> Path:
    try:
        done = subprocess.run(
            [str(npm), "prefix", "--global"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise NotDone(f"npm could not be run: {e}.") from e
    said = done.stdout.strip()
    if done.returncode != 0 or not said.startswith("/"):
        last = (done.stderr.strip() or said).splitlines()[-1:]
        raise NotDone("npm does not say where it installs to.", "".join(last) or None)
    return Path(said)


def _writable(path: Path) -> bool:
    existing = next(one for one in (path, *path.parents) if one.exists())
    return os.access(existing, os.W_OK | os.X_OK)
