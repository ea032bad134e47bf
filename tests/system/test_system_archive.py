"""Archiving for real: engines, git and archives; and whatever is killed, the files come back."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.git import make_repository
from tests.support.installation import Installation, block, snapshot
from tests.support.waiting import WAIT_SECONDS, until
from tests.system.conftest import installed

WORK = """cd shop 2>/dev/null; echo more >> README; git commit -qam mine
ln -s README link; mkdir -p ../deep/er; printf '\\0\\1' > ../deep/er/bytes; chmod 600 ../deep/er/bytes
head -c {size} /dev/urandom > ../big"""
LOOK = (
    "cd shop 2>/dev/null; git log --format=%s; git status --short; git fsck 2>&1 | grep -c missing"
)
ANYHOW = f"{{ {LOOK}; }} || true"
"""The same as a block, which a command that finds nothing must not end as failed."""
SAYS = "mine\nCommit 1\nCommit 0\n?? link\n0\n"


@pytest.fixture(scope="module")
def _hardy() -> Iterator[Installation]:
    with installed() as made:
        made.start()
        yield made


@pytest.fixture
def deck(_hardy: Installation, require_tool: Callable[[str], str]) -> Installation:
    """The installation whose service these tests kill and start again."""
    require_tool("bwrap")
    require_tool("git")
    _hardy.revive()
    return _hardy


@pytest.fixture(scope="module")
def _stock(_hardy: Installation) -> str:
    repository = make_repository(_hardy.base / "shop")
    return _hardy.environment_with(_hardy.connect(str(repository)))


@pytest.fixture
def stocked(_stock: str, deck: Installation) -> str:
    return _stock


def filled(deck: Installation, environment: str, size: int = 1000) -> str:
    """A replica with work in it."""
    id = deck.create(environment)
    done = deck.run(id, WORK.format(size=size))
    assert done["exit_code"] == 0, done
    return id


def files(deck: Installation, id: str) -> dict[str, Any]:
    return snapshot(deck.place(id) / "files")


def archive(deck: Installation, id: str) -> Path:
    return deck.home.archives / f"{id}.tar.gz"


def put_away(deck: Installation, id: str) -> None:
    assert deck.post(f"/v1/workspaces/{id}/archive") == {"success": True}
    assert deck.replica(id)["status"] == "archived"


def wake(deck: Installation, id: str) -> None:
    deck.post(f"/v1/workspaces/{id}/wake", status=202)
    deck.reach(id, "active")


def test_a_message_brings_everything_back(deck: Installation, stocked: str) -> None:
    id = filled(deck, stocked)
    deck.turn(id, block("echo one"))
    deck.post(f"/v1/workspaces/{id}/sleep")
    before = files(deck, id)
    put_away(deck, id)
    assert not deck.place(id).exists()
    assert deck.processes(id) == []
    assert archive(deck, id).stat().st_mode & 0o777 == 0o600
    assert deck.said(id) == [block("echo one")]
    assert deck.get(f"/v1/workspaces/{id}/status")["status"] == "archived"
    listed = deck.get("/v1/replica?status=archived")["replicas"]
    assert id in [one["id"] for one in listed]

    sent = deck.send(id, block(ANYHOW))
    assert sent["status"] == "waking"
    assert deck.result(id, sent["message_id"])["stopReason"] == "end_turn"
    after = files(deck, id)
    assert before.keys() <= after.keys()
    for name, was in before.items():
        # git refreshes its index when it is asked for the state
        if ".git" not in name:
            assert after[name] == was, name
    assert deck.run(id, LOOK)["output"] == SAYS
    assert not archive(deck, id).exists()


# Every step of packing and unpacking is killed in tests/sandboxes/test_sandboxes_archives.py.
@pytest.mark.long
@pytest.mark.parametrize("moment", [0.0, 0.3])
def test_killed_in_the_midst_of_archiving(deck: Installation, stocked: str, moment: float) -> None:
    id = filled(deck, stocked, 20_000_000)
    deck.post(f"/v1/workspaces/{id}/sleep")
    before = files(deck, id)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(deck.ask, "POST", f"/v1/workspaces/{id}/archive")
        wait(moment)
        deck.kill()
        answered = asked.exception() is None and asked.result().status_code == 200
    assert deck.place(id).exists() or archive(deck, id).exists()
    deck.start()
    state = deck.replica(id)["status"]
    assert state in (("archived",) if answered else ("sleeping", "archived"))
    if state == "sleeping":
        put_away(deck, id)
    wake(deck, id)
    assert {n: f for n, f in files(deck, id).items() if ".git" not in n} == {
        n: f for n, f in before.items() if ".git" not in n
    }
    assert deck.run(id, LOOK)["output"] == SAYS
    until(lambda: not list(deck.home.archives.glob(f"{id}*")), "the end of leftovers")


@pytest.mark.long
def test_killed_in_the_midst_of_restoring(deck: Installation, stocked: str) -> None:
    id = filled(deck, stocked, 20_000_000)
    deck.post(f"/v1/workspaces/{id}/sleep")
    before = files(deck, id)
    put_away(deck, id)
    sent = deck.send(id, block("echo back"))
    wait(0.15)
    deck.kill()
    assert deck.place(id).exists() or archive(deck, id).exists()
    deck.start()
    assert deck.result(id, sent["message_id"])["stopReason"] == "end_turn"
    after = files(deck, id)
    assert {name for name in before if ".git" not in name} <= after.keys()
    assert after["big"] == before["big"]
    assert deck.run(id, LOOK)["output"] == SAYS
    assert not archive(deck, id).exists()


@pytest.mark.long
def test_killed_while_an_archived_one_is_deleted(deck: Installation, stocked: str) -> None:
    id = filled(deck, stocked)
    put_away(deck, id)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(deck.ask, "DELETE", f"/v1/replica/{id}")
        wait(0.02)
        deck.kill()
        assert asked.exception() is None or isinstance(asked.exception(), httpx.HTTPError)
    deck.start()
    if deck.ask("GET", f"/v1/replica/{id}").status_code == 200:
        wake(deck, id)
        assert deck.run(id, LOOK)["output"] == SAYS
    else:
        until(lambda: not archive(deck, id).exists(), "the end of the archive")
        deck.check_gone(id)


@pytest.mark.long
def test_a_damaged_archive_is_told_and_can_be_mended(deck: Installation, stocked: str) -> None:
    id = filled(deck, stocked, 100_000)
    put_away(deck, id)
    whole = archive(deck, id).read_bytes()
    archive(deck, id).write_bytes(whole[: len(whole) // 2])
    sent = deck.send(id, block(ANYHOW))
    failed = deck.reach(id, "error")
    assert "archive with the replica's files is damaged" in failed["error"]
    assert deck.get(f"/v1/workspaces/{id}/status")["error"] == failed["error"]
    archive(deck, id).write_bytes(whole)
    deck.post(f"/v1/workspaces/{id}/wake", status=202)
    assert deck.result(id, sent["message_id"])["stopReason"] == "end_turn"
    assert deck.run(id, LOOK)["output"] == SAYS


@pytest.mark.long
def test_a_missing_archive_is_told(deck: Installation, stocked: str) -> None:
    id = filled(deck, stocked)
    put_away(deck, id)
    hidden = deck.base / "hidden"
    archive(deck, id).rename(hidden)
    deck.post(f"/v1/workspaces/{id}/wake", status=202)
    failed = deck.reach(id, "error")
    assert "is missing" in failed["error"]
    assert str(archive(deck, id)) in failed["error"]
    assert not deck.place(id).exists()
    hidden.rename(archive(deck, id))
    wake(deck, id)
    assert deck.run(id, LOOK)["output"] == SAYS


class Receiver(ThreadingHTTPServer):
    """Keeps what it is sent; the first `hanging` calls get no answer."""

    daemon_threads = True

    def __init__(self, hanging: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.hanging = hanging
        self.ended = threading.Event()
        self.told: list[dict[str, Any]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self.server_address[1]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.told.append(json.loads(body))
        if len(self.server.told) <= self.server.hanging:
            self.server.ended.wait(WAIT_SECONDS)
            return
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.long
def test_a_webhook_call_outlives_the_service(deck: Installation) -> None:
    receiver = Receiver(hanging=1)
    id = deck.create(webhook_url=f"http://127.0.0.1:{receiver.port}/")
    until(lambda: receiver.told, "the first try")
    deck.kill()
    receiver.ended.set()
    deck.start()
    until(lambda: len(receiver.told) >= 2, "the call by the next service")
    first, again = receiver.told[:2]
    assert first == again
    assert first["type"] == "replica.ready"
    deck.delete(id)
    until(lambda: receiver.told[-1]["type"] == "replica.deleted", "the last call")
    receiver.shutdown()
    receiver.server_close()


@pytest.mark.long
def test_archiving_from_the_command_line(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    name = deck.replica(id)["name"]
    done = deck.qd("replica", "archive", name, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"success": True, "replicas": [id]}
    listed = deck.qd("replica", "ls", "--status", "archived", "--json")
    assert id in [one["id"] for one in json.loads(listed.stdout)["replicas"]]
    secret = deck.qd("auth", "webhook-secret")
    assert secret.stdout.startswith("whsec_"), secret.stderr


@pytest.mark.long
@pytest.mark.timeout(300)  # ten programs, one after the other
def test_notifications_from_the_command_line(deck: Installation) -> None:
    receiver = Receiver()
    target = f"json://127.0.0.1:{receiver.port}/hush"
    assert "No notification target" in deck.qd("notify", "show").stderr
    assert deck.qd("notify", "test").returncode == 1
    refused = deck.qd("notify", "set", "nonsense")
    assert (refused.returncode, "Not a notification URL" in refused.stderr) == (1, True)
    assert deck.qd("notify", "set", stdin=f"{target}\n").returncode == 0
    shown = deck.qd("notify", "show", "--json")
    assert json.loads(shown.stdout)["service"] == "json"
    assert "hush" not in shown.stdout
    tried = deck.qd("notify", "test")
    assert tried.returncode == 0, tried.stderr
    assert receiver.told[-1]["message"] == "Notifications arrive here."
    id = deck.create()
    name = deck.replica(id)["name"]
    deck.turn(id, block("echo told"))
    until(lambda: receiver.told[-1].get("title") == f"{name}: done", "the notification")
    assert deck.qd("notify", "rm", "--json").returncode == 0
    assert json.loads(deck.qd("notify", "show", "--json").stdout)["connected"] is False
    receiver.shutdown()
    receiver.server_close()
    assert "hush" not in deck.log.read_text()


def wait(seconds: float) -> None:
    """Where in its work the service dies is the point of the tests that wait."""
    threading.Event().wait(seconds)
