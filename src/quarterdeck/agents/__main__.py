"""`python -I -m quarterdeck.agents`: prints what is known of the agents where it runs, as JSON.

Own agents, by id, are read as JSON from standard input. The service asks an image of replicas so.
"""

import sys
from dataclasses import asdict
from json import dumps

from pydantic import TypeAdapter

from quarterdeck.agents.catalog import default_catalog
from quarterdeck.wire.agents import OwnAgent


def main() -> int:
    """Print the agents; return the exit status."""
    own = TypeAdapter(dict[str, OwnAgent]).validate_json(sys.stdin.buffer.read() or b"{}")
    statuses = default_catalog(own=own, host=True).statuses()
    sys.stdout.write(dumps([asdict(status) for status in statuses]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
