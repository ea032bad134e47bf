"""Runs the benchmarks that are named, or all: `python -m tests.bench [cockpit] [replicas] ...`."""

import sys
from collections.abc import Callable

from tests.bench.automations import automation_rows
from tests.bench.chats import chat_rows
from tests.bench.cockpit import cockpit_rows
from tests.bench.codex import codex_rows
from tests.bench.containers import container_rows
from tests.bench.events import event_rows
from tests.bench.fan_out import fan_out_rows
from tests.bench.files import file_rows
from tests.bench.git import git_rows
from tests.bench.installation import Installation, installation
from tests.bench.line import line_rows
from tests.bench.long_list import list_rows
from tests.bench.peers import peer_rows
from tests.bench.pools import pool_rows
from tests.bench.replicas import replica_rows
from tests.bench.requests import request_rows
from tests.bench.searches import search_rows
from tests.bench.table import LeftOutError, Row, print_table
from tests.bench.terminals import terminal_rows


def _inside(measure: Callable[[Installation], list[Row]]) -> Callable[[], list[Row]]:
    def run() -> list[Row]:
        with installation() as made:
            return measure(made)

    return run


BENCHES: dict[str, Callable[[], list[Row]]] = {
    "cockpit": _inside(cockpit_rows),
    "peers": _inside(peer_rows),
    "chats": chat_rows,
    "line": line_rows,
    "list": list_rows,
    "terminals": _inside(terminal_rows),
    "events": _inside(event_rows),
    "fan_out": _inside(fan_out_rows),
    "automations": _inside(automation_rows),
    "requests": _inside(request_rows),
    "git": _inside(git_rows),
    "pools": _inside(pool_rows),
    "replicas": replica_rows,
    "containers": container_rows,
    "search": _inside(search_rows),
    "files": file_rows,
    "codex": codex_rows,
}


def main(names: list[str]) -> int:
    """Prints each table as it is done; 1 when a figure is over its limit."""
    good = True
    for name in names or list(BENCHES):
        try:
            good = print_table(BENCHES[name]()) and good
        except LeftOutError as reason:
            print(f"{name}: left out, {reason}\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
