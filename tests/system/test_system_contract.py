"""Keys, versions, paths, ids, bounds and types, as the contract has them."""

import stat
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.installation import Installation, refused

SOME = "7a0e8b8e-1111-4222-8333-444455556666"
REPLICA_ROUTES = [
    ("GET", ""),
    ("DELETE", ""),
    ("POST", "/sleep"),
    ("POST", "/wake"),
    ("GET", "/status"),
    ("GET", "/history"),
    ("GET", "/events"),
    ("GET", "/chats"),
    ("POST", "/chats"),
    ("PATCH", f"/chats/{SOME}"),
    ("POST", f"/chats/{SOME}/interrupt"),
    ("POST", f"/chats/{SOME}/respond"),
    ("GET", f"/chats/{SOME}/queue"),
    ("POST", "/messages"),
    ("POST", "/exec"),
    ("GET", "/terminal/sessions"),
    ("POST", "/terminal/sessions"),
    ("POST", f"/terminal/sessions/{SOME}/input"),
    ("POST", f"/terminal/sessions/{SOME}/resize"),
    ("GET", f"/terminal/sessions/{SOME}/stream"),
    ("DELETE", f"/terminal/sessions/{SOME}"),
]
OTHER_ROUTES = [
    ("GET", "/v1/agents"),
    ("GET", "/v1/replica"),
    ("POST", "/v1/replica"),
    ("GET", "/v1/workspaces"),
    ("GET", "/v1/replica/repositories"),
    ("POST", "/v1/replica/repositories"),
    ("GET", "/v1/environments"),
    ("POST", "/v1/environments"),
    ("GET", f"/v1/environments/{SOME}"),
]
FAMILIES = ("/v1/replica", "/v1/workspaces")
BODIES: dict[str, dict[str, Any]] = {
    "/chats": {"provider": "builtin"},
    f"/chats/{SOME}": {"display_name": "x"},
    f"/chats/{SOME}/respond": {"requestId": "r", "optionId": "o"},
    "/messages": {"message": "x"},
    "/exec": {"command": "true"},
    "/terminal/sessions": {"cols": 80, "rows": 24},
    f"/terminal/sessions/{SOME}/input": {"data": "x", "generation": 0, "sequence": 0},
    f"/terminal/sessions/{SOME}/resize": {"cols": 80, "rows": 24},
}


@pytest.fixture
def keyless(deck: Installation) -> Iterator[httpx.Client]:
    with deck.client() as client:
        yield client


@pytest.fixture
def api(deck: Installation) -> Iterator[httpx.Client]:
    with deck.client(Authorization=f"Bearer {deck.key}") as client:
        yield client


# Keys


def test_no_route_but_health_answers_without_a_key(keyless: httpx.Client, deck: Installation):
    routes = [(m, f"{family}/{SOME}{p}") for m, p in REPLICA_ROUTES for family in FAMILIES]
    for method, path in routes + OTHER_ROUTES:
        answer = keyless.request(method, path)
        refused(answer, 401, "UNAUTHORIZED", "Send a key as a bearer token.")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert keyless.get("/v1/health").json()["status"] == "ok"


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("Bearer sk_wrong", "not valid"),
        ("Bearer {key}x", "not valid"),
        ("Bearer", "Send a key"),
        ("Basic {key}", "Send a key"),
        ("{key}", "Send a key"),
        ("Token {key}", "Send a key"),
        ("", "Send a key"),
    ],
)
def test_keys_that_open_nothing(
    keyless: httpx.Client, deck: Installation, header: str, sentence: str
) -> None:
    headers = {"Authorization": header.format(key=deck.key)}
    refused(keyless.get("/v1/replica", headers=headers), 401, "UNAUTHORIZED", sentence)


def test_the_scheme_has_no_case(keyless: httpx.Client, deck: Installation) -> None:
    answer = keyless.get("/v1/replica", headers={"Authorization": f"bearer {deck.key}"})
    assert answer.status_code == 200


def test_a_key_is_asked_for_before_anything_is_told(keyless: httpx.Client, active: str) -> None:
    for path in (f"/v1/replica/{active}", f"/v1/replica/{uuid4()}", "/v1/replica/no-id"):
        refused(keyless.get(path), 401, "UNAUTHORIZED", "Send a key")
    answer = keyless.post("/v1/replica", content=b"{", headers={"content-type": "text/plain"})
    refused(answer, 401, "UNAUTHORIZED", "Send a key")


