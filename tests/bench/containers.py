"""A replica in a container of Docker beside one of processes."""

import statistics
import time

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.layout import places_of
from quarterdeck.sandboxes.processes import marked
from tests.bench.installation import QD, Installation, installation
from tests.bench.table import LeftOutError, Row, pss_mb
from tests.bench.terminals import echoes
from tests.containers.daemons import BASE, IMAGE, DockerEngine, started
from tests.support.program import Program

RUNS = 5


def container_rows() -> list[Row]:
    """Time from create to active, echo of a key, and memory at rest, with both drivers."""
    try:
        with started(DockerEngine) as engine:
            return _rows(engine)
    except pytest.skip.Exception as reason:
        raise LeftOutError(str(reason)) from None


def _rows(engine: DockerEngine) -> list[Row]:
    table = f'driver = "docker"\naddress = "{engine.address}"\nimage = "{IMAGE}"\n'
    # In the engine's network namespace, where the bridge of the containers is.
    inside = ("nsenter", f"--net=/run/netns/{engine.namespace}")
    with (
        installation(files=1000) as processes,
        installation(1000, lambda _: f"[sandboxes]\n{table}", inside) as containers,
    ):
        containers.qd("image", "build", "--base", BASE, "--wheels", str(engine.parts / "wheels"))
        pairs = [(_created(processes, n), _created(containers, n)) for n in range(RUNS + 1)][1:]
        process, container = map(statistics.median, zip(*pairs, strict=True))
        slower = statistics.median(theirs / ours for ours, theirs in pairs)
        echo, echo_inside = _echo_ms(processes), _echo_ms(containers)
        own = sum(map(pss_mb, _of_sandbox(processes)))
        in_container = sum(map(pss_mb, _of_container(engine)))
    return [
        Row(
            "Docker: create to active, beside process",
            slower,
            "x",
            2,
            f"process {process:.2f} s, Docker {container:.2f} s",
        ),
        Row(
            "Docker: key to echo, more than process",
            echo_inside - echo,
            "ms",
            1,
            f"process {echo:.1f} ms, Docker {echo_inside:.1f} ms",
        ),
        Row("process: own processes of an idle replica, PSS", own, "MB", 20),
        Row("Docker: own processes of an idle replica, PSS", in_container, "MB", 30),
    ]


def _created(made: Installation, number: int) -> float:
    """Seconds from create to active, with what the verb takes."""
    begun = time.monotonic()
    made.qd("replica", "create", "--name", f"timed-{number}", "--wait")
    return time.monotonic() - begun


def _echo_ms(made: Installation) -> float:
    """Milliseconds from a key to its echo in a terminal of the cockpit, the median."""
    with Program(
        QD, columns=110, lines=40, environment=made.environment, directory=made.repository
    ) as program:
        program.wait_for("timed-0")
        program.type("t")
        program.wait_for("$")
        program.settle(0.5)
        return statistics.median(echoes(program)) * 1000


def _of_sandbox(made: Installation) -> list[int]:
    """The processes of a replica's sandbox, also those around it."""
    home = Home(made.home)
    workspace = next(path for path in home.workspaces.iterdir() if (path / "run").is_dir())
    return [ref.pid for ref in marked(places_of(home, workspace.name).mark)]


def _of_container(engine: DockerEngine) -> list[int]:
    """The processes of a replica's container."""
    with engine.client() as client:
        running = client.get("/containers/json").json()[0]["Id"]
        top = client.get(f"/containers/{running}/top").json()
    column = top["Titles"].index("PID")
    return [int(row[column]) for row in top["Processes"]]
