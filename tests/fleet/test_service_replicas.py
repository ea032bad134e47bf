"""What may be asked of replicas, and how they are described."""

from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.service import quotas
from quarterdeck.service.environments.setup import bundle_for_start
from quarterdeck.service.first_start import owner_of
from quarterdeck.service.replicas.rows import find_workspace
from tests.conftest import DATABASES
from tests.fleet.conftest import World
from tests.fleet.double_engine import VERSION
from tests.support.waiting import eventually

# What is stored has tests of its own on both.
pytestmark = pytest.mark.one_database


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


async def refused(world: World, **body: Any) -> tuple[int, dict[str, Any]]:
    body = {"name": "fine", "environment_id": world.environment, **body}
    answer = await world.client.post("/v1/replica", json=body)
    return answer.status_code, answer.json()


@pytest.mark.parametrize("name", ["", "two words", "tab\there", "line\nend", "end\n", 5, None])
async def test_names_without_white_space(world: World, name: Any) -> None:
    status, error = await refused(world, name=name)
    assert (status, error["code"]) == (400, "INVALID_REQUEST")
    assert error["details"].startswith("name")


async def test_refusals_of_create(world: World) -> None:
    status, error = await refused(world, environment_id=str(uuid4()))
    assert (status, error["code"]) == (404, "NOT_FOUND")
    status, error = await refused(world, coding_agent="nobody")
    assert (status, error["details"]) == (400, "coding_agent: one of builtin, gemini, codex")
    status, error = await refused(world, coding_agent="")
    assert (status, error["details"]) == (400, "coding_agent: one of builtin, gemini, codex")
    status, error = await refused(world, model="")
    assert (status, error["details"].partition(":")[0]) == (400, "model")
    status, error = await refused(world, coding_agent="codex")
    assert (status, error["error"]) == (400, "Codex cannot be used: codex is not installed.")
    status, error = await refused(world, size="huge")
    assert (status, error["details"].split(":")[0]) == (400, "size")
    await world.create(name="taken", wait=False)
    status, error = await refused(world, name="taken")
    assert (status, error["code"]) == (409, "CONFLICT")
    assert (await world.client.get("/v1/replica")).json()["total"] == 1