def test_what_lies_in_the_home_is_the_owners_alone(deck: Installation, active: str) -> None:
    def mode(path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    home = deck.home
    assert mode(home.key) == 0o600
    assert mode(home.socket) == 0o600
    assert mode(home.service) == 0o700
    assert mode(home.mirrors) == 0o700 or mode(home.mirrors) & 0o077 == 0
    for file in home.service.glob("quarterdeck.sqlite3*"):
        assert mode(file) & 0o077 == 0 or mode(home.service) == 0o700
    assert not mode(home.root) & 0o066
    assert deck.key.encode() not in home.database.read_bytes()


# Versions and paths


def test_the_version_header(api: httpx.Client) -> None:
    name = "X-Service-Api-Version"
    assert api.get("/v1/replica", headers={name: "2026-10-07"}).status_code == 200
    for other in ("2026-10-08", "1", ""):
        answer = api.get("/v1/replica", headers={name: other})
        refused(answer, 400, "INVALID_REQUEST", "API version", f"{name}: ")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_route_is_there_in_both_families(api: httpx.Client, family: str) -> None:
    unknown = str(uuid4())
    for method, path in REPLICA_ROUTES:
        answer = api.request(method, f"{family}/{unknown}{path}", json=BODIES.get(path))
        refused(answer, 404, "NOT_FOUND", "No replica has this id.", unknown)


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_that_are_none(api: httpx.Client, active: str, family: str) -> None:
    for bad in ("7", "global", SOME[:-1], SOME + "0", "%00", "..%2f", "r1"):
        for method, path in REPLICA_ROUTES:
            if "%2f" in bad or (family == "/v1/replica" and bad == "repositories"):
                continue
            answer = api.request(method, f"{family}/{bad}{path}", json=BODIES.get(path))
            named = "url: " if bad == "%00" else "id: "
            refused(answer, 400, "INVALID_REQUEST", "not valid", named)
    for method, path in REPLICA_ROUTES:
        if SOME in path:
            body = BODIES.get(path)
            answer = api.request(
                method, f"{family}/{active}{path.replace(SOME, 'no-id')}", json=body
            )
            refused(answer, 400, "INVALID_REQUEST", "not valid", "_id: ")
    answer = api.get("/v1/environments/no-id")
    refused(answer, 400, "INVALID_REQUEST", "not valid", "environment_id")


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_of_a_replica_that_are_not_there(api: httpx.Client, active: str, family: str):
    for method, path in REPLICA_ROUTES:
        if SOME not in path:
            continue
        answer = api.request(method, f"{family}/{active}{path}", json=BODIES.get(path))
        refused(answer, 404, "NOT_FOUND", "with this id.")
    refused(api.get(f"{family}/{active}/history?chat_id={SOME}"), 404, "NOT_FOUND", "chat")
    body = {"message": "x", "chat_id": SOME}
    refused(api.post(f"{family}/{active}/messages", json=body), 404, "NOT_FOUND", "chat")


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v2/replica", "/v1/replica/", "/v1/nothing", f"/v1/replica/{SOME}/no"]
)
def test_unknown_routes(api: httpx.Client, keyless: httpx.Client, path: str) -> None:
    for client in (api, keyless):
        refused(client.get(path), 404, "NOT_FOUND", "There is no such route.")


def test_wrong_methods(api: httpx.Client, active: str) -> None:
    for method, path in (
        ("PUT", "/v1/replica"),
        ("PATCH", f"/v1/replica/{active}"),
        ("GET", f"/v1/workspaces/{active}/sleep"),
        ("DELETE", f"/v1/replica/{active}/chats"),
        ("POST", "/v1/health"),
        ("POST", f"/v1/replica/{active}/history"),
    ):
        refused(api.request(method, path), 405, "METHOD_NOT_ALLOWED", "does not have this method")


# Bounds


@pytest.mark.parametrize(("seconds", "fits"), [(0, False), (1, True), (50, True), (51, False)])
def test_the_bounds_of_exec(api: httpx.Client, active: str, seconds: int, fits: bool) -> None:
    body = {"command": "echo a; echo b >&2", "timeout_seconds": seconds}
    answer = api.post(f"/v1/replica/{active}/exec", json=body)
    if not fits:
        refused(answer, 400, "INVALID_REQUEST", "not valid", "timeout_seconds: ")
        return
    assert answer.json() == {
        "output": "a\nb\n",
        "exit_code": 0,
        "timed_out": False,
        "truncated": False,
    }


