"""Which programs: the person's own choice, else what is there."""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence

EDITORS = ("sensible-editor", "nano", "vi")
PAGERS = ("less", "more")


class OutsideError(Exception):
    """A program could not be found, did not start or failed; the text says so, and what to do."""


def editor(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The command of the person's editor.

    Raises:
        OutsideError: there is none.
    """
    return _program(environment, ("VISUAL", "EDITOR"), EDITORS)


def pager(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The command of the person's pager.

    Raises:
        OutsideError: there is none.
    """
    return _program(environment, ("PAGER",), PAGERS)


def _program(
    environment: Mapping[str, str], names: Sequence[str], others: Sequence[str]
) -> list[str]:
    for name in names:
        if words := _words(environment.get(name, "")):
            return words
    found = next((other for other in others if shutil.which(other)), None)
    if found is None:
        raise OutsideError(f"None of {', '.join(others)} is there: set {names[-1]} to a program.")
    return [found]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        # A quote without its end: it fails to start, and its name says why.
        return [command]
