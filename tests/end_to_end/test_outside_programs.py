"""Editors and pagers that are killed, wherever the cockpit starts one: the terminal stays sane."""

import termios
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Place
from tests.end_to_end.test_main_job import CTRL_S, ESCAPE, wait_for_keys
from tests.support.program import Program

pytestmark = [pytest.mark.end_to_end, pytest.mark.long]

CTRL_O = "\x0f"
WORDS = "killed was killed (SIGKILL)"
KILLED = """#!/bin/sh
stty raw -echo -isig
printf '\\033[?1049h\\033[?1003h\\033[3;5r\\033[4h\\033(0editing'
printf 'lost' >> "$1"
kill -9 $$
"""


UNDONE = {b"\x1b[?1049l", b"\x1b[?1003l", b"\x1b[r", b"\x1b[4l", b"\x1b(B"}


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's editor and pager."""
    path = tmp_path / "killed"
    path.write_text(KILLED)
    path.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(path))
    monkeypatch.setenv("PAGER", str(path))


def leaves_it_sane(program: Program, key: str, *told: str) -> None:
    """A key starts the program; it is told of, and the terminal is the cockpit's again."""
    before, sent = termios.tcgetattr(program._master)[:4], program.sent
    program.type(key)
    program.wait(lambda: b"\x1b[?1049h" in program.raw[sent:].partition(b"editing")[2])
    for words in told:
        program.wait_for(words)
    assert termios.tcgetattr(program._master)[:4] == before
    modes = program.raw[sent:].partition(b"editing")[2].partition(b"\x1b[?1049h")[0]
    assert not [mode for mode in UNDONE if mode not in modes]


def test_of_files_and_changes(place: Place, killed: None) -> None:
    message = "```sh\necho more >> README\n```"
    place.serve()
    place.qd("replica", "create", "--name", "alpha", "--message", message, "--wait")
    with place.cockpit() as program:
        program.wait_for("+1")
        program.type("4")
        program.wait_for("2 files")
        program.type("READ")
        program.wait_for("1 file")
        program.type("\r")
        program.wait_for("A shop.")
        leaves_it_sane(program, "e", WORDS, "A shop.")
        leaves_it_sane(program, "p", WORDS, "A shop.")
        program.type("j")
        program.wait_for("2/2")
        program.type(f"{ESCAPE}{ESCAPE}")
        wait_for_keys(program, "n new")
        program.type("3")
        program.wait_for("+ more")
        program.type("]")
        leaves_it_sane(program, "e", WORDS, "+ more")
        assert "lost" not in program.text


@pytest.mark.long
def test_of_a_form_and_a_hook(place: Place, killed: None) -> None:
    place.serve()
    place.qd("env", "create", "bakery")
    with place.cockpit() as program:
        program.wait_for("online")
        program.type("e")
        program.wait_for("bakery")
        program.type(f"{ESCAPE}[B")
        program.wait_for("Name          bakery")
        program.type("\r")
        program.type("p")
        program.wait_for("System prompt of bakery")
        program.type("be kind")
        program.wait_for("be kind")
        leaves_it_sane(program, CTRL_O, WORDS, "be kind")
        program.type("!")
        program.wait_for("be kind!")
        program.type(CTRL_S)
        program.wait_gone("ctrl+s save")
        program.wait_for("be kind!")
        program.type("6")
        program.wait_for("enter to write one")
        program.type("\r")
        program.wait_for("Warm hook of bakery")
        program.type("echo warm")
        program.wait_for("echo warm")
        program.wait_gone(WORDS)
        leaves_it_sane(program, CTRL_O, WORDS, "echo warm")
        program.type("er")
        program.wait_for("echo warmer")
