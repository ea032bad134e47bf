"""Uploads that wait, as rows: kept for a day, or until the message that names them has them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection

from quarterdeck.service.db.database import Database
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.canvas import free_name
from quarterdeck.service.replicas.queued_canvas import (
    add_upload,
    claim_uploads,
    content_of,
    drop_uploads,
    kept_since,
    mark_written,
    uploads_for_message,
    uploads_of_message,
    waiting_uploads,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def add(connection: Connection, workspace: str, hours: float, name: str = "a.md") -> str:
    """An upload of so many hours ago."""
    made = str(uuid4())
    at = moment_text(NOW - timedelta(hours=hours))
    add_upload(connection, b"abc", id=made, workspace_id=workspace, filename=name, created_at=at)
    return made


async def test_kept_for_a_day(database: Database, new_workspace: Any) -> None:
    workspace = await new_workspace(database)

    def run(connection: Connection) -> None:
        young, old = add(connection, workspace, 23.99), add(connection, workspace, 24.01)
        since = kept_since(NOW)
        assert [one.id for one in waiting_uploads(connection, workspace, since)] == [young]
        assert [one.id for one in uploads_for_message(connection, workspace, [young], NOW)] == [
            young
        ]
        with pytest.raises(ApiError) as refused:
            uploads_for_message(connection, workspace, [young, old], NOW)
        assert refused.value.details == f"canvasUploadIds: {old}"
        drop_uploads(connection, since)
        assert content_of(connection, old) is None
        assert content_of(connection, young) == b"abc"

    await database.write(run)


async def test_one_that_a_message_names_is_kept_until_it_is_written(
    database: Database, new_workspace: Any
) -> None:
    workspace = await new_workspace(database)

    def run(connection: Connection) -> None:
        first, second = add(connection, workspace, 20), add(connection, workspace, 19)
        named = uploads_for_message(connection, workspace, [second, first], NOW)
        claim_uploads(connection, named, "message")
        claim_uploads(connection, named, "a later one")
        much_later = NOW + timedelta(days=30)
        drop_uploads(connection, kept_since(much_later))
        waiting = waiting_uploads(connection, workspace, kept_since(much_later))
        assert [one.id for one in waiting] == [first, second]
        assert [one.id for one in uploads_of_message(connection, "message")] == [first, second]
        mark_written(connection, first, "a-2.md", moment_text(much_later))
        (left,) = waiting_uploads(connection, workspace, kept_since(much_later))
        assert left.id == second
        assert content_of(connection, first) == b""
        found = uploads_of_message(connection, "message")[0]
        assert found.file_path == "~/.quarterdeck/canvas/a-2.md"
        drop_uploads(connection, kept_since(much_later))
        assert [one.id for one in uploads_of_message(connection, "message")] == [second]

    await database.write(run)


async def test_those_of_another_workspace_are_unknown(
    database: Database, new_workspace: Any
) -> None:
    mine, other = await new_workspace(database), await new_workspace(database)

    def run(connection: Connection) -> None:
        theirs = add(connection, other, 0)
        for ids in ([theirs], ["no id"], [""], [theirs.upper()]):
            with pytest.raises(ApiError):
                uploads_for_message(connection, mine, ids, NOW)
        assert uploads_for_message(connection, mine, [], NOW) == []
        assert waiting_uploads(connection, mine, kept_since(NOW)) == []

    await database.write(run)


def test_free_names() -> None:
    assert free_name("a.md", set()) == "a.md"
    assert free_name("a.md", {"a.md", "a-2.md"}) == "a-3.md"
    assert free_name("d/a.md", {"a.md"}) == "d/a.md"
    assert free_name("d/a", {"d/a"}) == "d/a-2"
    long = "d/" + "é" * 125 + ".md"
    wide = "x" * 54 + "." + "é" * 100  # its ending has more bytes than characters
    assert len(free_name(wide, {wide}).encode()) == 255
    given = free_name(long, {long})
    assert given.endswith("-2.md") and len(given.encode()) <= 255
