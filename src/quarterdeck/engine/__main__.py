"""`python -I -m quarterdeck.engine --run-dir DIR [--dial-home]`: runs the engine of one workspace."""

import sys
from pathlib import Path

from quarterdeck.loading import load_later, load_tls_later, loading
from quarterdeck.local.core_dumps import prevent_core_dumps


def main() -> int:
    """Read the command line and run the engine; return the exit status."""
    prevent_core_dumps()
    match sys.argv[1:]:  # argparse would be in the memory of each engine
        case ["--run-dir", run_dir, *more] if more in ([], ["--dial-home"]):
            with loading():
                if more:
                    _load_less()
                from quarterdeck.engine.daemon import run
            return run(Path(run_dir), dials_home=bool(more))
        case _:
            print("usage: quarterdeck.engine --run-dir DIR [--dial-home]", file=sys.stderr)  # noqa: T201
            return 2


def _load_less() -> None:
    """Keep out of a container what is not used there; 4 MB, which engines that are forks share."""
    # websockets imports the first for its own version in a checkout, the second for proxies.
    load_later("importlib.metadata", "urllib.request")
    load_tls_later()


if __name__ == "__main__":
    sys.exit(main())
