"""`python -I -m quarterdeck.engine --run-dir DIR [--dial-home]`: runs the engine of one workspace."""

import argparse
import sys
from pathlib import Path

from quarterdeck.loading import loading


def main() -> int:
    """Read the command line and run the engine; return the exit status."""
    parser = argparse.ArgumentParser(prog="quarterdeck.engine")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--dial-home", action="store_true", help="for an engine in a container")
    arguments = parser.parse_args()
    run_dir: Path = arguments.run_dir
    dials_home: bool = arguments.dial_home
    with loading():
        from quarterdeck.engine.daemon import run
    return run(run_dir, dials_home=dials_home)


if __name__ == "__main__":
    sys.exit(main())
