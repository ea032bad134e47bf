"""A bad day of a person with several agents: much at once, over a line that breaks."""

import re

import pytest

from tests.end_to_end.conftest import Place
from tests.support.cut_line import CutLine
from tests.support.program import Program

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

NAMES = ("one", "two", "three", "four")
STREAM = """```sh
i=0
until [ -e ~/go ]; do i=$((i+1)); echo line-$i-of-it; sleep 0.05; done
echo all-$i-lines
```"""
PASTE, PASTED = "\x1b[200~", "\x1b[201~"


def over(line: CutLine, place: Place) -> Program:
    """A cockpit at the far end of the line."""
    key = place.qd("auth", "key").stdout.strip()
    place.far = {"QD_URL": f"http://127.0.0.1:{line.port}", "QD_API_KEY": key}
    return place.cockpit(120, 40)


@pytest.mark.long
def test_four_replicas_stream_through_a_cut_line_and_a_resize(place: Place) -> None:
    place.serve()
    for name in NAMES:
        place.qd("replica", "create", "--name", name, "--wait")
    with (
        CutLine(place.home / "service" / "qd.sock").running() as line,
        over(line, place) as program,
    ):
        program.wait_for("online")
        for name in NAMES:
            place.qd("replica", "send", name, STREAM)
        program.wait_for("4 working", 60)
        program.type("\r")
        program.wait_for("line-")
        program.resize(90, 28)
        program.wait_for("working")
        program.type("kept through it")
        program.wait_for("kept through it")
        line.cut()
        program.wait_for("✗ offline")
        program.type(" all")
        program.wait_for("kept through it all")
        line.mend()
        program.wait_for("online")
        assert "kept through it all" in program.text and "4 working" in program.text
        program.resize(120, 40)
        program.type("\x1b")
        program.wait_for("n new")
        for name in NAMES:
            place.qd("replica", "exec", name, "touch ~/go")
        program.wait(lambda: "working" not in program.text, 60)
    for name in NAMES:
        told = place.qd("replica", "history", name).stdout
        count = re.search(r"^ *all-([0-9]+)-lines", told, re.MULTILINE)
        assert count is not None, name
        lines = re.findall(r"^ *line-([0-9]+)-of-it", told, re.MULTILINE)
        assert lines == [str(number) for number in range(1, int(count[1]) + 1)], name


@pytest.mark.long
def test_a_message_of_a_megabyte_is_pasted_and_arrives_whole(place: Place) -> None:
    words = (f"word{number:06d}" + " \r"[number % 8 == 7] for number in range(90_000))
    body = "".join(words)
    place.serve()
    place.qd("replica", "create", "--name", "big", "--wait")
    with place.cockpit() as program:
        program.wait_for("online")
        program.type("\r")
        program.wait_for("enter sends")
        for at in range(0, len(framed := f"{PASTE}{body}the end{PASTED}"), 4000):
            program.type(framed[at : at + 4000])
            program.pump(0)
        program.wait_for("[paste 1: 11,251 lines, 990.0 kB]")
        program.type("\r")
        program.wait_for("In plan mode I list", 60)  # of the answer: there is nothing to run in it
    told = place.qd("replica", "history", "big").stdout
    assert "word000000" in told and "word089999" in told and "the end" in told
