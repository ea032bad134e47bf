"""Programs that can be called by name in a sandbox: ours, and the user's that it is shown."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from quarterdeck.local.files import write_file
from quarterdeck.sandboxes.bubblewrap import Call

_OURS = {
    "qd": Call(Path(sys.executable), ("-I", "-m", "quarterdeck")),
    "git-remote-qd": Call(Path(sys.executable), ("-I", "-m", "quarterdeck.cli.git_remote")),
}


def write_programs(directory: Path, calls: Mapping[str, Call]) -> None:
    """Write `qd` and `git-remote-qd`, which run with the engine's interpreter, and the others.

    Other programs from an earlier start are removed.
    """
    directory.mkdir(mode=0o755, exist_ok=True)
    programs = {**calls, **_OURS}
    for existing in directory.iterdir():
        if existing.name not in programs:
            existing.unlink()
    for name, call in programs.items():
        write_file(directory / name, _script(call), mode=0o755, durable=False)


def _script(call: Call) -> str:
    """Return a script, not a link: a program may look for files next to the path of its call."""
    command = shlex.join([str(call.program), *call.arguments])
    lines = [f"export {name}={shlex.quote(text)}" for name, text in call.variables.items()]
    return "\n".join(["#!/bin/sh", *lines, f'exec {command} "$@"\n'])
