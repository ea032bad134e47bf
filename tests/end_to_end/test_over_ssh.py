"""The main job in tmux on another machine, over SSH, in windows of four sizes."""

import getpass
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Place
from tests.end_to_end.test_main_job import CTRL_S, ESCAPE
from tests.git.remotes import ssh_configuration, ssh_remote
from tests.support.program import Program

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

TERMINALS = ("TERM", "TMUX", "COLUMNS", "LINES", "NO_COLOR")
"""Variables that describe a terminal."""
MESSAGE = "```sh\recho More. >> README\r```"
SIZES = [
    pytest.param(80, 24, id="80x24"),
    pytest.param(40, 24, id="40x24", marks=pytest.mark.long),
    pytest.param(120, 40, id="120x40", marks=pytest.mark.long),
    pytest.param(160, 50, id="160x50", marks=pytest.mark.long),
]


@pytest.fixture
def tmux(place: Place, tmp_path: Path, require_tool: Callable[[str], str]) -> Iterator[Path]:
    """A script that opens the cockpit in tmux, or comes back to it."""
    program, socket = require_tool("tmux"), str(tmp_path / "tmux")
    settings = tmp_path / "tmux.conf"
    settings.write_text("set -g status off\nset -s escape-time 0\n")
    variables = {**os.environ, **place.environment, "LANG": "C.UTF-8"}
    exports = [
        f"export {name}={shlex.quote(text)}"
        for name, text in variables.items()
        if name.isidentifier() and name not in TERMINALS
    ]
    server = [program, "-S", socket, "-f", str(settings)]
    opening = shlex.join(
        [*server, "new-session", "-A", "-s", "work", f"{sys.executable} -m quarterdeck"]
    )
    script = tmp_path / "work.sh"
    script.write_text("\n".join([*exports, f"cd {place.repository}", f"exec {opening}"]))
    yield script
    subprocess.run([*server, "kill-server"], check=False, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize(("columns", "lines"), SIZES)
def test_work_goes_on_after_a_lost_connection_and_leaves_the_replica(
    place: Place,
    tmp_path: Path,
    tmux: Path,
    require_tool: Callable[[str], str],
    columns: int,
    lines: int,
) -> None:
    with ssh_remote(tmp_path, require_tool) as server:
        client = ssh_configuration(tmp_path / "ssh_config", server.key).split()
        address = ("-p", str(server.port), "-t", f"{getpass.getuser()}@127.0.0.1")

        def connect() -> Program:
            return Program([*client, *address, f"sh {tmux}"], columns=columns, lines=lines)

        with connect() as program:
            program.wait_for("online")
            program.type("n")
            program.wait_for("New replica")
            program.type(MESSAGE)
            program.wait_for("README")
            program.type(CTRL_S)
            program.wait_gone("New replica")
            program.wait_for("README +1")
            program.type("kept")
            program.wait_for("kept")
            program.process.kill()  # as a connection that is lost
        with connect() as program:
            program.wait_for("kept")
            program.wait_for("README +1")
            program.type(f"{ESCAPE}3")
            program.wait_for("More.")
            program.type("G")
            program.wait_for("Get changes")
            program.type("a")
            program.wait_for("Applied to")
        assert (place.repository / "README").read_text() == "A shop.\nMore.\n"