def test_a_command_is_stopped_at_its_limit(deck: Installation, active: str) -> None:
    got = deck.run(active, "echo begun; sleep 1234 & sleep 1234", 1)
    expected = {"output": "begun\n", "exit_code": None, "timed_out": True, "truncated": False}
    assert got == expected
    listed = deck.run(active, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 123[4]'")
    assert listed["output"] == "0\n"


@pytest.mark.parametrize(("length", "fits"), [(0, False), (1, True), (100, True), (101, False)])
def test_the_bounds_of_a_title(
    api: httpx.Client, deck: Installation, active: str, length: int, fits: bool
) -> None:
    title = "\N{SHIP}" * length
    path = f"/v1/replica/{active}/chats/{deck.chat(active)}"
    answer = api.patch(path, json={"display_name": title})
    if not fits:
        refused(answer, 400, "INVALID_REQUEST", "not valid", "display_name: ")
        return
    assert answer.json()["chat"]["title"] == title
    assert set(answer.json()) == {"chat"}


@pytest.mark.parametrize(("limit", "fits"), [(0, False), (1, True), (100, True), (101, False)])
def test_the_bounds_of_a_list(api: httpx.Client, active: str, limit: int, fits: bool) -> None:
    answer = api.get(f"/v1/replica?limit={limit}")
    if not fits:
        refused(answer, 400, "INVALID_REQUEST", "not valid", "limit: ")
        return
    body = answer.json()
    assert set(body) == {"replicas", "total", "page", "limit", "total_pages"}
    assert body["limit"] == limit
    assert len(body["replicas"]) <= limit


@pytest.mark.parametrize(
    "query",
    [
        "page=0",
        "page=-1",
        "page=x",
        "limit=1.5",
        "status=awake",
        "source=moon",
        "environment_id=7",
        "limit=",
    ],
)
def test_queries_that_make_no_sense(api: httpx.Client, query: str) -> None:
    answer = api.get(f"/v1/replica?{query}")
    refused(answer, 400, "INVALID_REQUEST", "not valid", f"{query.partition('=')[0]}: ")


def test_text_in_a_query_that_is_no_unicode(api: httpx.Client) -> None:
    assert api.get("/v1/environment-skills/search?q=%ED%A0%80").json()["skills"] == []
    answer = api.get("/v1/environment-skills/search?q=%00")
    refused(answer, 400, "INVALID_REQUEST", "not valid", "NUL character")


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("limit=0", False),
        ("limit=1", True),
        ("beforeEvent=-1", False),
        ("beforeEvent=0", True),
        ("beforeTurn=-1", False),
        ("beforeTurn=0", True),
        ("beforeCursor=nonsense", False),
        ("chat_id=7", False),
        ("limit=99999999999999999999", True),
        ("beforeEvent=99999999999999999999", True),
    ],
)
def test_the_bounds_of_history(api: httpx.Client, active: str, query: str, fits: bool) -> None:
    answer = api.get(f"/v1/replica/{active}/history?{query}")
    if fits:
        assert answer.status_code == 200, answer.text
        return
    refused(answer, 400, "INVALID_REQUEST", "", f"{query.partition('=')[0]}")


def test_places_in_a_stream_that_are_none(api: httpx.Client, active: str) -> None:
    for path in ("/events", f"/terminal/sessions/{SOME}/stream"):
        for bad in ("-1", "x", "1.0", "9" * 19):
            answer = api.get(f"/v1/replica/{active}{path}", headers={"Last-Event-ID": bad})
            refused(answer, 400, "INVALID_REQUEST", "cannot be resumed", "Last-Event-ID: ")


@pytest.mark.parametrize(("cols", "rows"), [(2, 1), (500, 200)])
def test_the_bounds_of_a_terminal(api: httpx.Client, active: str, cols: int, rows: int) -> None:
    path = f"/v1/replica/{active}/terminal/sessions"
    answer = api.post(path, json={"cols": cols, "rows": rows})
    assert answer.status_code == 201, answer.text
    session = answer.json()["session"]
    own = f"{path}/{session['id']}"
    try:
        for size in ({"cols": 1, "rows": 1}, {"cols": 501, "rows": 1}, {"cols": 2, "rows": 0}):
            answer = api.post(f"{own}/resize", json=size)
            refused(answer, 400, "INVALID_REQUEST", "not valid")
        answer = api.post(f"{own}/resize", json={"cols": 500, "rows": 200})
        assert answer.json() == {"success": True}
        numbers = {"generation": 0, "sequence": 0}
        answer = api.post(f"{own}/input", json={"data": " " * 65_537, **numbers})
        refused(answer, 400, "INVALID_REQUEST", "not valid", "data: ")
        for wrong in ({"generation": -1, "sequence": 0}, {"generation": 0, "sequence": -1}):
            answer = api.post(f"{own}/input", json={"data": "x", **wrong})
            refused(answer, 400, "INVALID_REQUEST", "not valid")
        answer = api.post(f"{own}/input", json={"data": "\x03" * 65_536, **numbers})
        assert answer.json() == {"success": True}
    finally:
        assert api.delete(own).json() == {"success": True}
    refused(api.delete(own), 404, "NOT_FOUND", "terminal")


