"""`python -I -m quarterdeck.engine --run-dir DIR`: runs the engine of one workspace."""

import argparse
import sys
from pathlib import Path

from quarterdeck.loading import loading


def main() -> int:
    """Read the command line and run the engine; return the exit status."""
    parser = argparse.ArgumentParser(prog="quarterdeck.engine")
    parser.add_argument("--run-dir", type=Path, required=True)
    run_dir: Path = parser.parse_args().run_dir
    with loading():
        from quarterdeck.engine.daemon import run
    return run(run_dir)


if __name__ == "__main__":
    sys.exit(main())
