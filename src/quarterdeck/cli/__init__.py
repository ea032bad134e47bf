"""The command line: one module per group of verbs, imported on use."""

import gc
import sys

from quarterdeck.loading import leave_plugins_out


def main() -> None:
    """Run `qd`; end the process with the exit code of `quarterdeck.cli.errors`."""
    leave_plugins_out()
    from quarterdeck.cli.program import run

    code = run(sys.argv[1:])
    gc.freeze()  # else the end of the process searches all that was imported for garbage, twice
    sys.exit(code)
