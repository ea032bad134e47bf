"""Which Node a program is run by, and whether that is new enough for it.

A package says in its `package.json` which versions it runs on. One that is started by a Node too
old for it ends with a syntax error, of which nobody could tell what to do.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.agents.manifest import manifest_of
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.versions import Question

_HEAD = 4096
_BY_NODE = re.compile(rb"#!\s*\S*/env\s+(-S\s+)?node\b")
_CALL = re.compile(rb"^#!/bin/sh\n(?:export .*\n)*exec (/[^\s'\"]+) \"\$@\"\n\Z")
"""What sandboxes call a program by that they are shown."""
_LEAST = re.compile(r"(\d+)(?:\.[\dx*]+)*")


@dataclass(frozen=True)
class Need:
    """A program wants a Node; `node` is the one that would run it, None when there is none."""

    least: int
    node: Path | None

    def question(self, path: str) -> Question:
        """Asks the Node for its version."""
        return Question(self.node or Path(), ("--version",) if self.node else (), None, path)

    def obstacle(self, name: str, version: str | None) -> str | None:
        """Why the program cannot run; None when it can, or when the version is not known."""
        wanted = f"{name} needs Node {self.least} or newer"
        if self.node is None:
            return f"{wanted}: node is not on the PATH."
        if version is None or int(version.partition(".")[0]) >= self.least:
            return None
        return f"{wanted}: {self.node} is {version}. Put a newer one before it on the PATH."


def need_of(program: Path, path: str) -> Need | None:
    """The Node that a program needs; None when it needs none, or does not say which."""
    true = _followed(program.resolve())
    if not _BY_NODE.match(_head(true)):
        return None
    asked = str(as_object(manifest_of(true).get("engines")).get("node", ""))
    majors = [int(one[1]) for one in _LEAST.finditer(asked)]
    if not majors:
        return None
    node = shutil.which("node", path=path)
    return Need(min(majors), Path(node) if node else None)


def _followed(program: Path) -> Path:
    called = _CALL.match(_head(program))
    return Path(called[1].decode()).resolve() if called else program


def _head(program: Path) -> bytes:
    try:
        with program.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""
