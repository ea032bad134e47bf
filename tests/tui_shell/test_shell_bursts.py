"""Whole bursts of keys, sent to the program in one write, as somebody types who does not look."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.visible import text_rows
from tests.tui_shell.live import Installation

SLOW = """
import asyncio
from quarterdeck.cli import main
from quarterdeck.tui.forms.create import CreateScreen
from quarterdeck.tui.panes.replica import ReplicaPane

def slowly(kind):
    mounted = kind.on_mount
    async def on_mount(self):
        await asyncio.sleep(0.5)
        await result if (result := mounted(self)) is not None else None
    kind.on_mount = on_mount

slowly(ReplicaPane)
slowly(CreateScreen)
main()
"""
"""The same program where widgets take their time, as on a busy machine."""

PROGRAMS = {"quick": ("-m", "quarterdeck"), "slow": ("-c", SLOW)}


@pytest.fixture(params=PROGRAMS)
def program(live_service: Installation, request: pytest.FixtureRequest) -> Iterator[Program]:
    async def replicas() -> None:
        for name in ("alpha", "bravo", "charlie"):
            await live_service.create(name)

    asyncio.run(replicas())
    with Program(
        [sys.executable, *PROGRAMS[request.param]],
        columns=100,
        lines=30,
        environment={
            "QUARTERDECK_HOME": str(live_service.home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "QD_URL": "",
            "QD_API_KEY": "",
        },
        directory=live_service.repository,
    ) as made:
        made.wait_for("online")
        made.wait(lambda: made.text.count("idle") >= 3)
        yield made


def shown(program: Program) -> str:
    """The replica beside the list."""
    return text_rows(program.screen)[1].partition("│")[2].split()[0]


@pytest.mark.long
def test_bursts_go_where_they_were_meant(program: Program) -> None:
    # Escape is sent alone: with the next key in the same read it would be Alt and that key.
    program.type("\x1b[Fmfor the last\x1b")
    program.wait_for("for the last")
    program.wait_for("n new")
    last = shown(program)
    program.type("gmfor the first")
    program.wait_for("for the first")
    assert shown(program) != last
    program.type("\x1b")
    program.wait_for("n new")
    program.type("/bravo\r7echo hi-$((40+2))\r")
    program.wait_for("hi-42")
    assert shown(program) == "bravo"
    program.type("\x1b")
    program.wait_for("n new")
    program.type("nWrite a poem about keys")
    program.wait_for("New replica")
    program.wait_for("Write a poem about keys")
