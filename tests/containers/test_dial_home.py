"""Engines that connect to their service, and all that goes over these connections."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from quarterdeck.engine.dial_home import NoBootError, ServiceAddress, fetch_boot
from quarterdeck.sandboxes.errors import EngineAwayError, SandboxError
from quarterdeck.sandboxes.trees import remove_tree
from quarterdeck.wire.dial_home import BOOT_VARIABLE, LINK_PATH
from tests.containers import processes
from tests.containers.deck import Deck
from tests.containers.losses import save_of
from tests.containers.processes import ProcessContainers
from tests.support.git import make_repository
from tests.support.waiting import WAIT_SECONDS, eventually

SERVER = (
    "import http.server as h, os\n"
    "class P(h.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        self.send_response(200); self.end_headers(); self.wfile.write(b'a page')\n"
    "    def log_message(self, *a): pass\n"
    "s = h.HTTPServer(('127.0.0.1', 0), P)\n"
    "print(s.server_port, os.getpid(), flush=True)\n"
    "s.serve_forever()\n"
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop")


async def refused(deck: Deck, id: str, token: str) -> int:
    """The status with which a link is refused."""
    address = ServiceAddress(deck.url, id)
    with pytest.raises(InvalidStatus) as caught:
        async with address.dial(LINK_PATH, token):
            pass
    return caught.value.response.status_code


async def test_a_replica_works_over_its_connections(deck: Deck, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    assert (await deck.run(id, "cd shop && git status --short --branch")).startswith("## ")
    assert "from a terminal" in await deck.in_terminal(id, "echo from a terminal")
    # More at once than connections that wait.
    numbers = await asyncio.gather(*(deck.in_terminal(id, f"echo n{n}n") for n in range(6)))
    assert all(f"n{n}n" in seen for n, seen in enumerate(numbers))
    # Much in one go.
    assert len(await deck.in_terminal(id, "head -c 3000000 /dev/zero | tr '\\0' x")) >= 3_000_000


async def test_an_engine_loads_nothing_that_its_connections_do_not_use(
    deck: Deck, monkeypatch
) -> None:
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    monkeypatch.setattr(processes, "PROGRAM", (sys.executable, "-I", "-v", *processes.PROGRAM[2:]))
    id = await deck.create(await deck.environment())
    assert "from a terminal" in await deck.in_terminal(id, "echo from a terminal")
    log = (containers.place(id) / "log").read_text()
    loaded = set(re.findall(r"^import '(\S+)'", log, re.MULTILINE))
    assert "websockets.asyncio.client" in loaded
    unused = {
        "_hashlib",
        "_ssl",
        "argparse",
        "http.client",
        "quarterdeck.agents.catalog",
        "zipfile",
    }
    assert not loaded & unused


@pytest.mark.long
async def test_a_preview_goes_over_them(deck: Deck, tmp_path: Path) -> None:
    id = await deck.create(await deck.environment())
    (tmp_path / "server.py").write_text(SERVER)
    printed = tmp_path / "port"
    printed.touch()
    # In a group of its own: a command's processes end with it.
    await deck.run(id, f"setsid python3 {tmp_path / 'server.py'} > {printed} 2>&1 &")
    seen = await eventually(lambda: printed.read_text().strip(), "a port")
    port, pid = map(int, seen.split())
    lines = (await deck.run(id, "env")).splitlines()
    given = dict(line.split("=", 1) for line in lines if line.startswith("QD_"))
    headers = {
        "Authorization": f"Bearer {given['QD_ENGINE_SECRET']}",
        "X-Workspace-Id": given["QD_WORKSPACE_ID"],
    }
    async with httpx.AsyncClient(
        base_url=given["QD_URL"], headers=headers, timeout=WAIT_SECONDS
    ) as inside:
        opened = await inside.post("/v1/previews", json={"port": port})
        preview = opened.json()["preview"]
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as browser:
        assert (await browser.get(preview["publicUrl"])).text == "a page"
        await deck.run(id, f"kill {pid}")

        async def gone() -> bool:
            try:
                answer = await browser.get(preview["publicUrl"])
            except httpx.RemoteProtocolError:  # it ended just then
                return False
            return answer.status_code == 502 and "Nothing listens" in answer.text

        await eventually(gone, "the end of the program")


@pytest.mark.long
async def test_the_configuration_is_given_out_once(deck: Deck, repository: Path) -> None:
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    id = await deck.create(await deck.environment(str(repository)))
    token = containers.launches[0].environment[BOOT_VARIABLE]
    for wrong in (token, "made up"):
        with pytest.raises(NoBootError, match="403"):
            await fetch_boot(ServiceAddress(deck.url, id), wrong)
    # What starts a container opens no link, and programs inside do not have it.
    assert await refused(deck, id, token) == 403
    assert token not in await deck.run(id, "env")
    row = await deck.service.context.workspace(id)
    assert row is not None
    secret = deck.service.context.vault.unseal(id, row.engine_secret_sealed)
    written = [path for path in containers.place(id).rglob("*") if path.is_file()]
    assert written and not [path for path in written if secret.encode() in path.read_bytes()]


async def test_strangers_are_refused(deck: Deck) -> None:
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    environment = await deck.environment()
    mine, other = await deck.create(environment), await deck.create(environment)
    boots: list[str] = []
    keep = deck.driver.switchboard.keep_boot

    def kept(id: str, text: str) -> str:
        boots.append(json.loads(text)["token"])
        return keep(id, text)

    deck.driver.switchboard.keep_boot = kept  # type: ignore[method-assign]
    assert (await deck.client.post(f"/v1/replica/{other}/sleep")).status_code == 200
    await deck.client.post(f"/v1/replica/{other}/wake")
    await deck.reach(other, "active")
    (token,) = boots
    assert await refused(deck, mine, token) == 403  # of another replica
    assert await refused(deck, str(uuid4()), token) == 403
    path = {"Authorization": f"Bearer {token}", "X-Workspace-Id": f"../{other}"}
    for headers in ({}, {"Authorization": "Basic x"}, path):
        with pytest.raises(InvalidStatus, match="401"):
            async with connect(
                f"ws://{deck.host}:{deck.port}{LINK_PATH}", additional_headers=headers, proxy=None
            ):
                pass
    # No other path becomes a WebSocket.
    with pytest.raises(InvalidStatus, match=r"404|401"):
        async with connect(f"ws://{deck.host}:{deck.port}/v1/nothing", proxy=None):
            pass
    # An earlier container, once another one is meant to run.
    containers.digests[other] = "of a later container"
    deck.driver.switchboard.end(other)
    assert await refused(deck, other, token) == 403
    containers.fault = SandboxError("The container engine does not answer.")
    assert await refused(deck, other, token) == 503


@pytest.mark.long
async def test_a_new_container_ends_the_connections_of_the_earlier_one(deck: Deck) -> None:
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    id = await deck.create(await deck.environment())
    reader, writer = await deck.driver.connect(id)
    containers.digests[id] = "of a later container"
    switchboard = deck.driver.switchboard
    switchboard.end(id)
    assert await reader.read() == b""
    writer.close()


@pytest.mark.long
async def test_a_service_that_was_restarted_takes_its_engines_over(deck: Deck) -> None:
    id = await deck.create(await deck.environment())
    await deck.run(id, "echo kept > note; (sleep 1; echo later >> note) &")
    before = await deck.run(id, "echo $PPID")
    base = f"/v1/workspaces/{id}/terminal/sessions"
    session = (await deck.post(base, {"cols": 80, "rows": 24}, 201))["session"]["id"]
    await deck.stop()
    await deck.start()
    assert await deck.running(id, "echo $PPID") == before
    assert [one["id"] for one in (await deck.get(base))["sessions"]] == [session]
    assert len(deck.containers.launches) == 1  # type: ignore[attr-defined]


@pytest.mark.long
async def test_a_container_that_ended_is_started_again_with_its_files(deck: Deck) -> None:
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    id = await deck.create(await deck.environment())
    await deck.run(id, "echo kept > note")
    containers.processes[id].kill()
    assert await deck.running(id, "cat note") == "kept\n"
    first, second = containers.launches
    assert first.digest != second.digest


@pytest.mark.long
async def test_a_line_that_was_cut_loses_nothing(deck: Deck) -> None:
    """Every connection breaks while a turn runs, and the container engine does not answer either."""
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    id = await deck.create(await deck.environment())
    base = f"/v1/workspaces/{id}/terminal/sessions"
    session = (await deck.post(base, {"cols": 80, "rows": 24}, 201))["session"]["id"]
    block = "```sh\nfor i in 1 2 3 4; do echo tick $i; sleep 0.3; done\n```"
    sent = await deck.post(f"/v1/replica/{id}/messages", {"message": block})
    containers.fault = EngineAwayError("The container engine does not answer.")
    deck.driver.switchboard.end(id)

    async def refused() -> bool:
        answer = await deck.client.get(base)
        return answer.status_code in (502, 503)

    await eventually(refused, "the cut")
    containers.fault = None

    async def ended() -> list[dict[str, Any]]:
        events = (await deck.get(f"/v1/replica/{id}/history"))["events"]
        return [one for one in events if one["type"] == "turn-result"]

    (result,) = await eventually(ended, "the end of the turn")
    assert result["payload"]["messageId"] == sent["message_id"]
    text = json.dumps((await deck.get(f"/v1/replica/{id}/history"))["events"])
    assert all(f"tick {n}" in text for n in range(1, 5))
    assert [one["id"] for one in (await deck.get(base))["sessions"]] == [session]
    assert len(containers.launches) == 1


@pytest.mark.long
async def test_a_container_that_cannot_boot_says_why(deck: Deck, repository: Path) -> None:
    environment = await deck.environment(str(repository))
    deck.driver.switchboard.open_boot = lambda workspace_id, token: None  # type: ignore[method-assign]
    body = {"name": "broken", "environment_id": environment}
    id = (await deck.post("/v1/replica", body, 201))["replica"]["id"]
    error = (await deck.reach(id, "error"))["error"]
    assert "ended at once" in error and "refuses the token of this start (403)" in error


@pytest.mark.long
async def test_a_damaged_archive_is_left_alone(deck: Deck) -> None:
    id = await deck.create(await deck.environment())
    await deck.run(id, "echo kept > note")
    assert (await deck.client.post(f"/v1/replica/{id}/archive")).status_code == 200
    archive = deck.home.archives / f"{id}.tar.gz"
    whole = archive.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"nothing of the kind"):
        archive.write_bytes(damaged)
        await deck.client.post(f"/v1/replica/{id}/wake")
        assert "damaged" in (await deck.reach(id, "error"))["error"]
        assert archive.read_bytes() == damaged
    archive.unlink()
    remove_tree(save_of(deck, id))  # or that would be restored
    await deck.client.post(f"/v1/replica/{id}/wake")
    assert "missing" in (await deck.reach(id, "error"))["error"]
    archive.write_bytes(whole)
    await deck.client.post(f"/v1/replica/{id}/wake")
    await deck.reach(id, "active")
    assert await deck.run(id, "cat note") == "kept\n"
    assert not archive.exists()
