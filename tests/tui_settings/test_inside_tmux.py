"""The real cockpit in a real tmux: what reaches the terminal around both."""

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.tui_shell.conftest import live_service
from tests.tui_shell.live import Installation

__all__ = ["live_service"]

HELD = "```sh\nuntil [ -e ~/go ]; do sleep 0.05; done\n```"
CTRL_Q = "\x11"
TOLD = "other has finished"
Run = Callable[..., str]


@pytest.fixture
def tmux(tmp_path: Path, require_tool: Callable[[str], str]) -> Iterator[Run]:
    """Runs tmux with a server of the test's own."""
    program = require_tool("tmux")
    socket = str(tmp_path / "tmux")

    def run(*arguments: str) -> str:
        command = [program, "-S", socket, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    run.command = [program, "-u", "-S", socket]  # pyright: ignore[reportFunctionMemberAccess]
    yield run
    subprocess.run([program, "-S", socket, "kill-server"], check=False, capture_output=True)


@contextmanager
def cockpit(
    place: Installation, tmux: Run, settings: str, says: str = "", **variables: str
) -> Iterator[Program]:
    """A cockpit in tmux, in a terminal that is known by these variables, or by what it `says` to tmux."""
    file = place.home.parent / "tmux.conf"
    file.write_text(f"set -g status off\nset -g default-terminal tmux-256color\n{settings}\n")
    own = dict.fromkeys(("TERM_PROGRAM", "LC_TERMINAL", "VTE_VERSION", "DISPLAY", "TMUX"), "")
    command = [*tmux.command, "-f", str(file), "new-session"]  # pyright: ignore
    with Program(
        [*command, f"{sys.executable} -m quarterdeck"],
        columns=100,
        lines=30,
        environment={
            **own,
            "QUARTERDECK_HOME": str(place.home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "QD_URL": "",
            "QD_API_KEY": "",
            **variables,
        },
        directory=place.repository,
    ) as program:
        if says:
            program.wait(lambda: b"\x1b[>q" in program.raw)
            program.type(f"\x1bP>|{says}\x1b\\")
        program.wait_for("online")
        yield program
        program.type(CTRL_Q)
        assert program.finish(60) == 0


def do(awaitable) -> None:
    asyncio.run(awaitable)


async def _finish(place: Installation) -> None:
    async with place.client() as client:
        other = next([one async for one in client.replicas.all() if one.name == "other"].__iter__())
        await client.exec.run(other.id, "touch ~/go")


@pytest.mark.long
@pytest.mark.parametrize(
    ("allowed", "reaches", "told"),
    [
        ("on", f":p=body;{TOLD}\x1b\\", "desktop notifications (OSC 99)"),
        ("off", "\a", "set -g allow-passthrough on"),
    ],
)
def test_what_the_terminal_told_tmux_decides_and_the_settings_say_it(
    live_service: Installation, tmux: Run, allowed: str, reaches: str, told: str
) -> None:
    do(live_service.create("alpha"))
    setting = f"set -g allow-passthrough {allowed}"
    with cockpit(live_service, tmux, setting, says="kitty(0.35.2)") as program:
        program.wait_for("idle")
        program.type(",")
        program.wait_for("Theme")
        program.type("4")
        program.wait_for("kitty(0.35.2)")
        program.wait_for(told)
        program.type("\x1b")
        program.wait_for("n new")
        do(live_service.create("other", HELD))
        program.wait_for("working")
        do(_finish(live_service))
        program.wait(lambda: reaches.encode() in program.raw)


@pytest.mark.long
def test_a_terminal_that_says_what_it_is_is_notified_its_own_way(
    live_service: Installation,
) -> None:
    do(live_service.create("alpha"))
    variables = dict.fromkeys(("TERM_PROGRAM", "LC_TERMINAL", "VTE_VERSION", "TMUX"), "")
    with Program(
        [sys.executable, "-m", "quarterdeck"],
        columns=100,
        lines=30,
        environment={
            **variables,
            "QUARTERDECK_HOME": str(live_service.home),
            "QD_URL": "",
            "QD_API_KEY": "",
        },
        directory=live_service.repository,
    ) as program:
        program.wait(lambda: b"\x1b[>0q\x1b[16t\x1b[c" in program.raw)
        program.type("\x1bP>|WezTerm 20240203\x1b\\\x1b[?65;4;6;18;22c")
        program.wait_for("idle")
        do(live_service.create("other", HELD))
        program.wait_for("working")
        do(_finish(live_service))
        reaches = f"\x1b]777;notify;quarterdeck;{TOLD}\a".encode()
        program.wait(lambda: reaches in program.raw)
        program.type(CTRL_Q)
        assert program.finish(60) == 0


@pytest.mark.parametrize(
    ("settings", "variables", "reaches"),
    [
        ("set -g allow-passthrough on", {"LC_TERMINAL": "iTerm2"}, f"\x1b]9;quarterdeck: {TOLD}\a"),
        pytest.param(
            "set -g allow-passthrough on",
            {"VTE_VERSION": "7600"},
            f"\x1b]777;notify;quarterdeck;{TOLD}\a",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "set -g allow-passthrough off",
            {"LC_TERMINAL": "iTerm2"},
            "\a",
            marks=pytest.mark.long,
        ),
    ],
    ids=["osc-9", "osc-777", "bell"],
)
def test_a_notice_goes_through_tmux_or_is_a_bell(
    live_service: Installation, tmux: Run, settings: str, variables: dict[str, str], reaches: str
) -> None:
    do(live_service.create("alpha"))
    with cockpit(live_service, tmux, settings, **variables) as program:
        program.wait_for("idle")
        do(live_service.create("other", HELD))
        program.wait_for("working")
        assert reaches.encode() not in program.raw
        do(_finish(live_service))
        program.wait(lambda: reaches.encode() in program.raw)
        program.wait_for("done")
        assert program.raw.count(reaches.encode()) == 1


@pytest.mark.long
def test_what_is_copied_is_in_tmux_and_on_its_terminal(
    live_service: Installation, tmux: Run
) -> None:
    do(live_service.create("alpha", "hello there"))
    with cockpit(live_service, tmux, "set -s set-clipboard on") as program:
        program.wait_for("Other agents here")
        program.wait_for("idle")
        program.type("\r")
        program.wait_for("enter send")
        program.type("\t")
        program.wait_for("y copy")
        program.type("gy")
        program.wait_for("sent to tmux")
        held = tmux("show-buffer")
        assert held.strip() == "> hello there"
        told = base64.b64encode(held.encode())
        program.wait(lambda: b"\x1b]52;" in program.raw and told in program.raw)
