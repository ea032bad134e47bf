"""The command line: one module per group of verbs, imported on use."""

import gc
import os
import sys


def main() -> None:
    """Run `qd`; end the process with the exit code of `quarterdeck.cli.errors`."""
    # We have no pydantic plugins, and the search for them takes a sixth of the time to load the models.
    # PYDANTIC_DISABLE_PLUGINS=no enables them.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    from quarterdeck.cli.program import run

    code = run(sys.argv[1:])
    gc.freeze()  # else the end of the process searches all that was imported for garbage, twice
    sys.exit(code)
