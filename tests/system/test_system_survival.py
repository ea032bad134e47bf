"""Whatever is killed, nothing that was accepted is lost, and nothing happens twice."""

import base64
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support.git import make_repository
from tests.support.installation import (
    Follower,
    Installation,
    block,
    command_of,
    of_engine,
    refused,
    runs,
)
from tests.support.waiting import WAIT_SECONDS, until
from tests.system.conftest import installed
from tests.system.sources import Source, serve_source

RESTARTED = "The engine was restarted in the middle of this turn."


@pytest.fixture(scope="module")
def _hardy() -> Iterator[Installation]:
    with installed() as made:
        made.start()
        yield made


@pytest.fixture
def deck(_hardy: Installation, require_tool: Callable[[str], str]) -> Installation:
    """The installation whose service the tests of this module kill and start again."""
    require_tool("bwrap")
    _hardy.revive()
    return _hardy


@pytest.fixture(scope="module")
def _stock(_hardy: Installation) -> str:
    repository = make_repository(_hardy.base / "shop")
    return _hardy.environment_with(_hardy.connect(str(repository)))


@pytest.fixture
def stocked(_stock: str, deck: Installation) -> str:
    return _stock


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    with serve_source(tmp_path) as made:
        yield made


def restart(deck: Installation) -> None:
    deck.kill()
    deck.start()


