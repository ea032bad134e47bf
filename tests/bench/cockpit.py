"""What the cockpit costs: start, idling, memory."""

import sys
from collections.abc import Sequence
from statistics import median

from tests.bench.installation import QD, Installation
from tests.bench.table import Row, cpu_seconds, median_of, resident_mb
from tests.support.program import Program

IDLE_SECONDS = 20.0
LISTS = 0.45 / 0.24
"""The limit relative to a list app. Both times were taken on one machine; others are slower."""
PEER = """
from textual.app import App
from textual.widgets import Label, ListItem, ListView
class Peer(App):
    def compose(self):
        yield ListView(*(ListItem(Label(f"row {n}")) for n in range(30)))
Peer().run()
"""


def _start_cost(argv: Sequence[str], shown: str, made: Installation) -> float:
    with Program(argv, columns=120, lines=40, environment=made.environment) as program:
        program.wait_for(shown)
        return cpu_seconds(program.process.pid)


def quiet_cost(
    made: Installation, argv: Sequence[str] = QD, shown: str = "online"
) -> tuple[float, int]:
    """Processor seconds and bytes until a program, the cockpit, is quiet after its start."""
    with Program(
        argv, columns=120, lines=40, environment=made.environment, directory=made.repository
    ) as program:
        program.wait_for(shown)
        program.settle(1.0)
        return cpu_seconds(program.process.pid), program.sent


def _peer_idle(made: Installation) -> float:
    argv = [sys.executable, "-c", PEER]
    with Program(argv, columns=120, lines=40, environment=made.environment) as program:
        program.wait_for("row 5")
        program.settle(1.0)
        before = cpu_seconds(program.process.pid)
        program.settle(IDLE_SECONDS, timeout=3 * IDLE_SECONDS)
        return (cpu_seconds(program.process.pid) - before) / IDLE_SECONDS * 100


def cockpit_rows(made: Installation) -> list[Row]:
    """Start, output, idling and memory, with an app of one list as the peer."""
    for name in ("one", "two"):
        made.qd("replica", "create", "--name", name, "--wait")
    app = (sys.executable, "-c", PEER)
    peer = median_of(lambda: _start_cost(app, "row 5", made), 5)
    first = median_of(lambda: _start_cost(QD, "quarterdeck", made), 5)
    rows = [
        Row("cockpit: CPU to the first frame", first, "s", 0.45, f"a list app: {peer:.2f} s"),
    ]
    _, *pairs = [(quiet_cost(made)[0], quiet_cost(made, app, "row 5")[0]) for _ in range(8)]
    settled, peer = map(median, zip(*pairs, strict=True))
    rows.append(Row("cockpit: CPU until quiet after start", settled, "s", 0.45))
    note = f"a list app: {peer:.2f} s"
    rows.append(Row("cockpit: the same, relative to a list app", settled / peer, "", LISTS, note))
    with Program(
        QD, columns=120, lines=40, environment=made.environment, directory=made.repository
    ) as program:
        program.wait_for("online")
        program.settle(1.0)
        rows.append(Row("cockpit: output at start", program.sent / 1000, "kB", 9))
        pid = program.process.pid
        rows.append(Row("cockpit: resident memory", resident_mb(pid), "MB", 70))
        sent, cpu = program.sent, cpu_seconds(pid)
        program.settle(IDLE_SECONDS, timeout=3 * IDLE_SECONDS)
        rows.append(
            Row(f"cockpit: bytes while idle for {IDLE_SECONDS:.0f} s", program.sent - sent, "B", 0)
        )
        used = (cpu_seconds(pid) - cpu) / IDLE_SECONDS * 100
        note = f"a list app: {_peer_idle(made):.2f} %; the limit rounds to 0"
        rows.append(Row("cockpit: CPU while idle", used, "%", 0.45, note))
        moves = [_bytes_of(program, key) for key in "jkjjkk"]
        rows.append(Row("cockpit: bytes of one key in the list, most", max(moves), "B", 400))
        program.type("\r")
        program.wait_for("enter sends")
        program.settle(0.5)
        typed = [_bytes_of(program, key) for key in "typed words"]
        rows.append(Row("cockpit: bytes of a typed character, most", max(typed), "B", 70))
    return [*rows, _move_between_chats(made)]


def _move_between_chats(made: Installation) -> Row:
    """A key that also shows another chat: its text has to be sent, and is what most of it costs."""
    for name, word in (("apples", "apple"), ("pears", "pear")):
        lines = (f"echo {word} {n} of the {name} in this basket" for n in range(12))
        text = "\n".join(("```sh", *lines, "```"))
        made.qd("replica", "create", "--name", name, "--agent", "builtin", "-m", text, "--wait")
    with Program(
        QD, columns=120, lines=40, environment=made.environment, directory=made.repository
    ) as program:
        program.wait_for("in this basket")
        program.settle(1.0)
        keys, costs, changed = "jkjk", [], []
        for key in keys:
            before = program.screen.display
            costs.append(_bytes_of(program, key))
            changed.append(_cells_that_differ(before, program.screen.display))
        note = f"{max(changed)} cells have another character"
    return Row("cockpit: bytes of a key that shows another chat, most", max(costs), "B", None, note)


def _cells_that_differ(before: Sequence[str], after: Sequence[str]) -> int:
    rows = zip(before, after, strict=True)
    return sum(one != other for row in rows for one, other in zip(*row, strict=True))


def _bytes_of(program: Program, key: str) -> int:
    """What the terminal is sent for one key."""
    sent = program.sent
    program.type(key)
    program.settle(0.5)
    return program.sent - sent
