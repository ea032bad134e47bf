"""Several services over one database: each replica is one's, and can be driven through every one."""

import base64
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from quarterdeck.service.vault import Vault
from tests.support.installation import Follower, block, refused, runs
from tests.support.postgresql import Server
from tests.support.waiting import WAIT_SECONDS, until
from tests.system.several import Pair, Screen, paired

AWAY = (502, "ENGINE_UNREACHABLE", "The service that has this replica cannot be reached")
AT_ONCE = 16
RENAMES = 100


@pytest.fixture(scope="module")
def _pair(postgresql: Server, require_tool: Callable[[str], str]) -> Iterator[Pair]:
    require_tool("bwrap")
    require_tool("git")
    with paired(postgresql) as made:
        yield made


@pytest.fixture
def pair(_pair: Pair) -> Pair:
    _pair.revive()
    return _pair


@pytest.fixture(scope="module")
def _replica(_pair: Pair) -> str:
    return _pair.one.create()


@pytest.fixture
def replica(_replica: str, pair: Pair) -> str:
    """A replica of the first service, active."""
    pair.one.reach(_replica, "active")
    return _replica


def test_a_conversation_through_the_other(pair: Pair, replica: str) -> None:
    follower = Follower(pair.other, replica)
    sent = pair.other.send(replica, block("echo over there"))
    assert pair.other.result(replica, sent["message_id"])["stopReason"] == "end_turn"
    until(lambda: follower.has("chat.turn.completed"), "the end of the turn")
    assert follower.printed("over there")
    assert pair.one.said(replica) == pair.other.said(replica)
    pair.one.turn(replica, block("echo here"))
    until(lambda: follower.printed("here"), "an event that the owner was asked for")
    follower.end()
    # A read time-out of the follower's own has made it resume more than once.
    assert follower.indices == list(range(1, follower.indices[-1] + 1))
    assert (pair.one.place(replica).exists(), pair.other.place(replica).exists()) == (True, False)


@pytest.mark.long
def test_a_resumed_stream_has_what_was_missed_and_no_more(pair: Pair, replica: str) -> None:
    pair.other.turn(replica, block("echo once"))
    last = pair.other.replica(replica)["log_index"]
    after = max(0, last - 5)
    follower = Follower(pair.other, replica, after)
    until(lambda: last in follower.indices, "the newest event")
    follower.end()
    assert follower.indices == list(range(after + 1, last + 1))


@pytest.mark.long
def test_commands_terminals_and_uploads_through_the_other(pair: Pair, replica: str) -> None:
    assert pair.other.run(replica, "echo $((6 * 7))")["output"] == "42\n"
    path = f"/v1/workspaces/{replica}/terminal/sessions"
    session = pair.other.post(path, {"cols": 80, "rows": 24}, 201)["session"]["id"]
    screen = Screen(pair.other, replica, session)
    typed = {"data": "echo $((40 + 2))ok; exit\n", "generation": 0, "sequence": 0}
    pair.other.post(f"{path}/{session}/input", typed)
    until(lambda: "42ok" in screen.text, "the answer of the shell")
    screen.end()
    with pair.other.client(Authorization=f"Bearer {pair.other.key}") as client:
        content = b"# Title\n" * 200_000  # in several pieces
        uploaded = client.post(
            f"/v1/replica/{replica}/canvas",
            files={"file": ("a.md", content)},
            data={"filename": "a.md"},
        )
        assert uploaded.status_code == 200, uploaded.text
        name = uploaded.json()["originalName"]
        told = client.get(f"/v1/replica/{replica}/canvas/{name}").json()
        assert (told["sizeBytes"], told["content"]) == (len(content), content.decode())
        # Nine bytes over what a request may have, without saying so before.
        pieces = iter([b"x" * (1 << 20)] * 8 + [b"y" * 9])
        refused(
            client.post(f"/v1/replica/{replica}/messages", content=pieces),
            413,
            "PAYLOAD_TOO_LARGE",
            "too large",
        )


@pytest.mark.long
def test_errors_of_the_owner_come_back_as_they_are(pair: Pair, replica: str) -> None:
    paths = ("/canvas/nothing.md", f"/terminal/sessions/{replica}/stream", "/no/such/route")
    for path in paths:
        there = pair.one.ask("GET", f"/v1/replica/{replica}{path}")
        through = pair.other.ask("GET", f"/v1/replica/{replica}{path}")
        assert (through.status_code, through.json()) == (there.status_code, there.json())
        assert through.status_code == 404
    assert pair.other.ask("PUT", f"/v1/replica/{replica}").status_code == 405
    wrong = pair.other.ask("POST", f"/v1/replica/{replica}/messages", {"message": 1})
    refused(wrong, 400, "INVALID_REQUEST", "not valid", "message")


