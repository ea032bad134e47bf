"""A full disk: what cannot be kept is refused, what was accepted is kept, and then it goes on."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.support.git import make_repository
from tests.support.installation import Follower, Installation, block, of_engine, refused, remove
from tests.support.waiting import until

pytestmark = pytest.mark.long

SIZE = "48m"


class Disk:
    """The small disk that the home lies on."""

    def __init__(self, directory: Path) -> None:
        self._filler = directory / "filler"
        self._reserve = directory / "service" / "reserve"

    def fill_for_good(self) -> None:
        """Takes also the room that a running service gives up when it finds the disk full."""
        self.fill()
        until(lambda: not self._reserve.exists(), "the release of the reserve")
        self.fill()

    def fill(self) -> None:
        """Takes all the room there is, to the last byte."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError as e:
                    assert e.errno == errno.ENOSPC

    def free(self) -> None:
        self._filler.unlink()


@pytest.fixture
def own(require_tool: Callable[[str], str]) -> Iterator[Installation]:
    """An installation on a disk of its own."""
    require_tool("bwrap")
    require_tool("mount")
    base = Path(mkdtemp(prefix="qd-system-"))
    base.chmod(0o755)
    home = base / "home"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "quarterdeck", str(home)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        remove(base)
        pytest.skip("only root may mount a small disk")
    made = Installation(base)
    try:
        made.start()
        yield made
        ids = [replica["id"] for replica in made.get("/v1/replica?limit=100")["replicas"]]
        made.delete_all()
        made.check_gone(*ids)
        made.stop()
        made.check_ended()
        made.check_log()
    finally:
        made.stop()
        made.kill_all()
        subprocess.run(["umount", str(home)], check=True)
        remove(base)


@pytest.fixture
def disk(own: Installation) -> Disk:
    return Disk(own.home.root)


@pytest.fixture
def stocked(own: Installation) -> str:
    return own.environment_with(own.connect(str(make_repository(own.base / "shop"))))


def send(own: Installation, id: str, text: str) -> str | None:
    """The id of a message that was accepted; None for one that was refused as it should be."""
    answer = own.ask("POST", f"/v1/replica/{id}/messages", {"message": text})
    if answer.status_code == 200:
        return answer.json()["message_id"]
    refused(answer, 500, "INTERNAL_ERROR", "is full", "")
    return None


def test_messages_while_the_disk_is_full(own: Installation, disk: Disk, stocked: str) -> None:
    id = own.create(stocked)
    assert own.turn(id, block("echo before"))["stopReason"] == "end_turn"
    disk.fill()
    tries = {text: send(own, id, text) for text in (block(f"echo {n}") for n in range(30))}
    assert None in tries.values()
    # What needs no room still works.
    assert own.replica(id)["status"] == "active"
    assert own.run(id, "echo still")["output"] == "still\n"
    chat = own.chat(id)
    renamed = own.ask("PATCH", f"/v1/replica/{id}/chats/{chat}", {"display_name": "x"})
    if renamed.status_code != 200:
        refused(renamed, 500, "INTERNAL_ERROR", "disk", "")
    disk.free()
    after = own.turn(id, block("echo after"))
    assert after["stopReason"] == "end_turn"
    accepted = [text for text, message in tries.items() if message is not None]
    assert own.said(id) == [block("echo before"), *accepted, block("echo after")]
    assert all(len(ends) == 1 for ends in own.results(id).values())


def test_a_turn_that_streams_into_a_full_disk(own: Installation, disk: Disk, stocked: str) -> None:
    id = own.create(stocked)
    follower = Follower(own, id)
    script = (
        "for i in $(seq 100000); do echo line $i; test -e /tmp/enough && exit 0; sleep 0.02; done"
    )
    sent = own.send(id, block(script))
    until(lambda: follower.printed("line 3"), "streamed output")
    disk.fill()
    until(
        lambda: "cannot be written" in own.run(id, "cat /run/replica/engine.log")["output"],
        "the engine's complaint",
    )
    disk.free()
    own.run(id, "touch /tmp/enough")  # not before: the agent keeps its session at a turn's end
    result = own.result(id, sent["message_id"])
    assert result["stopReason"] == "end_turn", result
    newest = own.replica(id)["log_index"]
    until(lambda: follower.indices[-1] >= newest, "the newest event")
    follower.end()
    assert follower.indices == list(range(1, newest + 1))
    written = [(e["type"], e["payload"]) for e in own.journal(id)]
    relayed = [
        (event["type"], event["payload"]) for _, event in follower.events if of_engine(event)
    ]
    assert relayed == written[: len(relayed)]


