"""Programs that who works in a sandbox can call by name: ours, and those that it is shown."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from quarterdeck.sandboxes.shown import Call

_QD = Call(Path(sys.executable), ("-I", "-m", "quarterdeck"))


def write_programs(directory: Path, calls: Mapping[str, Call]) -> None:
    """Writes `qd`, which runs with the interpreter and the package of the engine, and the others.

    What an earlier start wrote and this one does not is removed.
    """
    directory.mkdir(mode=0o755, exist_ok=True)
    wanted = {**calls, "qd": _QD}
    for left in directory.iterdir():
        if left.name not in wanted:
            left.unlink()
    for name, call in wanted.items():
        program = directory / name
        program.write_text(_script(call))
        program.chmod(0o755)


def _script(call: Call) -> str:
    """Not a link: a program may look for its files beside the name that it was called by."""
    words = shlex.join([str(call.program), *call.arguments])
    lines = [f"export {name}={shlex.quote(text)}" for name, text in call.variables.items()]
    return "\n".join(["#!/bin/sh", *lines, f'exec {words} "$@"\n'])
