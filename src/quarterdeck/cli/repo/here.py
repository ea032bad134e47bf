"""The repository that a verb means when a person stands in one."""

import subprocess
from pathlib import Path

from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.target import Target


def repository_here(wanted: str | None, target: Target) -> str | None:
    """The repository's URL: a local path becomes absolute, and one given for a service elsewhere
    becomes the URL of its origin, which is all that such a service can reach. Without any, that of the repository one stands in.

    Raises:
        UsageFault: a service elsewhere cannot reach the path.
    """
    if wanted is not None and not Path(wanted).exists():
        return wanted
    top = _git(wanted or ".", "rev-parse", "--show-toplevel")
    if top is None and wanted is None:
        return None
    path = top or str(Path(wanted or ".").resolve())
    if target.embedded:
        return path
    origin = _git(path, "remote", "get-url", "origin")
    if origin is None and wanted is not None:
        raise UsageFault(
            f"{path} has no remote named origin, and {target.endpoint} cannot read it from here.",
            "Give a git URL that the service can reach.",
        )
    return origin


def _git(directory: str, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", directory, *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