async def test_an_organization_has_so_many_replicas(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await world.create(name="first")
    await world.post(made, "/sleep")
    monkeypatch.setattr(quotas, "REPLICAS_MOST", 1)
    status, error = await refused(world, name="second")
    assert (status, error["code"]) == (429, "WORKSPACE_LIMIT_REACHED")
    assert (await world.post(made, "/wake")).status_code == 202
    assert (await world.client.delete(f"/v1/replica/{made}")).is_success
    await world.create(name="second")


async def test_a_replica_starts_with_one_chat(world: World) -> None:
    made = await world.create(coding_agent="gemini", goal_mode=True, config={"a": 1})
    replica = await world.get(made)
    assert replica["coding_agent"] == "gemini"
    (chat,) = replica["chats"]
    assert (chat["provider"], chat["processing"]) == ("gemini", False)
    created = await world.events(made, "chat.created")
    assert [one["chat"]["id"] for one in created] == [chat["id"]]
    assert replica["log_index"] == len(await world.events(made))


async def test_a_replica_says_what_it_was_made_with(world: World) -> None:
    plain = await world.get(await world.create(wait=False))
    told = ("model", "size", "lifecycle_policy", "auto_stop_minutes")
    assert [plain[name] for name in told] == [None, "small", "default", None]
    wishes = {"size": "large", "lifecycle_policy": "sleep_when_done", "model": "one"}
    made = await world.create(
        wait=False, coding_agent="gemini", config={"auto_stop_minutes": 5}, **wishes
    )
    replica = await world.get(made)
    assert [replica[name] for name in told] == ["one", "large", "sleep_when_done", 5]


@pytest.mark.long
async def test_pages(world: World) -> None:
    made = [await world.create(wait=False) for _ in range(5)]
    page = (await world.client.get("/v1/replica?page=2&limit=2")).json()
    assert (page["total"], page["total_pages"], page["page"], page["limit"]) == (5, 3, 2, 2)
    assert [one["id"] for one in page["replicas"]] == [made[2], made[1]]
    assert (await world.client.get("/v1/replica?page=9")).json()["replicas"] == []
    assert "chats" not in page["replicas"][0]
    for wrong in (
        "limit=0",
        "limit=101",
        "page=0",
        "limit=x",
        "status=gone",
        "environment_id=1",
        "source=x",
    ):
        answer = await world.client.get(f"/v1/replica?{wrong}")
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST"), wrong


@pytest.mark.long
async def test_filters(world: World) -> None:
    made = await world.create()
    asleep = await world.create()
    await world.post(asleep, "/sleep")

    async def listed(query: str) -> list[str]:
        answer = (await world.client.get(f"/v1/replica?{query}")).json()
        return [one["id"] for one in answer["replicas"]]

    assert await listed("status=sleeping") == [asleep]
    assert await listed("status=active") == [made]
    assert await listed("source=dashboard") == []
    assert await listed(f"environment_id={world.environment}") == [asleep, made]
    assert await listed(f"environment_id={uuid4()}") == []


async def test_include(world: World) -> None:
    made = await world.create()
    assert (await world.get(made))["environment"] is None
    answer = await world.client.get(f"/v1/replica/{made}?include=environment,diffs")
    environment = answer.json()["replica"]["environment"]
    assert environment["engine_version"] == VERSION
    assert environment["isolation"] == "none"
    assert environment["isolation_note"] == "This is a double."
    assert environment["coding_agents"]["codex"] == {"available": False, "auth_method": None}
    wrong = await world.client.get(f"/v1/replica/{made}?include=secrets")
    assert wrong.status_code == 400


async def test_ids(world: World) -> None:
    for path in ("", "/status", "/chats", f"/chats/{uuid4()}/queue"):
        assert (await world.client.get(f"/v1/replica/{uuid4()}{path}")).status_code == 404
        assert (await world.client.get(f"/v1/workspaces/nothing{path}")).status_code == 400


class TestChats:
    async def test_create_and_rename(self, world: World) -> None:
        made = await world.create()
        chosen = str(uuid4())
        body = {"provider": "gemini", "title": "One", "id": chosen, "clientRequestId": "c"}
        answer = await world.post(made, "/chats", body)
        assert answer.status_code == 201
        assert (answer.json()["chat"]["id"], answer.json()["chat"]["title"]) == (chosen, "One")
        again = await world.post(made, "/chats", body)
        assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")

        async def told() -> bool:
            created = await world.events(made, "chat.created")
            return any(one.get("clientRequestId") == "c" for one in created)

        await eventually(told)
        path = f"/v1/replica/{made}/chats/{chosen}"
        renamed = await world.client.patch(path, json={"display_name": "Two"})
        assert renamed.json()["chat"]["title"] == "Two"

        async def kept() -> bool:
            chats = (await world.client.get(f"/v1/replica/{made}/chats")).json()["chats"]
            return [chat["title"] for chat in chats] == [None, "Two"]

        await eventually(kept)
        for wrong in ("", "x" * 101, None):
            answer = await world.client.patch(path, json={"display_name": wrong})
            assert answer.status_code == 400
        unknown = f"/v1/replica/{made}/chats/{uuid4()}"
        assert (await world.client.patch(unknown, json={"display_name": "x"})).status_code == 404

    async def test_refusals(self, world: World) -> None:
        made = await world.create()
        for body in (
            {},
            {"provider": "nobody"},
            {"provider": "codex"},
            {"provider": "builtin", "parentChatId": str(uuid4())},
            {"provider": "builtin", "title": "x" * 101},
        ):
            assert (await world.post(made, "/chats", body)).status_code == 400, body

    async def test_interrupt(self, world: World) -> None:
        made = await world.create()
        chat = (await world.get(made))["chats"][0]["id"]
        idle = await world.post(made, f"/chats/{chat}/interrupt")
        assert idle.json() == {"interrupted": False, "queue": []}
        sent = await world.send(made, "wait")
        queued = await world.send(made, "then this wait")

        async def running() -> bool:
            return len(await world.events(made, "chat.turn.accepted")) == 2

        await eventually(running)
        stopped = await world.post(made, f"/chats/{chat}/interrupt")
        assert stopped.json() == {"interrupted": True, "queue": [queued["message_id"]]}
        assert (await world.done(made, sent["message_id"]))[0]["isComplete"] is False

    async def test_an_answer_is_an_option_or_a_text(self, world: World) -> None:
        made = await world.create()
        chat = (await world.get(made))["chats"][0]["id"]
        path = f"/chats/{chat}/respond"
        for body in (
            {"requestId": "r"},
            {"requestId": "r", "optionId": "o", "text": "t"},
            {"optionId": "o"},
        ):
            assert (await world.post(made, path, body)).status_code == 400
        late = await world.post(made, path, {"requestId": "r", "text": "t"})
        assert (late.status_code, late.json()["code"]) == (409, "CONFLICT")


async def test_exec(world: World) -> None:
    made = await world.create()
    answer = await world.post(made, "/exec", {"command": "echo hello; exit 3"})
    assert answer.json()["output"] == "hello\n"
    assert answer.json()["exit_code"] == 3
    for wrong in (
        {},
        {"command": "x", "timeout_seconds": 0},
        {"command": "x", "timeout_seconds": 51},
    ):
        assert (await world.post(made, "/exec", wrong)).status_code == 400


async def test_a_replica_of_the_installations_key_is_its_owners(world: World) -> None:
    made = await world.create(wait=False)
    row = await world.context.database.read(lambda c: find_workspace(c, made))
    assert row is not None and row.user_id == await owner_of(world.context.database)
    path = "/v1/provider-g/user/credentials"
    assert (await world.client.post(path, json={"api_key": "mine"})).status_code == 200
    bundle = await bundle_for_start(
        world.context, row.organization_id, row.user_id, row.environment_id
    )
    assert bundle.credentials == {"provider-g": "mine"}