def at_once(*calls: Callable[[], httpx.Response]) -> list[httpx.Response]:
    """The answers of requests that were sent at the same time."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], httpx.Response]) -> httpx.Response:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def check_complete(deck: Installation, id: str, follower: Follower) -> None:
    """The stream brought everything once, in order, and all that the engine wrote down."""
    newest = deck.replica(id)["log_index"]
    until(lambda: follower.indices and follower.indices[-1] >= newest, "the newest event")
    follower.end()
    assert follower.indices == list(range(1, len(follower.events) + 1))
    ids = [event["id"] for _, event in follower.events]
    assert len(set(ids)) == len(ids)
    relayed = [
        (event["ts"], event["type"], event["payload"])
        for _, event in follower.events
        if of_engine(event)
    ]
    written = [(e["ts"], e["type"], e["payload"]) for e in deck.journal(id)]
    assert relayed == written[: len(relayed)]
    assert len(relayed) >= len([e for e in written if e[1] == "chat.turn.completed"]) > 0


# The service is killed


@pytest.mark.long
def test_killed_while_a_replica_is_prepared(deck: Installation, source: Source) -> None:
    environment = deck.environment_with(deck.connect(source.url))
    source.hold()
    id = deck.create(environment, wait=False, message=block("cat README"))
    follower = Follower(deck, id)
    source.wait_asked()
    later = deck.send(id, block("echo later"))
    assert later["status"] == "waking"
    restart(deck)
    assert deck.replica(id)["status"] == "preparing"
    queue = deck.get(f"/v1/replica/{id}/chats/{later['chat_id']}/queue")["queue"]
    assert [one["message"] for one in queue] == [block("cat README"), block("echo later")]
    source.release()
    deck.reach(id, "active")
    assert deck.result(id, later["message_id"])["stopReason"] == "end_turn"
    assert deck.said(id) == [block("cat README"), block("echo later")]
    assert all(len(ends) == 1 for ends in deck.results(id).values())
    check_complete(deck, id, follower)
    deck.delete(id)
    deck.check_gone(id)


def test_killed_in_a_streaming_turn_with_messages_in_the_queue(
    deck: Installation, stocked: str
) -> None:
    id = deck.create(stocked)
    follower = Follower(deck, id)
    engine = deck.engine(id)
    script = "i=0; until [ -e /tmp/enough ]; do i=$((i+1)); echo line $i; sleep 0.02; done"
    first = deck.send(id, block(script))
    until(lambda: follower.printed("line 3"), "streamed output")
    queued = [deck.send(id, block(f"echo {word} >> /tmp/said")) for word in ("one", "two")]
    assert [one["position"] for one in queued] == [1, 2]
    for _ in range(2):
        restart(deck)
        assert deck.replica(id)["status"] == "active"
    assert deck.engine(id) == engine
    deck.run(id, "touch /tmp/enough")
    for sent in (first, *queued):
        assert deck.result(id, sent["message_id"])["stopReason"] == "end_turn"
    assert deck.run(id, "cat /tmp/said")["output"] == "one\ntwo\n"
    assert follower.connections >= 2
    check_complete(deck, id, follower)
    deck.delete(id)


@pytest.mark.long
def test_a_terminal_that_prints_meanwhile(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    base = f"/v1/workspaces/{id}/terminal/sessions"
    path = f"{base}/{deck.post(base, {'cols': 80, 'rows': 24}, 201)['session']['id']}"
    script = (
        "stty -echo; for i in $(seq 300); do printf 'line-%s-%01000d\\n' $i 0;"
        " until [ -e /tmp/enough ]; do sleep 0.01; [ $i -ge 100 ] || break; done; done; exit 7\n"
    )
    typed = {"data": script, "generation": 1, "sequence": 0}
    deck.post(f"{path}/input", typed)

    got, offset = read_terminal(deck, path, None, until_seen=b"line-20-")
    deck.kill()
    deck.start()
    # Typed again by a client that never heard the answer: it must not run twice.
    assert deck.post(f"{path}/input", typed) == {"success": True}
    more, offset = read_terminal(deck, path, offset, until_seen=b"line-60-")
    got += more
    restart(deck)
    deck.run(id, "touch /tmp/enough")
    more, offset = read_terminal(deck, path, offset, until_seen=None)
    got += more
    whole, end = read_terminal(deck, path, None, until_seen=None)
    assert end == offset == len(got)
    assert whole == got
    assert [got.count(b"line-%d-" % n) for n in (1, 20, 60, 300)] == [1, 1, 1, 1]
    (session,) = deck.get(base)["sessions"]
    assert (session["exited"], session["exitCode"]) == (True, 7)
    deck.delete(id)


def read_terminal(
    deck: Installation, path: str, offset: int | None, until_seen: bytes | None
) -> tuple[bytes, int]:
    """Bytes from an offset on, until some were seen or the shell has ended; and the new offset."""
    headers = {"Authorization": f"Bearer {deck.key}"}
    if offset is not None:
        headers["Last-Event-ID"] = str(offset)
    got, place = b"", offset or 0
    with deck.client(**headers) as client, client.stream("GET", f"{path}/stream") as response:
        assert response.status_code == 200
        for line in response.iter_lines():
            if line.startswith("id:"):
                place = int(line[3:])
            if not line.startswith("data:"):
                continue
            event = json.loads(line[5:])
            assert event["type"] in ("replay", "output", "resize", "exit"), event
            assert (event["type"] == "replay") <= (offset is None)
            if event["type"] == "exit":
                break
            got += base64.b64decode(event.get("data", ""))
            if until_seen is not None and until_seen in got:
                break
    assert until_seen is None or until_seen in got
    return got, place


@pytest.mark.long
def test_killed_again_and_again_while_messages_are_sent(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    accepted: list[str] = []
    for number in range(12):
        if number % 4 == 2:
            threading.Timer(0, deck.kill).start()
        try:
            answer = deck.ask(
                "POST",
                f"/v1/replica/{id}/messages",
                {"message": block(f"echo {number} >> /tmp/said")},
            )
            accepted.append(str(number))
            assert answer.status_code == 200, answer.text
        except (httpx.HTTPError, OSError):
            pass
        if number % 4 == 2:
            until(lambda: deck.process is None, "the end of the service")
            deck.start()
    last = deck.send(id, block("echo last >> /tmp/said"))
    deck.result(id, last["message_id"])
    said = deck.run(id, "cat /tmp/said")["output"].split()
    assert said[-1] == "last"
    assert len(set(said)) == len(said)
    assert set(accepted) <= set(said)
    assert [word for word in said if word in accepted] == accepted
    deck.delete(id)


@pytest.mark.long
def test_killed_while_a_replica_is_deleted(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    deck.run(id, "mkdir many && cd many && seq 20000 | xargs touch")
    answers: list[int] = []

    def delete() -> None:
        try:
            answers.append(deck.ask("DELETE", f"/v1/replica/{id}").status_code)
        except (httpx.HTTPError, OSError):
            answers.append(0)

    deleting = threading.Thread(target=delete)
    deleting.start()
    until(lambda: not deck.place(id).exists() or answers, "the removal")
    restart(deck)
    deleting.join(WAIT_SECONDS)
    refused(deck.ask("GET", f"/v1/replica/{id}"), 404, "NOT_FOUND", "No replica has this id.")
    until(lambda: not list(deck.home.workspaces.glob(f"*{id}*")), "the removal of the files")
    deck.check_gone(id)


# An engine is killed


@pytest.mark.long
def test_an_engine_killed_in_a_turn(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    follower = Follower(deck, id)
    first = deck.send(id, block("echo begun; sleep 1000"))
    queued = [deck.send(id, block(f"echo {word} >> README")) for word in ("one", "two")]
    until(lambda: follower.printed("begun"), "the turn")
    engine = deck.engine(id)
    os.kill(engine, signal.SIGKILL)
    result = deck.result(id, first["message_id"])
    assert (result["stopReason"], result["error"]) == ("failed", RESTARTED)
    for sent in queued:
        assert deck.result(id, sent["message_id"])["stopReason"] == "end_turn"
    assert deck.run(id, "cat shop/README")["output"].endswith("one\ntwo\n")
    assert deck.engine(id) != engine
    assert deck.replica(id)["status"] == "active"
    assert not any("sleep 1000" in command_of(pid) for pid in deck.processes(id))
    ends = [e for _, e in follower.events if e["type"] == "chat.turn.completed"]
    assert [end["payload"]["isComplete"] for end in ends] == [False, True, True]
    check_complete(deck, id, follower)
    deck.delete(id)


@pytest.mark.long
def test_engine_and_service_killed_together(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    follower = Follower(deck, id)
    first = deck.send(id, block("echo begun; sleep 1000"))
    second = deck.send(id, block("echo again"))
    until(lambda: follower.printed("begun"), "the turn")
    engine = deck.engine(id)
    deck.kill()
    os.kill(engine, signal.SIGKILL)
    until(lambda: not runs(engine), "the engine's end")
    deck.start()
    assert deck.result(id, first["message_id"])["error"] == RESTARTED
    assert deck.result(id, second["message_id"])["stopReason"] == "end_turn"
    assert deck.said(id) == [block("echo begun; sleep 1000"), block("echo again")]
    check_complete(deck, id, follower)
    deck.delete(id)


@pytest.mark.long
def test_an_engine_that_cannot_live_is_given_up_and_woken(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    journal = deck.place(id) / "state" / "journal.jsonl"
    with journal.open("rb") as written:
        journal.unlink()
        journal.mkdir()
        os.kill(deck.engine(id), signal.SIGKILL)
        failed = deck.reach(id, "error")
        kept = written.read()  # only now: a running engine writes on into the removed file
    assert "engine ended" in failed["error"]
    refused(
        deck.ask("POST", f"/v1/replica/{id}/messages", {"message": "x"}),
        409,
        "WORKSPACE_ERROR_STATE",
        "Wake it to try again",
    )
    journal.rmdir()
    journal.write_bytes(kept)
    os.chown(journal, journal.parent.stat().st_uid, journal.parent.stat().st_gid)
    deck.post(f"/v1/workspaces/{id}/wake", status=202)
    deck.reach(id, "active")
    assert deck.turn(id, block("echo back"))["stopReason"] == "end_turn"
    deck.delete(id)


# Sleeping and waking


@pytest.mark.long
def test_sleep_and_wake_with_a_queue(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    follower = Follower(deck, id)
    first = deck.send(id, block("echo begun; sleep 1000"))
    second = deck.send(id, block("echo second >> README"))
    until(lambda: follower.printed("begun"), "the turn")
    assert deck.post(f"/v1/workspaces/{id}/sleep") == {"success": True}
    assert deck.replica(id)["status"] == "sleeping"
    assert deck.processes(id) == []
    end = deck.result(id, first["message_id"])
    assert (end["stopReason"], end["error"], end["stopped"]) == ("cancelled", None, True)
    queue = deck.get(f"/v1/replica/{id}/chats/{second['chat_id']}/queue")
    assert [one["id"] for one in queue["queue"]] == [second["message_id"]]
    assert queue["processing"] is False
    restart(deck)
    assert deck.replica(id)["status"] == "sleeping"
    third = deck.send(id, block("echo third >> README"))
    assert third["status"] == "waking"
    for sent in (second, third):
        assert deck.result(id, sent["message_id"])["stopReason"] == "end_turn"
    assert deck.run(id, "cat shop/README")["output"].endswith("second\nthird\n")
    check_complete(deck, id, follower)
    deck.delete(id)


@pytest.mark.long
def test_everything_twice_at_once(deck: Installation, stocked: str, tmp_path: Path) -> None:
    body = {"name": "twice", "environment_id": stocked}
    made = at_once(*[lambda: deck.ask("POST", "/v1/replica", body)] * 3)
    (one,) = [answer for answer in made if answer.status_code == 201]
    for answer in made:
        if answer is not one:
            refused(answer, 409, "CONFLICT", "has this name already")
    id = one.json()["replica"]["id"]
    deck.reach(id, "active")

    def post(path: str) -> Callable[[], httpx.Response]:
        return lambda: deck.ask("POST", f"/v1/workspaces/{id}/{path}")

    assert [one.status_code for one in at_once(*[post("sleep")] * 3)] == [200] * 3
    assert [one.status_code for one in at_once(*[post("wake")] * 3)] == [202] * 3
    deck.reach(id, "active")
    assert len([p for p in deck.processes(id) if "quarterdeck.engine" in command_of(p)]) > 0
    assert [one.status_code for one in at_once(post("sleep"), post("wake"))] == [200, 202]
    # Whichever came last, it can be woken, and works.
    deck.post(f"/v1/workspaces/{id}/wake", status=202)
    deck.reach(id, "active")

    other = make_repository(tmp_path / "other")
    connect = {"url": str(other)}
    answers = at_once(*[lambda: deck.ask("POST", "/v1/replica/repositories", connect)] * 3)
    assert len({answer.json()["repository"]["id"] for answer in answers}) == 1

    chat = deck.chat(id)
    message = {"message": block("echo x >> /tmp/count"), "chat_id": chat}
    sent = at_once(*[lambda: deck.ask("POST", f"/v1/replica/{id}/messages", message)] * 3)
    for answer in sent:
        deck.result(id, answer.json()["message_id"])
    assert deck.run(id, "cat /tmp/count")["output"] == "x\n" * 3

    delete = lambda: deck.ask("DELETE", f"/v1/replica/{id}")  # noqa: E731
    gone = at_once(delete, delete, delete)
    assert sorted(answer.status_code for answer in gone) == [200, 404, 404]
    deck.check_gone(id)


@pytest.mark.long
def test_stop_leaves_the_engines(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    follower = Follower(deck, id)
    sent = deck.send(id, block("echo begun; while ! test -e /tmp/enough; do sleep 0.02; done"))
    until(lambda: follower.printed("begun"), "the turn")
    engine, born = deck.engine(id), set(deck.processes(id))
    done = deck.qd("stop", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stopped"] is True
    until(lambda: deck.process is None or deck.process.poll() is not None, "the service's end")
    assert runs(engine)
    assert born - {p for p in born if not runs(p)} >= {engine, *deck.agents(id)}
    assert not deck.home.socket.exists()
    deck.stop()
    deck.start()
    assert deck.engine(id) == engine
    deck.run(id, "touch /tmp/enough")
    assert deck.result(id, sent["message_id"])["stopReason"] == "end_turn"
    check_complete(deck, id, follower)
    deck.delete(id)


@pytest.mark.long
def test_a_delete_leaves_nothing(deck: Installation, stocked: str, source: Source) -> None:
    id = deck.create(stocked)
    deck.send(id, block("setsid sleep 900 & sleep 901"))
    base = f"/v1/workspaces/{id}/terminal/sessions"
    session = deck.post(base, {"cols": 80, "rows": 24}, 201)["session"]["id"]
    keys = {"data": "setsid nohup sleep 902 &\n", "generation": 0, "sequence": 0}
    deck.post(f"{base}/{session}/input", keys)
    deck.run(id, "setsid sleep 903 > /dev/null 2>&1 & chmod 0 /workspace/shop/.git; true")

    def sleepers() -> set[str]:
        commands = [command_of(pid) for pid in deck.processes(id)]
        return {word for command in commands for word in command.split() if word.startswith("90")}

    until(lambda: sleepers() >= {"900", "901", "902", "903"}, "all processes")
    streaming = Follower(deck, id)
    until(lambda: streaming.events, "the stream")
    deck.delete(id)
    streaming.end()
    deck.check_gone(id)
    refused(deck.ask("GET", f"/v1/replica/{id}/history"), 404, "NOT_FOUND", "No replica")

    environment = deck.environment_with(deck.connect(source.url))
    source.hold()
    id = deck.create(environment, wait=False)
    source.wait_asked()
    deck.delete(id)
    source.release()
    deck.check_gone(id)
