"""The block of ports of each workspace."""

from typing import Any

import pytest
from sqlalchemy import Connection, delete

from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import workspaces
from quarterdeck.service.replicas import rows
from quarterdeck.service.replicas.rows import find_workspace, take_port_block


async def test_the_lowest_free_block_is_assigned_as_long_as_there_is_one(
    database: Database, new_workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "PORT_BLOCKS", 2)
    first, second, third = [await new_workspace(database) for _ in range(3)]

    def take(connection: Connection) -> list[int | None]:
        taken = [take_port_block(connection, id) for id in (first, second, third)]
        connection.execute(delete(workspaces).where(workspaces.c.id == first))
        found = find_workspace(connection, third)
        assert found is not None and found.port_block is None
        return [*taken, take_port_block(connection, third)]

    assert await database.write(take) == [0, 1, None, 0]
