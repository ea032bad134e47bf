"""What bad input gets: an error that says what to do, and nothing lost."""

import json
import os
import signal
import socket
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.git import git, make_repository
from tests.support.installation import (
    Follower,
    Installation,
    block,
    command_of,
    refused,
    remove,
    runs,
)
from tests.support.waiting import until


@pytest.fixture
def known(deck: Installation):
    """The replicas there were before, which must be those there are after."""
    before = deck.get("/v1/replica?limit=100")["total"]
    yield
    assert deck.get("/v1/replica?limit=100")["total"] == before


@pytest.mark.parametrize("name", ["two words", "tab\there", "line\n", " ", "", "x" * 201, None, 7])
def test_a_name_that_is_none(deck: Installation, known: None, name: object) -> None:
    body = {"name": name, "environment_id": deck.plain_environment}
    refused(deck.ask("POST", "/v1/replica", body), 400, "INVALID_REQUEST", "not valid", "name: ")


def test_a_name_that_is_taken(deck: Installation, known: None, active: str, stocked: str) -> None:
    name = deck.replica(active)["name"]
    answer = deck.ask("POST", "/v1/replica", {"name": name, "environment_id": stocked})
    refused(answer, 409, "CONFLICT", "has this name already", name)


def test_an_unknown_environment(deck: Installation, known: None) -> None:
    unknown = str(uuid4())
    answer = deck.ask("POST", "/v1/replica", {"name": "x", "environment_id": unknown})
    refused(answer, 404, "NOT_FOUND", "No environment has this id.", unknown)


def test_agents_that_cannot_be_used(deck: Installation, known: None) -> None:
    body = {"name": "x", "environment_id": deck.plain_environment}
    answer = deck.ask("POST", "/v1/replica", body | {"coding_agent": "nobody"})
    refused(answer, 400, "INVALID_REQUEST", "There is no such agent.", "coding_agent: one of ")
    answer = deck.ask("POST", "/v1/replica", body | {"coding_agent": "gemini"})
    refused(answer, 400, "INVALID_REQUEST", "Gemini cannot be used: Not installed", "coding_agent")


