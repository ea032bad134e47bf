"""Indexes and previews as rows, on every database."""

from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.db.database import Database
from quarterdeck.service.previews.rows import (
    PreviewRow,
    add_preview,
    count_previews,
    find_target,
    keep_port,
    kept_port,
    previews_of,
    remove_preview,
)
from quarterdeck.service.replicas.file_indexes import (
    BadIndexError,
    IndexOrigin,
    SavedIndex,
    files_of,
    find_index,
    pack,
    save_index,
    unpack,
)

EARLY, LATE = "2026-11-21T10:00:00.000Z", "2026-11-21T11:00:00.000Z"


async def test_an_index_takes_the_place_of_the_one_before(
    database: Database, new_workspace: Any
) -> None:
    workspace = await new_workspace(database)
    first = SavedIndex(workspace, IndexOrigin.ENGINE, False, EARLY)
    second = SavedIndex(workspace, IndexOrigin.ENGINE, True, LATE)
    other = SavedIndex(workspace, IndexOrigin.FALLBACK, False, EARLY)

    def run(connection: Connection) -> None:
        for index, files in ((first, b"\0one"), (other, b"other"), (second, b"\xfftwo")):
            save_index(connection, index, files)
        assert find_index(connection, workspace, IndexOrigin.ENGINE, EARLY) == second
        assert find_index(connection, workspace, IndexOrigin.FALLBACK, EARLY) == other
        assert find_index(connection, workspace, IndexOrigin.FALLBACK, LATE) is None
        assert files_of(connection, second) == b"\xfftwo"
        assert files_of(connection, first) is None
        gone = SavedIndex("no-workspace", IndexOrigin.ENGINE, False, LATE)
        save_index(connection, gone, b"")
        assert find_index(connection, "no-workspace", IndexOrigin.ENGINE, EARLY) is None

    await database.write(run)


async def test_previews(database: Database, new_workspace: Any) -> None:
    workspace = await new_workspace(database, status="active", home_id="here")
    rows = [PreviewRow(workspace, port, f"token{port}", EARLY) for port in (80, 4000)]

    def run(connection: Connection) -> None:
        for row in reversed(rows):
            add_preview(connection, row)
        assert previews_of(connection, workspace) == rows
        assert count_previews(connection, "here") == 2
        assert count_previews(connection, "elsewhere") == 0
        found = find_target(connection, "here", "token80")
        assert found is not None and (found.port, found.status) == (80, "active")
        assert find_target(connection, "here", "token8") is None
        assert find_target(connection, "elsewhere", "token80") is None
        assert remove_preview(connection, workspace, 80) is True
        assert remove_preview(connection, workspace, 80) is False
        assert kept_port(connection, "here") is None
        for port in (1234, 4321):
            keep_port(connection, "here", port)
            assert kept_port(connection, "here") == port
        assert kept_port(connection, "elsewhere") is None

    await database.write(run)
    with pytest.raises(IntegrityError):
        await database.write(lambda c: add_preview(c, rows[1]))


def test_packed_files() -> None:
    repositories = [("a", ["x", "\\xff", "\n"], "ucn"), ("b", [], "")]
    assert unpack(pack(repositories)) == repositories
    whole = pack(repositories)
    for bad in (b"", b"nonsense", whole[:-3], pack([("a", ["x"], "")]), pack([("a", "x", "u")])):  # type: ignore[list-item]
        with pytest.raises(BadIndexError):
            unpack(bad)
