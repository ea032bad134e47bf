"""The command line: one module per verb, imported only when the verb is used."""

import os
import sys


def main() -> None:
    """Entry point of `qd`; ends the process with the exit code of `quarterdeck.cli.exits`."""
    # None of ours is one of pydantic's plugins, and the search for them is a sixth of what reading the
    # models costs. Who wants theirs says so: PYDANTIC_DISABLE_PLUGINS=no.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    from quarterdeck.cli.program import run

    sys.exit(run(sys.argv[1:]))
