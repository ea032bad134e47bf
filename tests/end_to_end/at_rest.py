"""A service that stands still, its database open: what would take hours to come about is put there."""

import asyncio
import sqlite3
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from quarterdeck.wire.replicas import WorkspaceStatus
from tests.support.program import Program
from tests.support.waiting import WAIT_SECONDS, pauses
from tests.tui_shell.conftest import new_installation
from tests.tui_shell.live import Installation


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """A service of the test's own: what it has put into the database, a second run would find."""
    with new_installation(tmp_path) as made:
        yield made


Row = Mapping[str, object]


async def one_asleep(place: Installation, name: str, message: str | None = None) -> UUID:
    """A replica that did what the message asked for, and was put to sleep."""
    await place.ready()
    async with place.client() as client:
        made = await place.create(name, message)
        async with asyncio.timeout(WAIT_SECONDS):
            for pause in pauses(0.05):
                state = await client.replicas.get(made.id)
                said = (await client.history.page(made.id, limit=1)).total
                rests = not any(chat.processing for chat in state.chats)
                if state.status == WorkspaceStatus.ACTIVE and rests and bool(said) == bool(message):
                    break
                await asyncio.sleep(pause)
        await client.replicas.sleep(made.id)
        return made.id


@contextmanager
def database(place: Installation) -> Generator[sqlite3.Connection]:
    """The database of the stopped service, which is started again."""
    place.stop()
    path = place.home / "service" / "quarterdeck.sqlite3"
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.row_factory = sqlite3.Row
        yield opened
    place.start()
    asyncio.run(place.ready())


def insert(opened: sqlite3.Connection, table: str, rows: list[Row]) -> None:
    """Adds rows that have the same columns."""
    names = ", ".join(f'"{name}"' for name in rows[0])
    marks = ", ".join("?" * len(rows[0]))
    values = (tuple(row.values()) for row in rows)
    opened.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)


def cockpit(place: Installation) -> Program:
    """A cockpit of 80 by 24."""
    return Program(
        [sys.executable, "-m", "quarterdeck"],
        environment={"QUARTERDECK_HOME": str(place.home), "QD_URL": "", "QD_API_KEY": ""},
        directory=place.repository,
    )