@pytest.mark.long
def test_previews_are_opened_closed_and_told_through_the_other(pair: Pair, replica: str) -> None:
    read = "SELECT engine_secret_sealed FROM workspaces WHERE id = %s"
    ((sealed,),) = pair.rows(read, replica)
    vault = Vault(base64.b64decode(pair.one.home.master_key.read_bytes()))
    secret = vault.unseal(replica, sealed)
    port = pair.other.port  # something that answers
    inside = {"Authorization": f"Bearer {secret}", "X-Workspace-Id": replica}
    with pair.other.client(**inside) as client:
        opened = client.post("/v1/previews", json={"port": port})
        assert opened.status_code == 201, opened.text
    url = opened.json()["preview"]["publicUrl"]
    for service in pair.both:
        (told,) = service.get(f"/v1/workspaces/{replica}/previews")["previews"]
        assert told["publicUrl"] == url
    assert (
        httpx.get(f"{url}v1/health", trust_env=False, timeout=WAIT_SECONDS).json()["status"] == "ok"
    )
    gone = pair.other.ask("DELETE", f"/v1/workspaces/{replica}/previews/{port}")
    assert gone.json() == {"success": True, "port": port}
    assert httpx.get(url, trust_env=False, timeout=WAIT_SECONDS).status_code == 404


@pytest.mark.long
def test_a_life_from_the_other(pair: Pair) -> None:
    made = pair.one.create()
    assert pair.other.post(f"/v1/workspaces/{made}/sleep") == {"success": True}
    assert pair.one.replica(made)["status"] == "sleeping"
    assert pair.other.post(f"/v1/workspaces/{made}/wake", status=202) == {"status": "waking"}
    pair.other.reach(made, "active")
    beat = pair.other.get(f"/v1/workspaces/{made}/status")["engineHeartbeat"]
    assert beat["fresh"]
    pair.other.delete(made)
    assert pair.one.ask("GET", f"/v1/replica/{made}").status_code == 404
    pair.one.check_gone(made)


@pytest.mark.long
def test_lists_and_names_are_shared(pair: Pair, replica: str) -> None:
    mine = pair.other.create()
    for service in pair.both:
        ids = [one["id"] for one in service.get("/v1/replica?limit=100")["replicas"]]
        assert {mine, replica} <= set(ids)
    body = {"name": "wanted", "environment_id": pair.one.plain_environment}
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda one: one.ask("POST", "/v1/replica", body), pair.both))
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    made = next(one.json()["replica"]["id"] for one in answers if one.status_code == 201)
    pair.one.reach(made, "active")
    pair.one.delete(made)
    pair.one.delete(mine)
    pair.other.check_gone(mine)


