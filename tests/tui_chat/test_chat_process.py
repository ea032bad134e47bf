"""The chat in a real terminal: editors that misbehave, and a cockpit that is killed."""

import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.tui_shell.live import Installation

GOOD = """#!/bin/sh
stty raw -echo -isig
printf '\\033[?1049h\\033[?1003h\\033[3;5r\\033[4h\\033[?25l\\033(0editing'
head -c 1 > /dev/null
cat "$1" > "$1.before"
printf 'from the editor\\nsecond line' > "$1"
"""
KILLED = """#!/bin/sh
stty raw -echo -isig
printf '\\033[?1049h\\033[?1003h\\033(0editing'
head -c 1 > /dev/null
printf 'lost' > "$1"
kill -9 $$
"""

BUSY = """
import asyncio, sys
from pathlib import Path
from textual import work
from textual.widgets import Static
from quarterdeck.tui.outside import edit
from quarterdeck.tui.frames import DiffedFrames
from quarterdeck.tui.textual_ext.type_ahead import TypeAhead

class Busy(TypeAhead, DiffedFrames):
    def compose(self):
        yield Static("ready", id="ticks")
        yield Static(id="text")
    def on_mount(self):
        self.tick()
    async def key_e(self):
        self.query_one("#text").update(await edit(self, "a.md", "before"))
    @work
    async def tick(self):
        with Path(sys.argv[1]).open("a") as ticks:
            for count in range(100_000):
                print(count, file=ticks, flush=True)
                self.query_one("#ticks").update(f"tick {count}")
                await asyncio.sleep(0.01)

Busy().run()
"""
PATIENT = """#!/bin/sh
echo EDITOR-BEGINS
before=$(wc -l < {ticks})
while [ $(wc -l < {ticks}) -lt $((before + 100)) ]; do sleep 0.02; done
printf edited > "$1"
echo EDITOR-ENDS
"""


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    made: list[Program] = []
    yield made
    for program in made:
        program.close()


def cockpit(place: Installation, programs: list[Program], lines: int = 30, **more: str) -> Program:
    program = Program(
        [sys.executable, "-m", "quarterdeck"],
        columns=100,
        lines=lines,
        environment={
            "QUARTERDECK_HOME": str(place.home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "QD_URL": "",
            "QD_API_KEY": "",
            "TMUX": "",
            **more,
        },
        directory=place.repository,
    )
    programs.append(program)
    return program


def created(place: Installation, name: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "quarterdeck", "replica", "create", "--name", name, "--wait"],
        env={**os.environ, "QUARTERDECK_HOME": str(place.home)},
        cwd=place.repository,
        capture_output=True,
        check=True,
    )


def script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "brought"), [(GOOD, "second line"), (KILLED, "editor was killed (SIGKILL)")]
)
def test_the_terminal_is_sane_whatever_the_editor_did(
    live_service: Installation, programs: list[Program], tmp_path: Path, text: str, brought: str
) -> None:
    created(live_service, "alpha")
    editor = script(tmp_path / "editor", text)
    program = cockpit(live_service, programs, VISUAL=editor)
    before = termios.tcgetattr(program._master)
    program.wait_for("alpha")
    program.type("\r")
    program.wait_for("enter sends")
    program.type("half")
    program.wait_for("half")
    inside = termios.tcgetattr(program._master)
    program.type("\x07")
    program.wait_for("editing")
    program.type("x")  # taken by the editor, which ends
    program.wait_for(brought)
    program.settle()
    assert termios.tcgetattr(program._master)[:4] == inside[:4]
    program.type("!")
    program.wait_for("second line!" if text is GOOD else "half!")
    assert "lost" not in program.text
    program.type("\x11")
    assert program.finish() == 0
    assert termios.tcgetattr(program._master)[3] == before[3]
    assert program.raw.rfind(b"\x1b[?1049l") > program.raw.rfind(b"\x1b[?1049h")


@pytest.mark.long
def test_ctrl_c_in_the_editor_is_the_editors(
    live_service: Installation, programs: list[Program], tmp_path: Path
) -> None:
    created(live_service, "alpha")
    waits = "#!/bin/sh\ntrap 'printf interrupted > \"$1\"; exit 0' INT\necho waiting\nwhile :; do sleep 0.1; done\n"
    program = cockpit(live_service, programs, VISUAL=script(tmp_path / "editor", waits))
    program.wait_for("alpha")
    program.type("\r")
    program.wait_for("enter sends")
    program.type("\x07")
    program.wait_for("waiting")
    program.type("\x03")
    program.wait_for("interrupted")
    assert program.process.poll() is None


def test_the_cockpit_goes_on_behind_the_editor_and_paints_nothing(
    programs: list[Program], tmp_path: Path
) -> None:
    ticks = tmp_path / "ticks"
    editor = script(tmp_path / "editor", PATIENT.format(ticks=ticks))
    program = Program([sys.executable, "-c", BUSY, str(ticks)], environment={"VISUAL": editor})
    programs.append(program)
    program.wait_for("tick 5")
    program.type("e")
    # The editor ends when enough was done behind it.
    program.wait_for("edited", 60)
    meanwhile = bytes(program.raw).partition(b"EDITOR-BEGINS")[2].partition(b"EDITOR-ENDS")[0]
    assert meanwhile.strip() == b""
    program.wait(lambda: "tick" in program.text)


@pytest.mark.long
def test_an_unacknowledged_message_survives_the_kill_of_the_cockpit(
    live_service: Installation, programs: list[Program]
) -> None:
    created(live_service, "alpha")
    service = live_service.process
    assert service is not None
    program = cockpit(live_service, programs)
    program.wait_for("alpha")
    program.type("\r")
    program.wait_for("enter sends")
    outbox = live_service.home / "client" / "local" / "outbox"
    service.send_signal(signal.SIGSTOP)
    try:
        program.type("did this arrive\r")
        program.wait(lambda: outbox.exists() and any(outbox.glob("*.json")))
        program.process.kill()
        program.process.wait()
    finally:
        service.send_signal(signal.SIGCONT)
    # High enough that an answer does not push what was asked out of sight.
    again = cockpit(live_service, programs, lines=80)
    again.wait_for("alpha")
    again.type("\r")
    # In the talk when the service had it, else among what waits for a word of the person.
    again.wait_for("did this arrive")
    again.settle()
    said = again.text.count("▎ did this arrive")
    waits = again.text.count("delivery unknown")
    assert said + waits == 1, again.text