def test_the_ninth_terminal(deck: Installation, active: str) -> None:
    path, size = f"/v1/replica/{active}/terminal/sessions", {"cols": 80, "rows": 24}
    made = [deck.post(path, size, 201)["session"]["id"] for _ in range(8)]
    refused(deck.ask("POST", path, size), 429, "TERMINAL_LIMIT_REACHED", "")
    assert [one["id"] for one in deck.get(path)["sessions"]] == made
    for id in made:
        deck.ask("DELETE", f"{path}/{id}")
    assert deck.get(path) == {"sessions": []}


# Types

WRONG = [
    ("/exec", "timeout_seconds", ["30", 30.5, True, None, [30]]),
    ("/exec", "command", [7, None, ["true"], {}]),
    ("/messages", "message", [7, None, ["x"]]),
    ("/messages", "plan_mode", ["true", 1, 0.0]),
    ("/messages", "chat_id", [7, "7", {}]),
    ("/messages", "thinking_level", [1, "", []]),
    ("/messages", "images", ["x", [{"type": "image"}]]),
    ("/chats", "provider", [7, "", None]),
    ("/chats", "parentChatId", ["x", 7]),
    ("/terminal/sessions", "cols", [80.5, "80", True, None]),
    ("/terminal/sessions", "rows", [24.5, "24", False]),
    (f"/terminal/sessions/{SOME}/input", "sequence", [0.5, "0", False, None]),
    (f"/terminal/sessions/{SOME}/input", "generation", [0.5, "0", False, None]),
    (f"/terminal/sessions/{SOME}/input", "data", [7, None]),
]


@pytest.mark.parametrize(("path", "field", "values"), WRONG)
def test_wrong_types_are_refused(
    api: httpx.Client, active: str, path: str, field: str, values: list[object]
) -> None:
    for value in values:
        body = BODIES[path] | {field: value}
        answer = api.post(f"/v1/replica/{active}{path}", json=body)
        refused(answer, 400, "INVALID_REQUEST", "not valid", f"{field}")


def test_a_thinking_level_that_nobody_offers_is_refused(api: httpx.Client, active: str) -> None:
    body = BODIES["/messages"] | {"thinking_level": "huge"}
    answer = api.post(f"/v1/replica/{active}/messages", json=body)
    refused(answer, 400, "INVALID_REQUEST", "does not offer", "low, medium, high, xhigh, max")


def test_wrong_types_of_a_replica(api: httpx.Client, deck: Installation) -> None:
    good = {"name": "typed", "environment_id": deck.plain_environment}
    for field, value in (
        ("plan_mode", "false"),
        ("goal_mode", 0),
        ("size", "huge"),
        ("lifecycle_policy", "never"),
        ("config", []),
        ("environment_id", "global"),
        ("environment_id", 7),
        ("message", 7),
    ):
        answer = api.post("/v1/replica", json=good | {field: value})
        refused(answer, 400, "INVALID_REQUEST", "not valid", f"{field}: ")
    for field in good:
        body = {name: value for name, value in good.items() if name != field}
        refused(api.post("/v1/replica", json=body), 400, "INVALID_REQUEST", "", f"{field}: ")
    names = [one["name"] for one in deck.get("/v1/replica?limit=100")["replicas"]]
    assert "typed" not in names


def test_unknown_fields_are_ignored(api: httpx.Client, active: str) -> None:
    body = {"command": "echo x", "color": "blue"}
    assert api.post(f"/v1/replica/{active}/exec", json=body).json()["output"] == "x\n"


def test_no_answer_is_422(api: httpx.Client, active: str) -> None:
    for method, path in REPLICA_ROUTES:
        if method in ("POST", "PATCH") and path in BODIES:
            for body in ({}, [], "x", 7, None):
                answer = api.request(method, f"/v1/replica/{active}{path}", json=body)
                refused(answer, 400, "INVALID_REQUEST", "")