@pytest.mark.long
def test_many_writes_through_both_leave_no_gap(pair: Pair, replica: str) -> None:
    ours = [replica, pair.other.create()]
    followers = [Follower(service, id) for service in pair.both for id in ours]

    def rename(number: int) -> int:
        service, id = pair.both[number % 2], ours[number // 2 % 2]
        path = f"/v1/replica/{id}/chats/{pair.one.chat(id)}"
        return service.ask("PATCH", path, {"display_name": f"n{number}"}).status_code

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert set(pool.map(rename, range(RENAMES))) == {200}
    for follower in followers:
        stored = pair.rows('SELECT "index" FROM events WHERE workspace_id = %s', follower.id)
        wanted = list(range(1, len(stored) + 1))
        assert sorted(index for (index,) in stored) == wanted
        _reached(follower, wanted)
    for follower in followers:
        follower.end()
    pair.one.delete(ours[1])


def _reached(follower: Follower, wanted: list[int]) -> None:
    until(lambda: len(follower.indices) >= len(wanted), "all events")
    assert follower.indices[: len(wanted)] == wanted


@pytest.mark.long
def test_a_key_that_one_takes_away_the_other_refuses(pair: Pair, replica: str) -> None:
    made = pair.one.post("/v1/organization/api-keys", {"name": "short"}, 201)
    with pair.other.client(Authorization=f"Bearer {made['key']}") as client:
        assert client.get(f"/v1/replica/{replica}").status_code == 200
        path = f"/v1/organization/api-keys/{made['api_key']['id']}"
        assert pair.one.ask("DELETE", path).status_code == 200
        # The owner has forgotten it already; who passes on, within five seconds.
        assert client.post(f"/v1/workspaces/{replica}/wake").status_code == 401
        until(lambda: client.get("/v1/replica").status_code == 401, "the refusal", seconds=8)


@pytest.mark.long
def test_a_token_of_one_is_taken_by_the_other(pair: Pair, replica: str) -> None:
    token = pair.one.qd("auth", "token").stdout.strip()
    (organization,) = pair.one.get("/v1/organizations")["organizations"]
    named = {"Authorization": f"Bearer {token}", "Service-Org-Id": organization["id"]}
    with pair.other.client(**named) as client:
        assert client.get("/v1/user/profile").status_code == 200
        assert client.post(f"/v1/workspaces/{replica}/wake").status_code == 202


@pytest.mark.long
def test_status_and_doctor_tell_who_shares_the_database(pair: Pair) -> None:
    told = json.loads(pair.other.qd("status", "--json").stdout)
    assert told["home_id"] == pair.home_id(pair.other)
    assert sorted(one["home_id"] for one in told["services"]) == sorted(
        pair.home_id(service) for service in pair.both
    )
    assert f"services  2; home {told['home_id']} answers" in pair.other.qd("status").stdout
    pair.one.kill()
    away = "UPDATE services SET seen_at = '2020-01-01T00:00:00Z' WHERE home_id = %s"
    pair.rows(away, pair.home_id(pair.one))
    (url,) = [one["url"] for one in told["services"] if not one["own"]]
    checks = json.loads(pair.other.qd("doctor", "--json").stdout)["checks"]
    (found,) = [one for one in checks if one["name"] == "services"]
    assert (found["level"], "2, 1 of them away" in found["message"]) == ("warn", True)
    assert f"{pair.home_id(pair.one)} ({url}, last seen " in found["next_step"]
    assert "qd replica forget" in found["next_step"]
    told = pair.other.qd("status").stdout
    assert f"away      home {pair.home_id(pair.one)}, last seen " in told
    pair.one.start()


@pytest.mark.long
def test_a_caller_of_one_service_is_not_the_other_ones_owner(pair: Pair, replica: str) -> None:
    forged = {"X-Quarterdeck-Forwarded": pair.home_id(pair.one)}
    answer = pair.other.ask("POST", f"/v1/workspaces/{replica}/wake", headers=forged)
    refused(answer, 502, "ENGINE_UNREACHABLE", "came to another one", pair.home_id(pair.other))


@pytest.mark.long
def test_a_caller_that_leaves_ends_its_stream_at_the_owner(pair: Pair, replica: str) -> None:
    # Idle connections of earlier requests are kept for a while; they end with their service.
    pair.other.stop()
    pair.other.start()
    until(lambda: connections(pair.one.port) == 0, "the end of all others")
    with (
        pair.other.client(Authorization=f"Bearer {pair.other.key}") as client,
        client.stream("GET", f"/v1/replica/{replica}/events") as response,
    ):
        assert response.status_code == 200
        until(lambda: connections(pair.one.port) == 1, "the stream")
    until(lambda: connections(pair.one.port) == 0, "the end of the stream")


def connections(port: int) -> int:
    """How many are open to a port of this machine."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    there = f"0100007F:{port:04X}"
    return sum(line[1] == there and line[3] == "01" for line in lines)


@pytest.mark.long
def test_an_owner_that_is_killed_and_comes_back(pair: Pair, replica: str) -> None:
    follower = Follower(pair.other, replica)
    until(lambda: follower.connections, "the stream")
    engine = pair.one.engine(replica)
    before = pair.other.history(replica)
    pair.one.kill()
    for method, path in (
        ("POST", "/sleep"),
        ("GET", "/events"),
        ("GET", "/canvas"),
        ("GET", "?include=diffs"),
        ("DELETE", ""),
    ):
        answer = pair.other.ask(method, f"/v1/workspaces/{replica}{path}")
        refused(answer, *AWAY, f"home {pair.home_id(pair.one)} at http://127.0.0.1:{pair.one.port}")
    assert pair.other.replica(replica)["status"] == "active"
    assert pair.other.history(replica) == before
    status = pair.other.get(f"/v1/workspaces/{replica}/status")
    assert "cannot be reached" in status["message"]
    chat = pair.other.get(f"/v1/replica/{replica}/chats")["chats"][0]["id"]
    assert pair.other.get(f"/v1/replica/{replica}/chats/{chat}/queue")["queue"] == []
    assert pair.other.get(f"/v1/replica/{replica}/hooks")
    assert replica in [one["id"] for one in pair.other.get("/v1/replica")["replicas"]]
    mine = pair.other.create()
    pair.one.start()
    assert pair.one.engine(replica) == engine
    assert runs(engine)
    pair.other.turn(replica, block("echo again"))
    until(lambda: follower.printed("again"), "the resumed stream")
    follower.end()
    assert follower.indices == list(range(1, follower.indices[-1] + 1))
    pair.other.delete(mine)


@pytest.mark.long
def test_a_restart_touches_no_replica_of_the_other(pair: Pair, replica: str) -> None:
    # What one sees of another start of the machine sleeps; of the other's it judges nothing.
    [(boot,)] = pair.rows("SELECT boot_id FROM workspaces WHERE id = %s", replica)
    change = "UPDATE workspaces SET boot_id = %s WHERE id = %s"
    pair.rows(change, "before", replica)
    try:
        pair.other.stop()
        pair.other.start()
        assert pair.one.run(replica, "echo on")["output"] == "on\n"
        assert pair.one.replica(replica)["status"] == "active"
    finally:
        pair.rows(change, boot, replica)  # the replica is other tests' too


@pytest.mark.long
def test_a_service_that_was_not_seen_is_not_asked(pair: Pair, replica: str) -> None:
    pair.one.kill()
    away = "seen_at = '2020-01-01T00:00:00Z', url = 'http://127.0.0.1:1'"
    pair.rows(f"UPDATE services SET {away} WHERE home_id = %s", pair.home_id(pair.one))
    answer = pair.other.ask("POST", f"/v1/workspaces/{replica}/wake")
    refused(answer, *AWAY, "last seen at 2020-01-01T00:00:00Z")
    pair.one.start()
    assert pair.other.post(f"/v1/workspaces/{replica}/wake", status=202)


@pytest.mark.long
def test_a_replica_of_a_lost_home_is_forgotten(pair: Pair) -> None:
    made = pair.one.create()
    name, engine = pair.one.replica(made)["name"], pair.one.engine(made)
    refusal = pair.other.qd("replica", "forget", name, "--yes")
    assert (refusal.returncode, "Delete the replica instead" in refusal.stderr) == (1, True)
    pair.one.kill()
    away = "UPDATE services SET seen_at = '2020-01-01T00:00:00.000Z' WHERE home_id = %s"
    pair.rows(away, pair.home_id(pair.one))
    (row,) = [
        line for line in pair.other.qd("replica", "ls").stdout.splitlines() if name in line.split()
    ]
    assert row.split()[1] == "unreachable"
    assert "its service was last seen" in pair.other.qd("replica", "show", name).stdout
    refused(pair.other.ask("DELETE", f"/v1/replica/{made}"), *AWAY)
    assert "qd replica forget" in pair.other.qd("replica", "rm", name, "--yes").stderr
    unasked = pair.other.qd("replica", "forget", name)
    assert (unasked.returncode, "Add --yes" in unasked.stderr) == (2, True)
    forgotten = pair.other.qd("replica", "forget", name, "--yes", "--json")
    assert json.loads(forgotten.stdout) == {"success": True}
    assert pair.other.ask("DELETE", f"/v1/replica/{made}").status_code == 404
    body = {"name": name, "environment_id": pair.other.plain_environment}
    again = pair.other.post("/v1/replica", body, 201)["replica"]["id"]
    pair.other.reach(again, "active")
    pair.other.delete(again)
    # The home was not lost after all: it removes what is left there.
    pair.one.start()
    until(lambda: not runs(engine), "the end of its engine")
    until(lambda: not pair.one.place(made).exists(), "the removal of its files")


@pytest.mark.long
def test_calls_that_wait_at_a_service_that_is_gone_are_made_by_another(pair: Pair) -> None:
    with psycopg.connect(pair.url) as connection:
        assert connection.execute("SELECT count(*) FROM services").fetchone() == (2,)
    statement = (
        "INSERT INTO webhook_deliveries SELECT %s, id, %s, 'http://127.0.0.1:1/', '{}', 0, %s, %s"
        " FROM organizations"
    )
    soon = "2999-01-01T00:00:00Z"
    columns = "(id, organization_id, home_id, url_sealed, body, attempts, next_at, created_at)"
    statement = statement.replace("webhook_deliveries", f"webhook_deliveries {columns}")
    pair.rows(statement, "left", "nobody's home", soon, soon)
    owner = "SELECT home_id FROM webhook_deliveries WHERE id = 'left'"
    homes = {pair.home_id(service) for service in pair.both}
    until(lambda: pair.rows(owner)[0][0] in homes, "an heir")
    pair.rows("DELETE FROM webhook_deliveries WHERE id = 'left'")


@pytest.mark.long
def test_a_service_that_is_reached_by_its_socket(
    postgresql: Server, require_tool: Callable[[str], str]
) -> None:
    require_tool("bwrap")
    with paired(postgresql) as pair:
        pair.one.stop()
        pair.one.words = ("--advertise", f"unix:{pair.one.home.socket}")
        pair.one.start()
        made = pair.one.create()
        follower = Follower(pair.other, made)
        pair.other.turn(made, block("echo by socket"))
        until(lambda: follower.printed("by socket"), "the event")
        follower.end()
