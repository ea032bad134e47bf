"""The day of a new user, by keys alone: what to press stands in the bottom line at each step."""

import sys
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Place
from tests.end_to_end.test_main_job import wait_for_keys
from tests.end_to_end.test_rough_day import over
from tests.support.cut_line import CutLine
from tests.support.program import Program

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300), pytest.mark.long]

BACK_TAB, ESCAPE, CTRL_S = "\x1b[Z", "\x1b", "\x13"
AGENT = Path(__file__).with_name("careful.py")
CONFIG = '[agents.careful]\nname = "Careful"\ncommand = ["{}"]\n'


def install_agent(place: Place) -> None:
    """An agent of the person's own."""
    program = place.repository.parent / "bin" / "careful"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{AGENT.read_text()}")
    program.chmod(0o755)
    place.home.mkdir(exist_ok=True)
    (place.home / "config.toml").write_text(CONFIG.format(program))


def press(program: Program, key: str, first: str) -> None:
    """Presses a key, and waits until the bottom line begins otherwise."""
    program.type(key)
    wait_for_keys(program, first)


def create(program: Program, place: Place) -> None:
    program.type("n")
    program.wait_for("Prompt (optional)")
    program.wait_for("Careful")
    program.type("Edit the README")
    program.wait_for("Edit the README")
    program.type(BACK_TAB * 4 + "fix-shop")  # past the buttons and the folded fields
    program.wait_for("fix-shop")
    program.type(CTRL_S)
    program.wait_gone("Prompt (optional)", 60)


def answer(program: Program) -> None:
    """The question is answered with one key."""
    program.wait_for("Yes, edit it", 60)
    program.wait_for("1 needs you")
    press(program, "\x1bq", "y allow")
    program.type("y")
    program.wait_for("The README is mended.")
    program.wait_for("idle")


def review(program: Program) -> None:
    """Two comments on lines of the change, sent as one message."""
    press(program, ESCAPE, "n new")
    press(program, "3", "enter comment")
    program.wait_for("It sells apples.")
    program.type("]")
    for number, text in enumerate(("Better than what?", "Since when?"), start=1):
        press(program, "jjc" if number > 1 else "jc", "enter save")
        program.type(text)
        program.wait_for(text)
        press(program, "\r", "enter comment")
        program.wait_for(f"{number} comment")
    press(program, "S", "enter send")
    press(program, "\r", "enter comment")
    program.wait_for("in one message")
    program.type("1")
    program.wait_for("Both comments are taken to heart.", 60)


def schedule(program: Program) -> None:
    """The same every day at nine."""
    press(program, ESCAPE, "n new")
    press(program, "a", "n new  enter runs")
    program.type("n")
    program.wait_for("New automation")
    program.wait_for("[ ] shop")  # what can be chosen was read
    program.type("daily")
    program.wait_for("daily")
    program.type("\t\r")
    program.wait_for("global")
    program.type("\x1b[B\r")
    program.wait_gone("choose")
    program.type("\t\t\tEdit the README\t0 9 * * *")
    program.wait_for("09:00")
    program.type(CTRL_S)
    program.wait_gone("New automation")
    program.wait_for("Next runs")
    press(program, ESCAPE, "n new  enter open")


def is_all_there(program: Program) -> None:
    """The replica, what was said in it, and the automation."""
    wait_for_keys(program, "n new")
    program.wait_for("fix-shop")
    program.wait_for("Automations")
    press(program, "a", "n new  enter runs")
    program.wait_for("0 9 * * *")
    press(program, ESCAPE, "n new  enter open")
    press(program, "\r", "enter send")
    program.wait_for("Both comments are taken to heart.")
    press(program, ESCAPE, "n new")


def test_a_new_users_day(place: Place) -> None:
    install_agent(place)
    place.serve()
    socket = place.home / "service" / "qd.sock"
    with CutLine(socket).running() as line, over(line, place) as program:
        program.wait_for("online")
        create(program, place)
        answer(program)
        review(program)
        schedule(program)
        line.cut()
        program.wait_for("✗ offline")
        place.kill_service()
        assert place.service is not None
        place.service.wait(60)
        place.serve()
        line.mend()
        program.wait_for("online")
        is_all_there(program)
        program.type("q")
        assert program.finish() == 0
    place.far = {}
    with place.cockpit(120, 40) as program:
        program.wait_for("online")
        is_all_there(program)
