"""Five hundred replicas: the list opens, narrows and moves, and a key costs what it costs with few."""

import asyncio
import statistics
from uuid import uuid4

import pytest

from tests.end_to_end.at_rest import Row, cockpit, database, insert, installation, one_asleep
from tests.support.program import Program
from tests.tui_shell.live import Installation

__all__ = ["installation"]

pytestmark = pytest.mark.end_to_end

FEW, MANY = 12, 500
STEPS = 5
READING = "reading …"


def copy_rows(place: Installation, first: int, end: int) -> None:
    """Rows like that of the one which sleeps: what is at rest has no process, and here no files."""
    with database(place) as opened:
        model = opened.execute("SELECT * FROM workspaces WHERE name = 'one-000'").fetchone()
        (chat,) = opened.execute("SELECT * FROM chats WHERE workspace_id = ?", (model["id"],))
        replicas: list[Row] = []
        chats: list[Row] = []
        for number in range(first, end):
            own = {
                "id": str(uuid4()),
                "name": f"one-{number:03}",
                "status": ("sleeping", "archived")[number % 5 == 4],
                "engine_secret_sealed": "",
            }
            replicas.append({**dict(model), **own})
            chats.append({**dict(chat), "id": str(uuid4()), "workspace_id": own["id"]})
        insert(opened, "workspaces", replicas)
        insert(opened, "chats", chats)


def bytes_of_a_key(program: Program) -> float:
    """What a step down costs on the line, where the list need not scroll: the middle of some."""
    program.type("g")
    told = []
    for name in listed(program)[1 : STEPS + 1]:
        program.settle()
        before = program.sent
        program.type("j")
        program.wait(lambda n=name: head_of(program).startswith(n) and READING not in program.text)
        program.settle()
        told.append(program.sent - before)
    return statistics.median(told)


def head_of(program: Program) -> str:
    """The line above the tabs, which tells the replica that is shown."""
    return program.text.splitlines()[1].partition("│")[2].strip()


def listed(program: Program) -> list[str]:
    """The names that are on the screen, from the top."""
    words = [line.split() for line in program.text.splitlines()]
    return [part[1] for part in words if len(part) > 1 and part[1].startswith("one-")]


@pytest.mark.long
def test_five_hundred_replicas(installation: Installation) -> None:
    asyncio.run(one_asleep(installation, "one-000"))
    copy_rows(installation, 1, FEW)
    with cockpit(installation) as program:
        program.wait(lambda: len(listed(program)) == FEW)
        with_few = bytes_of_a_key(program)
    copy_rows(installation, FEW, MANY)
    with cockpit(installation) as program:
        program.wait(lambda: len(listed(program)) > FEW)
        with_many = bytes_of_a_key(program)
        assert with_few <= 600
        assert with_many <= with_few + 40, (with_few, with_many)
        top = listed(program)
        program.type("\x1b[F")
        program.wait(lambda: bool(listed(program)) and not set(listed(program)) & set(top))
        program.type("/one-49")
        program.wait_for("10 of 500")
        assert len(listed(program)) >= 10
        program.type("7")
        program.wait_for("1 of 500")
        program.wait(lambda: set(listed(program)) == {"one-497"})
        program.type("\r")
        program.wait_for("n new")
        program.type("\x1b")
        program.wait(lambda: len(listed(program)) > FEW)
        program.wait(lambda: "one-497" in listed(program))
        program.type("q")
        assert program.finish() == 0
