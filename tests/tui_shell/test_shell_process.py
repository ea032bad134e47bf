"""The cockpit as a process: its start, its end, and what survives a kill."""

import asyncio
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.tui_shell.live import Installation

HEAVY = ("httpx", "httpx_sse", "anyio", "pyghostty")

FIRST_FRAME = f"""
import sys
from pathlib import Path
from quarterdeck.tui.app import Cockpit
from quarterdeck.store.service_choice import ServiceChoice

class Probe(Cockpit):
    def _start_up(self):
        found = [name for name in {HEAVY!r} if name in sys.modules]
        Path(sys.argv[1]).write_text(" ".join(found) or "none")
        self.exit(0)

Probe(ServiceChoice(lambda: None, "x", None), drafts=Path(sys.argv[2]), directory=None).run()
"""

FAILING = """
import sys
from pathlib import Path
from textual import work
from quarterdeck.tui.app import Cockpit
from quarterdeck.store.service_choice import ServiceChoice

class Failing(Cockpit):
    def _start_up(self):
        self.{method}()
    @work
    async def worker(self):
        raise ValueError("the worker broke")
    def key_b(self):
        raise ValueError("the widget broke")

app = Failing(ServiceChoice(lambda: None, "x", None), drafts=Path(sys.argv[1]), directory=None)
app.run()
sys.exit(app.return_code)
"""


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    made: list[Program] = []
    yield made
    for program in made:
        program.close()


def python(code: str, *arguments: str) -> Program:
    return Program([sys.executable, "-c", code, *arguments])


def cockpit(place: Installation, programs: list[Program]) -> Program:
    program = Program(
        [sys.executable, "-m", "quarterdeck"],
        columns=100,
        lines=30,
        environment={
            "QUARTERDECK_HOME": str(place.home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "QD_URL": "",
            "QD_API_KEY": "",
        },
        directory=place.repository,
    )
    programs.append(program)
    return program


def test_the_first_frame_needs_no_http_library(tmp_path: Path, programs: list[Program]) -> None:
    program = python(FIRST_FRAME, str(tmp_path / "found"), str(tmp_path / "client"))
    programs.append(program)
    assert program.finish(20) == 0
    assert (tmp_path / "found").read_text() == "none"


@pytest.mark.long
def test_a_worker_that_fails_is_told_and_written_down(
    tmp_path: Path, programs: list[Program]
) -> None:
    program = python(FAILING.format(method="worker"), str(tmp_path))
    programs.append(program)
    program.wait_for("Something in the cockpit failed")
    program.wait_for("the worker broke")
    log = tmp_path / "cockpit.log"
    assert "ValueError: the worker broke" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    program.type("q")
    assert program.finish() == 0


@pytest.mark.long
def test_a_widget_that_fails_ends_with_a_sentence_and_a_usable_terminal(
    tmp_path: Path, programs: list[Program]
) -> None:
    program = python(FAILING.format(method="key_b"), str(tmp_path))
    programs.append(program)
    before = termios.tcgetattr(program._master)
    assert program.finish(20) == 1
    assert "The cockpit failed: ValueError: the widget broke" in program.text.replace("\n", "")
    assert "Traceback" not in program.text
    assert program.raw.rstrip().rfind(b"\x1b[?1049l") > program.raw.rfind(b"\x1b[?1049h")
    assert termios.tcgetattr(program._master)[3] == before[3]


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(
    live_service: Installation, programs: list[Program], number: signal.Signals
) -> None:
    program = cockpit(live_service, programs)
    program.wait_for("online")
    program.process.send_signal(number)
    assert program.finish() == 0
    assert program.raw.rfind(b"\x1b[?1049l") > program.raw.rfind(b"\x1b[?1049h")


@pytest.mark.long
def test_a_terminal_that_goes_away_ends_it(
    live_service: Installation, programs: list[Program]
) -> None:
    program = cockpit(live_service, programs)
    program.wait_for("online")
    os.kill(program.process.pid, 0)
    # As a multiplexer that died: nobody sends SIGHUP to a group that ignores it.
    os.close(program._master)
    program._master = -1
    assert program.process.wait(60) is not None


@pytest.mark.long
def test_a_draft_survives_the_kill_of_the_cockpit(
    live_service: Installation, programs: list[Program]
) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "quarterdeck", "replica", "create", "--name", "thoughts"],
        env={**os.environ, "QUARTERDECK_HOME": str(live_service.home)},
        cwd=live_service.repository,
        capture_output=True,
        check=True,
        text=True,
    )
    assert "thoughts" in made.stdout
    program = cockpit(live_service, programs)
    program.wait_for("○ idle")
    program.type("\r")
    program.wait_for("enter send")
    program.type("half a thought")
    program.wait_for("half a thought")
    drafts = live_service.home / "client" / "local" / "drafts"
    program.wait(lambda: any(drafts.glob("*.txt")) if drafts.exists() else False)
    program.process.kill()
    program.process.wait()
    again = cockpit(live_service, programs)
    again.wait_for("half a thought")


