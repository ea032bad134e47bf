"""Every state against every operation, on real replicas: what it answers, and what it changes.

A replica is taken through as many of its states as it can have: to make one costs more than to ask it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.git import make_repository
from tests.support.installation import Installation, refused, remove
from tests.system.sources import Source, serve_source

SESSION = str(uuid4())
INACTIVE = (409, "WORKSPACE_NOT_ACTIVE")
FAILED = (409, "WORKSPACE_ERROR_STATE")
NONE = (404, "NOT_FOUND")
OK = (200, None)
COLUMN = {"active": 0, "preparing": 1, "sleeping": 2, "error": 3, "archived": 2}

# method, path, body; then what the states of COLUMN answer
TABLE: list[tuple[str, str, Any, list[tuple[int, str | None]]]] = [
    ("GET", "", None, [OK] * 4),
    ("GET", "/status", None, [OK] * 4),
    ("GET", "/chats", None, [OK] * 4),
    ("GET", "/history", None, [OK] * 4),
    ("GET", "/chats/{chat}/queue", None, [OK] * 4),
    ("POST", "/chats", {"provider": "builtin"}, [(201, None)] * 4),
    ("POST", "/exec", {"command": "true"}, [OK, INACTIVE, INACTIVE, INACTIVE]),
    ("PATCH", "/chats/{chat}", {"display_name": "x"}, [OK, INACTIVE, INACTIVE, INACTIVE]),
    ("POST", "/chats/{chat}/interrupt", None, [OK, INACTIVE, INACTIVE, INACTIVE]),
    (
        "POST",
        "/chats/{chat}/respond",
        {"requestId": "r", "optionId": "o"},
        [(409, "CONFLICT"), INACTIVE, INACTIVE, INACTIVE],
    ),
    ("GET", "/terminal/sessions", None, [OK, INACTIVE, INACTIVE, INACTIVE]),
    (
        "POST",
        "/terminal/sessions",
        {"cols": 80, "rows": 24},
        [(201, None), INACTIVE, INACTIVE, INACTIVE],
    ),
    (
        "POST",
        f"/terminal/sessions/{SESSION}/input",
        {"data": "x", "generation": 0, "sequence": 0},
        [NONE, INACTIVE, INACTIVE, INACTIVE],
    ),
    (
        "POST",
        f"/terminal/sessions/{SESSION}/resize",
        {"cols": 80, "rows": 24},
        [NONE, INACTIVE, INACTIVE, INACTIVE],
    ),
    ("GET", f"/terminal/sessions/{SESSION}/stream", None, [NONE, INACTIVE, INACTIVE, INACTIVE]),
    ("DELETE", f"/terminal/sessions/{SESSION}", None, [NONE, INACTIVE, INACTIVE, INACTIVE]),
]


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    with serve_source(tmp_path) as made:
        yield made


@pytest.fixture
def place_in(
    deck: Installation, stocked: str, source: Source, tmp_path: Path
) -> Iterator[Callable[[str], str]]:
    """Makes a replica in a state."""
    made: list[str] = []

    def place(state: str) -> str:
        match state:
            case "active":
                made.append(deck.create(stocked))
            case "preparing":
                environment = deck.environment_with(deck.connect(source.url))
                source.hold()
                made.append(deck.create(environment, wait=False))
                source.wait_asked()
            case _:
                broken = make_repository(tmp_path / f"broken-{len(made)}")
                repository = deck.connect(str(broken))
                environment = deck.environment_with(repository)
                remove(broken)
                remove(deck.home.mirrors / repository)
                made.append(deck.create(environment, wait=False))
                deck.reach(made[-1], "error")
        return made[-1]

    yield place
    source.release()
    for id in made:
        deck.ask("DELETE", f"/v1/replica/{id}")


def changes_no_state(deck: Installation, id: str, state: str) -> None:
    chat = deck.chat(id)
    for family in ("/v1/replica", "/v1/workspaces"):
        for method, path, body, expected in TABLE:
            status, code = expected[COLUMN[state]]
            answer = deck.ask(method, f"{family}/{id}{path.format(chat=chat)}", body)
            if code is None:
                assert answer.status_code == status, (path, answer.text)
            else:
                sentence = "not active" if code == INACTIVE[1] else ""
                details = state if code == INACTIVE[1] else ""
                refused(answer, status, code, sentence, details)
            assert deck.replica(id)["status"] == state, path
    listed = deck.get(f"/v1/replica?limit=100&status={state}")["replicas"]
    assert id in [one["id"] for one in listed]
    assert deck.replica(id)["chats"][0]["title"] == ("x" if state == "active" else None)
    if state != "active":
        assert not [pid for pid in deck.processes(id) if state != "preparing"]


def sleeps(deck: Installation, id: str, state: str) -> None:
    answer = deck.ask("POST", f"/v1/workspaces/{id}/sleep")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    rests = "archived" if state == "archived" else "sleeping"
    assert deck.replica(id)["status"] == rests
    assert deck.processes(id) == []


def is_archived(deck: Installation, id: str) -> None:
    answer = deck.ask("POST", f"/v1/workspaces/{id}/archive")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert deck.replica(id)["status"] == "archived"
    assert deck.processes(id) == []
    assert not deck.place(id).exists()


def wakes(deck: Installation, id: str) -> None:
    answer = deck.ask("POST", f"/v1/workspaces/{id}/wake")
    assert (answer.status_code, answer.json()) == (202, {"status": "waking"})


def takes(deck: Installation, id: str, state: str) -> str:
    """A message; its id."""
    body = deck.ask("POST", f"/v1/replica/{id}/messages", {"message": "hello"}).json()
    assert body["status"] == ("sent" if state == "active" else "waking")
    assert body["position"] is None
    return body["message_id"]


def runs_once(deck: Installation, id: str, message_id: str) -> None:
    deck.result(id, message_id)
    assert deck.said(id) == ["hello"]
    assert deck.replica(id)["status"] == "active"


def goes(deck: Installation, id: str) -> None:
    deck.delete(id)
    refused(deck.ask("GET", f"/v1/replica/{id}"), *NONE, "No replica has this id.")
    refused(deck.ask("DELETE", f"/v1/replica/{id}"), *NONE, "No replica has this id.")
    deck.check_gone(id)


def test_active(deck: Installation, place_in: Callable[[str], str]) -> None:
    id = place_in("active")
    changes_no_state(deck, id, "active")
    wakes(deck, id)
    deck.reach(id, "active")
    runs_once(deck, id, takes(deck, id, "active"))
    goes(deck, id)


@pytest.mark.long
def test_sleeping(deck: Installation, place_in: Callable[[str], str]) -> None:
    id = place_in("active")
    sleeps(deck, id, "active")
    changes_no_state(deck, id, "sleeping")
    sleeps(deck, id, "sleeping")
    wakes(deck, id)
    deck.reach(id, "active")
    sleeps(deck, id, "active")
    runs_once(deck, id, takes(deck, id, "sleeping"))
    sleeps(deck, id, "active")
    goes(deck, id)


@pytest.mark.long
def test_archived(deck: Installation, place_in: Callable[[str], str]) -> None:
    id = place_in("active")
    is_archived(deck, id)
    changes_no_state(deck, id, "archived")
    sleeps(deck, id, "archived")
    is_archived(deck, id)
    wakes(deck, id)
    deck.reach(id, "active")
    sleeps(deck, id, "active")
    is_archived(deck, id)
    runs_once(deck, id, takes(deck, id, "archived"))
    is_archived(deck, id)
    goes(deck, id)


@pytest.mark.long
def test_preparing(deck: Installation, place_in: Callable[[str], str], source: Source) -> None:
    id = place_in("preparing")
    changes_no_state(deck, id, "preparing")
    answer = deck.ask("POST", f"/v1/workspaces/{id}/sleep")
    refused(answer, *INACTIVE, "cannot be put to sleep yet", "preparing")
    answer = deck.ask("POST", f"/v1/workspaces/{id}/archive")
    refused(answer, *INACTIVE, "cannot be archived yet", "preparing")
    assert deck.replica(id)["status"] == "preparing"
    wakes(deck, id)
    sent = takes(deck, id, "preparing")
    source.release()
    deck.reach(id, "active")
    runs_once(deck, id, sent)


@pytest.mark.long
def test_preparing_and_deleted(deck: Installation, place_in: Callable[[str], str]) -> None:
    goes(deck, place_in("preparing"))


@pytest.mark.long
def test_failed(deck: Installation, place_in: Callable[[str], str]) -> None:
    id = place_in("error")
    changes_no_state(deck, id, "error")
    for path in ("sleep", "archive"):
        answer = deck.ask("POST", f"/v1/workspaces/{id}/{path}")
        refused(answer, *FAILED, "wake it to try again")
        assert deck.replica(id)["status"] == "error"
    answer = deck.ask("POST", f"/v1/replica/{id}/messages", {"message": "hello"})
    refused(answer, *FAILED, "Wake it to try again, then send the message.", "not a git rep")
    assert deck.get(f"/v1/replica/{id}/chats/{deck.chat(id)}/queue")["queue"] == []
    wakes(deck, id)
    deck.reach(id, "error")  # what broke it is still broken
    goes(deck, id)