@pytest.mark.parametrize("what", ["directory", "file", "nothing", "relative", "scheme", "far"])
def test_a_path_that_is_no_repository(deck: Installation, what: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    url, sentence = {
        "directory": (str(tmp_path), "is not a git repository."),
        "file": (str(tmp_path / "file"), "is not a git repository."),
        "nothing": (str(tmp_path / "nothing"), "is not a git repository."),
        "relative": ("some/where", "is a relative path."),
        "scheme": ("ext::sh -c true", "are not supported"),
        "far": ("http://127.0.0.1:9/shop.git", "git cannot read"),
    }[what]
    before, mirrors = deck.get("/v1/replica/repositories"), mirrors_of(deck)
    answer = deck.ask("POST", "/v1/replica/repositories", {"url": url})
    refused(answer, 400, "INVALID_REQUEST", sentence, "url")
    assert deck.get("/v1/replica/repositories") == before
    assert mirrors_of(deck) == mirrors


def mirrors_of(deck: Installation) -> list[Path]:
    """Half-made ones, too; the directory itself is made with the first."""
    return sorted(path for path in deck.home.mirrors.glob("*") if path.is_dir())


def test_a_source_with_missing_objects(deck: Installation, tmp_path: Path) -> None:
    source = make_repository(tmp_path / "shop")
    lost = git(source, "rev-parse", "HEAD~1:README")
    (source / ".git/objects" / lost[:2] / lost[2:]).unlink()
    answer = deck.ask("POST", "/v1/replica/repositories", {"url": str(source)})
    refused(answer, 400, "INVALID_REQUEST", "could not be fetched.", lost)


@pytest.mark.long
def test_a_clone_that_fails_and_a_wake_after_it_was_mended(
    deck: Installation, tmp_path: Path
) -> None:
    source = make_repository(tmp_path / "shop")
    repository = deck.connect(str(source))
    environment = deck.environment_with(repository)
    mirror = deck.home.mirrors / repository
    away = tmp_path / "away"
    source.rename(away)
    remove(mirror)
    id = deck.create(environment, wait=False, message=block("cat README"))
    failed = deck.reach(id, "error")
    assert "is not a git repository." in failed["error"]
    status = deck.get(f"/v1/workspaces/{id}/status")
    assert (status["status"], status["error"]) == ("error", failed["error"])
    answer = deck.ask("POST", f"/v1/replica/{id}/messages", {"message": "hello"})
    refused(
        answer, 409, "WORKSPACE_ERROR_STATE", "Wake it to try again", "is not a git repository."
    )
    assert deck.history(id) == []

    away.rename(source)
    assert deck.post(f"/v1/workspaces/{id}/wake", status=202) == {"status": "waking"}
    assert deck.reach(id, "active")["error"] is None
    until(lambda: deck.results(id), "the first message's turn")
    assert deck.said(id) == [block("cat README")]
    deck.delete(id)


def test_a_source_that_is_gone_is_told_where_its_mirror_serves(
    deck: Installation, tmp_path: Path
) -> None:
    source = make_repository(tmp_path / "shop")
    environment = deck.environment_with(deck.connect(str(source)))
    remove(source)
    id = deck.create(environment)
    follower = Follower(deck, id)
    until(lambda: follower.has("engine.ready"), "its log")
    follower.end()
    told = [event for _, event in follower.events if event["type"] == "error"]
    assert len(told) == 1
    assert "shop: its source cannot be reached now" in told[0]["payload"]["message"]
    assert "using what was fetched earlier" in told[0]["payload"]["message"]
    assert deck.replica(id)["error"] is None
    deck.delete(id)


def test_a_mirror_whose_objects_are_gone(deck: Installation, tmp_path: Path) -> None:
    source = make_repository(tmp_path / "shop")
    repository = deck.connect(str(source))
    environment = deck.environment_with(repository)
    remove(deck.home.mirrors / repository / "objects")
    remove(source)
    id = deck.create(environment, wait=False)
    failed = deck.reach(id, "error")
    assert "could not be cloned." in failed["error"]
    assert list((deck.place(id) / "files").iterdir()) == []
    deck.delete(id)
    deck.check_gone(id)


def test_an_agent_that_does_not_start(deck: Installation, active: str) -> None:
    chat = deck.post(f"/v1/replica/{active}/chats", {"provider": "builtin"}, 201)["chat"]["id"]
    # In the way of the directory that the agent keeps its sessions in.
    agents = deck.place(active) / "state" / "agents"
    deck.run(active, f"mkdir -p /var/lib/replica/agents; touch /var/lib/replica/agents/{chat}")
    assert (agents / chat).is_file()
    result = deck.turn(active, block("echo 1"), chat_id=chat)
    assert result["stopReason"] == "failed"
    assert result["error"].startswith("The agent")
    assert not deck.replica(active)["chats"][-1]["processing"]
    deck.run(active, f"rm /var/lib/replica/agents/{chat}")
    assert deck.turn(active, block("echo 2"), chat_id=chat)["stopReason"] == "end_turn"


@pytest.mark.long
def test_an_agent_that_dies_in_a_turn(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    sent = deck.send(id, block("touch /tmp/begun; sleep 1000"))
    until(lambda: deck.run(id, "test -e /tmp/begun")["exit_code"] == 0, "the turn")
    until(lambda: deck.replica(id)["chats"][0]["processing"], "the news of it")
    queued = deck.send(id, block("echo next"))
    assert (queued["status"], queued["position"]) == ("queued", 1)
    (agent,) = deck.agents(id)
    os.kill(agent, signal.SIGKILL)
    result = deck.result(id, sent["message_id"])
    assert result["stopReason"] == "failed"
    assert result["error"] == "Built-in was killed by signal 9."
    assert deck.result(id, queued["message_id"])["stopReason"] == "end_turn"
    assert not any("sleep 1000" in command_of(pid) for pid in deck.processes(id))
    assert len(deck.said(id)) == 2
    deck.delete(id)


@pytest.mark.parametrize("size", [(1, 1), (5000, 5000), (501, 24), (80, 201), (2, 0)])
def test_a_terminal_of_no_size(deck: Installation, active: str, size: tuple[int, int]) -> None:
    cols, rows = size
    path = f"/v1/replica/{active}/terminal/sessions"
    before = deck.get(path)
    answer = deck.ask("POST", path, {"cols": cols, "rows": rows})
    wrong = "cols" if not 2 <= cols <= 500 else "rows"
    refused(answer, 400, "INVALID_REQUEST", "not valid", f"{wrong}: ")
    assert deck.get(path) == before


def test_a_body_that_is_not_json(deck: Installation, active: str) -> None:
    before = deck.said(active)
    for content in (b"{", b"", b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b'"text"', b"null", b"[]"):
        path = f"/v1/replica/{active}/messages"
        headers = {"content-type": "application/json"}
        with deck.client(Authorization=f"Bearer {deck.key}") as client:
            answer = client.post(path, content=content, headers=headers)
        refused(answer, 400, "INVALID_REQUEST", "not valid", "body")
    assert deck.said(active) == before


def test_text_that_is_no_unicode(deck: Installation, active: str) -> None:
    content = b'{"message": "\\ud800"}'
    path, headers = f"/v1/replica/{active}/messages", {"content-type": "application/json"}
    with deck.client(Authorization=f"Bearer {deck.key}") as client:
        answer = client.post(path, content=content, headers=headers)
    refused(answer, 400, "INVALID_REQUEST", "not valid", "message: ")


def test_a_body_that_is_too_large(deck: Installation, active: str) -> None:
    path = f"/v1/replica/{active}/messages"
    answer = deck.ask("POST", path, {"message": "x" * (8 << 20)})
    refused(answer, 413, "PAYLOAD_TOO_LARGE", "too large")
    pieces = (b"x" * (1 << 20) for _ in range(9))
    with deck.client(Authorization=f"Bearer {deck.key}") as client:
        answer = client.post(path, content=pieces, headers={"content-type": "application/json"})
    refused(answer, 413, "PAYLOAD_TOO_LARGE", "too large")


@pytest.mark.parametrize("message", ["", "   \n", "/plan", "/plan /fast \n"])
def test_a_message_without_text(deck: Installation, active: str, message: str) -> None:
    answer = deck.ask("POST", f"/v1/replica/{active}/messages", {"message": message})
    refused(answer, 400, "INVALID_REQUEST", "needs text", "message")


def test_unknown_uploads(deck: Installation, active: str) -> None:
    body = {"message": "look", "canvasUploadIds": ["nothing"]}
    answer = deck.ask("POST", f"/v1/replica/{active}/messages", body)
    refused(answer, 400, "INVALID_REQUEST", "no such upload", "canvasUploadIds: nothing")


def test_a_port_in_use(deck: Installation, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = deck.qd(
            "serve", "--listen", f"127.0.0.1:{port}", QUARTERDECK_HOME=str(tmp_path / "home")
        )
    assert done.returncode == 1
    assert f"qd: Port {port} on 127.0.0.1 is in use by another program" in done.stderr
    assert not (tmp_path / "home/service/qd.sock").exists()


def test_two_services_on_one_home(deck: Installation) -> None:
    done = deck.qd("serve")
    assert done.returncode == 1
    assert f"runs already: process {deck.pid}." in done.stderr
    assert runs(deck.pid)
    assert deck.get("/v1/health")["status"] == "ok"
    assert json.loads(deck.qd("status", "--json").stdout)["answers"] is True
