"""What an agent opens to others on the machine."""

from pathlib import Path

import httpx
import pytest

from tests.real_agents.acp.place import Place

pytestmark = pytest.mark.asyncio(loop_scope="module")

LISTENS = "0A"


def ports_of(pid: int) -> list[int]:
    """TCP ports on which a process listens."""
    sockets = {str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return [
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if row[3] == LISTENS and f"socket:[{row[9]}]" in sockets
    ]


async def test_nobody_else_is_let_in(place: Place) -> None:
    session = await place.open()
    assert session.process_id
    async with httpx.AsyncClient(trust_env=False) as client:
        for port in ports_of(session.process_id):
            for path in ("/session", "/config", "/"):
                answer = await client.get(f"http://127.0.0.1:{port}{path}")
                assert answer.status_code == 401, (port, path, answer.text)
    if place.agent.id == "opencode":
        assert ports_of(session.process_id), "it has always had one"
