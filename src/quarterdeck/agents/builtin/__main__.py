"""`python -I -m quarterdeck.agents.builtin`: the built-in agent as a process."""

import sys

from quarterdeck.loading import loading


def main() -> int:
    """Run the agent; return the exit status."""
    with loading():
        from quarterdeck.agents.builtin.agent import run
    return run()


if __name__ == "__main__":
    sys.exit(main())
