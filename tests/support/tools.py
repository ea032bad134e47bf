"""Programs that tests need, and that a machine may lack."""

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from typing import NoReturn

import pytest

PACKAGES = {
    "bwrap": "bubblewrap",
    "codex": "npm",
    "dockerd": "docker.io",
    "ip": "iproute2",
    "opencode": "npm",
    "prlimit": "util-linux",
    "setpriv": "util-linux",
    "sshd": "openssh-server",
}
"""Debian's package of a program, where it has another name. Agents come with `make agents`."""


def require(program: str) -> str:
    """Return the path of a program. Without it the test is skipped, or fails under `CI=true`."""
    return shutil.which(program) or missing(program)


def missing(program: str) -> NoReturn:
    """Skip the test, or let it fail under `CI=true`."""
    message = f"{program} is not installed"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def left_out(reasons: Iterable[str]) -> list[str]:
    """Return lines that say how many tests were skipped for want of what, and the remedy.

    Args:
        reasons: Why each test was skipped, for whatever reason.
    """
    programs = Counter(
        found[1] for one in reasons if (found := re.search(r"(\S+) is not installed$", one))
    )
    if not programs:
        return []
    named = ", ".join(f"{program} ({count})" for program, count in programs.most_common())
    packages = sorted({PACKAGES.get(program, program) for program in programs})
    return [
        f"{programs.total()} tests were left out, for they need {named}.",
        f"To run them too (Debian, Ubuntu): apt install {' '.join(packages)}",
    ]
