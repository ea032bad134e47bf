"""A soak: replicas come and go for hours, and the service must not grow.

Each cycle creates a replica, follows its events, sends messages, uses a terminal, lets it sleep, wakes,
archives and deletes it. Then nothing is left, and what the service holds is measured. A figure is flat
when its median over the last quarter of the run is at most `ALLOWED` above that over the second
quarter: the first one is for caches to fill. `make soak`, with minutes in ARGS:
`python -m tests.security.soak [MINUTES]`.
"""

import sys
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import linear_regression, median
from time import monotonic

from tests.support.git import make_repository
from tests.support.installation import (
    Follower,
    Installation,
    block,
    environment_of,
    megabytes,
    pids,
)
from tests.support.waiting import until
from tests.system.conftest import installed

ALLOWED = {"memory": 6.0, "descriptors": 3.0, "threads": 2.0, "processes": 0.0, "disk": 6.0}
"""Growth of each figure of a `Sample`, in its unit."""
ROWS = 20
"""Samples that are printed, beside the last."""


@dataclass(frozen=True)
class Sample:
    """What the service holds while no replica exists: memory and disk in MiB, else a number."""

    seconds: float
    memory: float
    descriptors: float
    threads: float
    processes: float
    disk: float

    @classmethod
    def of(cls, deck: Installation, seconds: float) -> "Sample":
        process = Path(f"/proc/{deck.pid}")
        mark = f"QUARTERDECK_HOME={deck.home.root}".encode()
        return cls(
            seconds,
            megabytes(deck.pid),
            len(list((process / "fd").iterdir())),
            len(list((process / "task").iterdir())),
            sum(mark in environment_of(pid) for pid in pids()),
            sum(path.lstat().st_blocks for path in deck.home.root.rglob("*")) / 2048,
        )

    def row(self) -> str:
        return "".join(f"{value:12.1f}" for value in astuple(self))


def cycle(deck: Installation, environment: str) -> None:
    """Everything that a replica can be taken through, to its end."""
    id = deck.create(environment)
    follower = Follower(deck, id)
    deck.turn(id, block("seq 2000; echo line >> README"))
    assert "typed" in deck.in_terminal(id, "echo ty''ped")
    deck.run(id, "seq 100")
    deck.post(f"/v1/workspaces/{id}/sleep")
    deck.reach(id, "sleeping")
    assert deck.turn(id, block("cat README"))["stopReason"] == "end_turn"  # it wakes
    deck.post(f"/v1/workspaces/{id}/archive")
    deck.reach(id, "archived")
    deck.post(f"/v1/workspaces/{id}/wake", status=202)
    deck.reach(id, "active")
    newest = deck.replica(id)["log_index"]
    until(lambda: follower.indices and follower.indices[-1] >= newest, "the newest event")
    deck.delete(id)
    follower.end()


def soak(minutes: float, report: Callable[[str], None]) -> list[Sample]:
    """Take replicas through their lives for so long, and measure after each."""
    samples: list[Sample] = []
    with installed() as deck:
        deck.start()
        environment = deck.environment_with(deck.connect(str(make_repository(deck.base / "shop"))))
        begun, printed = monotonic(), 0
        report("".join(f"{field.name:>12}" for field in fields(Sample)))
        while (seconds := monotonic() - begun) < minutes * 60:
            cycle(deck, environment)
            samples.append(Sample.of(deck, seconds))
            if seconds >= printed * minutes * 60 / ROWS:
                printed += 1
                report(samples[-1].row())
        report(samples[-1].row())
    return samples


def growths(samples: list[Sample]) -> dict[str, tuple[float, float]]:
    """Return by how much each figure grew from the second quarter to the last, and its slope in an hour."""
    quarter = len(samples) // 4
    assert quarter, "too few cycles to compare"
    hours = [sample.seconds / 3600 for sample in samples[quarter:]]
    found: dict[str, tuple[float, float]] = {}
    for name in ALLOWED:
        values = [float(getattr(sample, name)) for sample in samples]
        growth = median(values[-quarter:]) - median(values[quarter : 2 * quarter])
        found[name] = growth, linear_regression(hours, values[quarter:]).slope
    return found


def main(arguments: list[str]) -> int:
    """Print the figures; 1 when one is not flat."""
    minutes = float(arguments[0]) if arguments else 360.0
    samples = soak(minutes, lambda text: print(text, flush=True))
    print(f"{len(samples)} cycles")
    good = True
    for name, (growth, slope) in growths(samples).items():
        flat = growth <= ALLOWED[name]
        good = good and flat
        told = "flat" if flat else f"NOT FLAT: at most {ALLOWED[name]:g}"
        print(f"{name:12} grew by {growth:.2f} ({slope:+.2f} in an hour): {told}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
