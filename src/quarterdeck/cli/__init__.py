"""The command line: one module per verb, imported only when the verb is used."""

import sys


def main() -> None:
    """Entry point of `qd`; ends the process with the exit code of `quarterdeck.cli.exits`."""
    from quarterdeck.cli.program import run

    sys.exit(run(sys.argv[1:]))