def test_everything_killed_while_the_disk_is_full(
    own: Installation, disk: Disk, stocked: str
) -> None:
    id = own.create(stocked)
    assert own.turn(id, block("echo before"))["stopReason"] == "end_turn"
    disk.fill()
    tries = {text: send(own, id, text) for text in (block(f"echo {n}") for n in range(10))}
    own.kill()
    os.kill(own.engine(id), 9)
    disk.free()
    own.start()
    assert own.turn(id, block("echo after"))["stopReason"] == "end_turn"
    accepted = [text for text, message in tries.items() if message is not None]
    assert own.said(id) == [block("echo before"), *accepted, block("echo after")]


def test_a_start_on_a_full_disk(own: Installation, disk: Disk, stocked: str) -> None:
    id = own.create(stocked)
    waits = "touch /tmp/begun; while ! test -e /tmp/enough; do sleep 0.02; done"
    first = own.send(id, block(waits))
    # An agent that is only starting could not make its session on a full disk.
    until(lambda: "begun" in own.run(id, "ls /tmp")["output"], "the command")
    engine = own.engine(id)
    own.kill()
    disk.fill()
    own.start()
    run = {"command": "true"}
    until(lambda: own.ask("POST", f"/v1/replica/{id}/exec", run).is_success, "the engine")
    assert own.engine(id) == engine
    disk.free()
    own.run(id, "touch /tmp/enough")  # not before: the agent keeps its session at a turn's end
    assert own.result(id, first["message_id"])["stopReason"] == "end_turn"
    assert own.turn(id, block("echo after"))["stopReason"] == "end_turn"
    assert own.replica(id)["status"] == "active"
    assert own.engine(id) == engine


def test_a_start_on_a_full_disk_after_a_stop(own: Installation, disk: Disk, stocked: str) -> None:
    """A service that has stopped leaves no log of its database, and needs room to make one."""
    kept, deleted = own.create(stocked), own.create(stocked)
    own.stop()
    disk.fill()
    own.start()
    assert own.replica(kept)["status"] == "active"
    assert own.ask("DELETE", f"/v1/replica/{deleted}").is_success
    until(lambda: own.ask("GET", f"/v1/replica/{deleted}").status_code == 404, "the deletion")
    disk.free()
    assert own.turn(kept, block("echo after"))["stopReason"] == "end_turn"


def test_what_is_made_on_a_full_disk(own: Installation, disk: Disk, stocked: str) -> None:
    kept = own.create(stocked)
    disk.fill_for_good()
    other = make_repository(own.base / "other")
    connected = own.ask("POST", "/v1/replica/repositories", {"url": str(other)})
    refused(connected, 500, "INTERNAL_ERROR", "The disk is full. Make room, and try again.")
    body = {"name": "crowded", "environment_id": stocked}
    made = own.ask("POST", "/v1/replica", body)
    if made.status_code == 201:
        id = made.json()["replica"]["id"]
    else:
        refused(made, 500, "INTERNAL_ERROR", "is full")
        id = None
    disk.free()
    if id is not None:
        state = until(
            lambda: (r := own.replica(id))["status"] != "preparing" and r, "the end of preparing"
        )
        if state["status"] == "error":
            assert "The disk is full" in state["error"]
            own.post(f"/v1/workspaces/{id}/wake", status=202)
        own.reach(id, "active")
    else:
        id = own.create(stocked)
    assert own.turn(id, block("cat README"))["stopReason"] == "end_turn"
    assert own.turn(kept, block("echo kept"))["stopReason"] == "end_turn"


def test_a_workspace_deleted_on_a_full_disk_makes_room(
    own: Installation, disk: Disk, stocked: str
) -> None:
    hungry, other = own.create(stocked), own.create(stocked)
    own.run(hungry, "head -c 8000000 /dev/zero > /workspace/big")
    disk.fill()
    answer = own.ask("DELETE", f"/v1/replica/{hungry}")
    if answer.status_code != 200:
        refused(answer, 500, "INTERNAL_ERROR", "full")
        assert own.replica(hungry)["status"] == "active"
    else:
        own.check_gone(hungry)
        assert own.turn(other, block("echo room"))["stopReason"] == "end_turn"
    disk.free()
    assert own.turn(other, block("echo after"))["stopReason"] == "end_turn"


def test_a_replica_goes_on_after_its_archiving_was_refused(
    own: Installation, disk: Disk, stocked: str
) -> None:
    id = own.create(stocked)
    assert own.turn(id, block("echo before"))["stopReason"] == "end_turn"
    disk.fill_for_good()
    answer = own.ask("POST", f"/v1/replica/{id}/archive")
    refused(answer, 500, "INTERNAL_ERROR", "is full")
    until(lambda: f"{id} failed: The disk is almost full" in own.log.read_text(), "the failure")
    disk.free()
    # The failure is stored if there was room for so little; else the engine starts now.
    until(lambda: own.replica(id)["status"] == "error" or own.processes(id), "the outcome")
    if own.replica(id)["status"] == "error":
        own.post(f"/v1/replica/{id}/wake", status=202)
        own.reach(id, "active")
    assert own.turn(id, block("echo after"))["stopReason"] == "end_turn"
    assert own.replica(id)["status"] == "active"
