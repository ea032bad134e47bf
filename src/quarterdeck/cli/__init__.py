"""The command line: one module per group of verbs, imported on use."""

import gc
import os
import sys

from quarterdeck.loading import leave_plugins_out, load_tls_later
from quarterdeck.local.core_dumps import prevent_core_dumps
from quarterdeck.local.programs import drop_relative_path_entries

COMPLETION = "_QD_COMPLETE"
"""The variable by which a shell asks for completions."""


def main() -> None:
    """Run `qd`; end the process with the exit code of `quarterdeck.cli.errors`."""
    prevent_core_dumps()
    leave_plugins_out()
    drop_relative_path_entries()
    if sys.argv[1:] or COMPLETION in os.environ:
        from quarterdeck.cli.program import run

        code = run(sys.argv[1:])
    else:  # as `run` does, without the library for the command line
        load_tls_later()
        from quarterdeck.cli.cockpit import open_cockpit
        from quarterdeck.cli.exits import guarded

        code = guarded(open_cockpit)
    gc.freeze()  # else the end of the process searches all that was imported for garbage, twice
    sys.exit(code)