@pytest.mark.long
def test_a_cockpit_that_nobody_touches_sends_nothing_and_rests(
    live_service: Installation, programs: list[Program]
) -> None:
    program = cockpit(live_service, programs)
    program.wait_for("online")
    program.settle(1.0)
    sent, used = program.sent, _cpu(program.process.pid)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        program.pump(0.1)
    assert program.sent == sent
    assert _cpu(program.process.pid) - used <= 0.03


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
def test_a_window_that_shrinks_under_a_dialog_breaks_nothing(
    live_service: Installation, programs: list[Program]
) -> None:
    program = cockpit(live_service, programs)
    program.wait_for("online")
    program.type("n")
    program.wait_for("New replica")
    for columns, lines in ((50, 20), (160, 50), (20, 8), (80, 24)):
        program.resize(columns, lines)
        program.settle()
    program.wait_for("New replica")
    assert program.process.poll() is None


def test_the_main_screen_is_drawn_with_what_it_shows(
    live_service: Installation, programs: list[Program]
) -> None:
    asyncio.run(live_service.create("here", "hello"))
    program = cockpit(live_service, programs)
    program.wait_for("here · builtin")
    program.settle()
    # Each frame ends with a query, by whose answer the line is measured.
    frames = bytes(program.raw).split(b"\x1b[5n")
    first = next(frame for frame in frames if b"Environments" in frame)
    assert "╭─ ".encode() in first, "the composer of the chat"


def test_a_service_that_does_not_answer_keeps_no_screen_from_being_drawn(
    live_service: Installation, programs: list[Program]
) -> None:
    assert live_service.process is not None
    live_service.process.send_signal(signal.SIGSTOP)
    try:
        program = cockpit(live_service, programs)
        program.wait_for("Environments")
        assert "online" not in program.text
    finally:
        live_service.process.send_signal(signal.SIGCONT)
    program.wait_for("online")


@pytest.mark.long
def test_a_window_that_had_other_sizes_while_nothing_ran_is_drawn_again(
    live_service: Installation, programs: list[Program]
) -> None:
    """As on a machine so busy that one signal tells of several resizes."""
    program = cockpit(live_service, programs)
    program.wait_for("online")
    for key, title, shown in (("", "online", "online"), ("n", "New replica", "Create")):
        program.type(key)
        program.wait_for(title)
        program.settle()
        # The cockpit alone: a child stopped between fork and exec would keep it from stopping.
        os.kill(program.process.pid, signal.SIGSTOP)
        os.waitpid(program.process.pid, os.WUNTRACED)
        for columns, lines in ((20, 8), (80, 24)):
            program.resize(columns, lines)
        assert shown not in program.text
        os.kill(program.process.pid, signal.SIGCONT)
        program.wait_for(shown)


@pytest.mark.long
@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_cannot_be_drawn_on_is_refused(tmp_path: Path, term: str) -> None:
    argv = [sys.executable, "-m", "quarterdeck"]
    place = {"TERM": term, "QUARTERDECK_HOME": str(tmp_path / "home")}
    with Program(argv, environment=place) as program:
        assert program.finish() == 2
        assert f"TERM is {term}" in program.text and "TERM=xterm-256color" in program.text
        assert b"\x1b" not in program.raw
    assert not (tmp_path / "home").exists()  # and no service was started for it
