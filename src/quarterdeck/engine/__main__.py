"""`python -I -m quarterdeck.engine --run-dir DIR`: runs the engine of one workspace."""

import argparse
import os
import sys
from pathlib import Path

from quarterdeck.loading import loading

_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


def main() -> int:
    """Reads the command line and runs the engine; returns the exit status."""
    parser = argparse.ArgumentParser(prog="quarterdeck.engine")
    parser.add_argument("--run-dir", type=Path, required=True)
    run_dir: Path = parser.parse_args().run_dir
    return _load()(run_dir)


def _load():
    """Imports the engine without pydantic's search for plugins, a third of the start-up time."""
    given = os.environ.get(_PLUGINS)
    os.environ[_PLUGINS] = "1"
    try:
        with loading():
            from quarterdeck.engine.daemon import run
    finally:
        if given is None:
            del os.environ[_PLUGINS]
        else:
            os.environ[_PLUGINS] = given
    return run


if __name__ == "__main__":
    sys.exit(main())
