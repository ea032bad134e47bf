"""A chat of a hundred thousand events: its end is there, its older pages come, it is not held whole."""

import asyncio
import re
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from tests.bench.table import resident_mb
from tests.end_to_end.at_rest import Row, cockpit, database, insert, installation, one_asleep
from tests.support.program import Program
from tests.tui_shell.live import Installation

__all__ = ["installation"]

pytestmark = pytest.mark.end_to_end

EVENTS = 100_000
UUID_TEXT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ONE_TURN = (
    'SELECT * FROM events WHERE workspace_id = ? AND history_index IS NOT NULL ORDER BY "index"'
)
COUNT_EVENTS = "UPDATE workspaces SET next_event_index = ?, next_history_index = ? WHERE id = ?"
PAGES = 12
MOST_MB = 150


def repeat_turn(place: Installation, replica: UUID) -> int:
    """Copies of the one turn, each with ids and a number of its own; how many there are."""
    of = str(replica)
    with database(place) as opened:
        turn = [dict(row) for row in opened.execute(ONE_TURN, (of,))]
        (last,) = opened.execute("SELECT next_event_index FROM workspaces WHERE id = ?", (of,))
        chat, copies = turn[0]["chat_id"], EVENTS // len(turn)
        rows: list[Row] = []
        for number in range(1, copies + 1):
            for row in copy_of(turn, number, {of, chat}):
                place_in_history = {
                    "index": last[0] + len(rows) + 1,
                    "history_index": len(turn) + len(rows),
                    "chat_history_index": len(turn) + len(rows),
                }
                rows.append({**row, **place_in_history})
        insert(opened, "events", rows)
        total, end = len(turn) + len(rows), last[0] + len(rows)
        opened.execute(COUNT_EVENTS, (end, total, of))
        opened.execute("UPDATE chats SET next_history_index = ? WHERE id = ?", (total, chat))
    return copies


def copy_of(turn: list[dict[str, str]], number: int, kept: set[str]) -> Iterator[dict[str, str]]:
    """The turn's events once more: what names one of them by its old id names it by its new one."""
    ids = {one: one for one in kept}
    for row in turn:
        payload = UUID_TEXT.sub(
            lambda found: ids.setdefault(found[0], str(uuid4())), row["payload_json"]
        )
        payload = payload.replace("turn-0", f"turn-{number}")
        yield {**row, "id": str(uuid4()), "payload_json": payload}


def turns_on(program: Program) -> list[int]:
    """The numbers of the turns that are on the screen."""
    return [int(one) for one in re.findall(r"turn-(\d+)", program.text)]


@pytest.mark.long
def test_a_hundred_thousand_events(installation: Installation) -> None:
    replica = asyncio.run(one_asleep(installation, "long", "```sh\necho turn-0\n```"))
    last = repeat_turn(installation, replica)
    with cockpit(installation) as program:
        program.wait_for("long")
        program.type("\r")
        program.wait(lambda: last in turns_on(program))
        program.type("\t")
        for _ in range(PAGES):
            top = min(turns_on(program))
            program.type("\x1b[5~")
            program.wait(lambda t=top: bool(turns_on(program)) and min(turns_on(program)) < t)
        assert max(turns_on(program)) < last
        program.type("\x1b[F")
        program.wait(lambda: last in turns_on(program))
        assert resident_mb(program.process.pid) < MOST_MB
        program.type("\x1b")
        program.wait_for("n new")
        program.type("q")
        assert program.finish() == 0
