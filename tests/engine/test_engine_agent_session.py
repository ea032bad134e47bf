"""What is kept of the session of a chat's agent."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from quarterdeck.agents.port import SESSION_FILE
from quarterdeck.engine.agent_session import AgentPlace, AgentSessionHolder
from tests.support.disks import limited_files

CHAT = UUID(int=1)


class Driver:
    """Opens sessions with the ids that it is given."""

    def __init__(self, *ids: str) -> None:
        self._ids = list(ids)

    def driver(self, name: str) -> "Driver":
        return self

    async def open(self, spec: Any, sink: Any) -> Any:
        async def close() -> None:
            pass

        return SimpleNamespace(id=self._ids.pop(0), close=close)


async def test_a_full_disk_keeps_the_id_of_the_session_before(tmp_path: Path) -> None:
    driver = Driver("first", "second")
    place = AgentPlace(lambda: cast(Any, driver), tmp_path, tmp_path, {})
    chat: Any = SimpleNamespace(
        record=SimpleNamespace(id=CHAT, provider="builtin"), session_id=None
    )
    holder = AgentSessionHolder(place, chat, cast(Any, None), lambda: None)
    await holder.open(None)
    await holder.drop()
    with limited_files(0):
        await holder.open(None)
    assert (tmp_path / str(CHAT) / SESSION_FILE).read_text() == "first"
