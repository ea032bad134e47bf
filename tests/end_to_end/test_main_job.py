"""The main job, as a person does it in a terminal."""

import re

import pytest

from tests.end_to_end.conftest import Place
from tests.support.program import Program

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

ESCAPE = "\x1b"
CTRL_G = "\x07"
CTRL_S = "\x13"
CTRL_U = "\x15"

MESSAGE = "Run the check:\r\r```sh\rsh check.sh\r```"


TO_NAME = 4
"""Fields back from the prompt, over the buttons and the folded fields, to the name."""


def create(program: Program, message: str, name: str, start: tuple[str, str] | None = None) -> None:
    """Fills the dialog in: the focus begins in the message.

    `start` has an address, and the uncommitted files that are included.
    """
    program.wait_for("online")
    program.type("n")
    program.wait_for("New replica")
    program.wait_for("Prompt (optional)")
    program.type(message)
    program.wait_for(message.rpartition("\r")[2])
    program.type(f"{ESCAPE}[Z" * TO_NAME)
    program.settle(0.2)
    program.type(name)
    program.wait_for(name)
    if start is not None:
        program.wait_for(f"[ ] include {start[1]}")
        program.type(f"{ESCAPE}[Z" * 6 + f"{CTRL_U}{start[0]}")
        program.wait_for(start[0][-20:])
        program.type("\t\t ")
        program.wait_for(f"[x] include {start[1]}")
    program.type(CTRL_S)
    program.wait_gone("New replica")


def to_list(program: Program) -> None:
    """From the composer to the list."""
    wait_for_keys(program, ("enter send", "enter queue"))
    program.type(ESCAPE)
    wait_for_keys(program, "n new")


def wait_for_keys(program: Program, first: str | tuple[str, ...]) -> None:
    """Waits until the line at the bottom begins so, which tells what has the focus."""
    program.wait(lambda: program.text.splitlines()[-1].strip().startswith(first))


def test_a_day_of_work_survives_everything(place: Place) -> None:
    with place.cockpit() as program:
        create(program, MESSAGE, "fix-shop")
        program.wait_for("sh check.sh")
        program.wait_for("exit 1")
        program.wait_for("the last turn failed")

        to_list(program)
        program.type("t")
        program.wait_for("shop$")
        program.type("vim -N -u NONE fixed\r")
        program.wait_for("[New")
        program.type("i")
        program.wait_for("INSERT")
        program.type("it works now")
        program.wait_for("it works now")
        program.type(f"{ESCAPE}:wq\r")  # in one read, as a slow line delivers it
        program.wait(lambda: re.search(r"\+[1-9]", program.text.splitlines()[1]) is not None)
        program.type("echo still-here-$((20+3))\r")
        program.wait_for("still-here-23")

        program.type(CTRL_G)
        program.wait_for("l list")
        program.type("l")
        program.wait_for("n new")
        program.type("q")
        assert program.finish() == 0

    place.kill_service()

    with place.cockpit() as program:
        program.wait_for("fix-shop")
        program.wait_for("online")
        program.type("\r")
        program.wait_for("sh check.sh")
        program.wait_for("exit 1")
        to_list(program)
        program.type("t")
        program.wait_for("still-here-23")
        program.type("cat fixed\r")
        program.wait(lambda: program.text.count("it works now") >= 1)


@pytest.mark.long
def test_a_killed_service_is_seen_and_comes_back(place: Place) -> None:
    with place.cockpit() as program:
        create(
            program,
            "```sh\rfor i in 1 2 3 4 5 6 7 8; do echo tick-$i; sleep 0.5; done\r```",
            "ticks",
        )
        program.wait_for("tick-2")
        place.kill_service()
        program.wait_for("✗ offline")
        program.wait_for("online")
        program.wait_for("idle")
        program.wait_for("ran without an error")
    shown = place.qd("replica", "show", "ticks").stdout
    assert "active" in shown


@pytest.mark.long
def test_a_name_with_white_space_is_refused_beside_its_field(place: Place) -> None:
    with place.cockpit(80, 24) as program:
        program.wait_for("online")
        program.type("n")
        program.wait_for("New replica")
        program.wait_for("Prompt (optional)")
        program.type(f"{ESCAPE}[Z" * TO_NAME)
        program.settle(0.2)
        program.type("two words")
        program.wait_for("two words")
        program.type(CTRL_S)
        program.wait_for("cannot contain spaces")
        assert "two words" in program.text


@pytest.mark.long
def test_a_repository_that_is_none_is_refused_beside_its_field(place: Place) -> None:
    with place.cockpit(80, 24) as program:
        program.wait_for("online")
        program.type("n")
        program.wait_for("New replica")
        program.wait_for("Prompt (optional)")
        program.type("\t")
        program.settle(0.2)
        program.type("/nowhere/at/all")
        program.wait_for("/nowhere/at/all")
        program.type(CTRL_S)
        program.wait_for("epository")
        program.wait(lambda: "no git repository" in program.text or "not a" in program.text)
