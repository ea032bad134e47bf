"""Hooks of environments and repositories, from their script to their log."""

import json
import os
import signal
from typing import Any

import httpx
import pytest

from tests.shaping.conftest import Shop
from tests.support.git import commit_files
from tests.support.trees import files_under
from tests.support.waiting import eventually


async def logs(shop: Shop, id: str, family: str = "replica") -> tuple[list[dict], list[dict]]:
    told = await shop.call("GET", f"/v1/{family}/{id}/hooks")
    assert set(told) == {"warm_hooks", "start_hooks"}
    return told["warm_hooks"]["logs"], told["start_hooks"]["logs"]


async def with_repository(shop: Shop) -> str:
    root = shop.home.root / "source" / "deck"
    (root / ".quarterdeck/hooks").mkdir(parents=True)
    for kind in ("warm", "start"):
        (root / f".quarterdeck/hooks/{kind}.sh").write_text(f"pwd; echo {kind} deck >> ~/order\n")
    commit_files(root)
    answer = await shop.call("POST", "/v1/replica/repositories", {"url": str(root)}, 201)
    return await shop.environment(repository_id=answer["repository"]["id"])


async def test_the_order_of_the_contract_and_logs_that_outlive_sleep(shop: Shop) -> None:
    environment = await with_repository(shop)
    for of in ("global", environment):
        for kind in ("start", "warm"):
            await shop.hook(of, kind, f"echo {kind} {of} >> ~/order")
    made = await shop.make(environment)
    expected = [
        f"{kind} {of}" for kind in ("warm", "start") for of in ("global", environment, "deck")
    ]
    assert (await shop.run(made, "cat ~/order")).split("\n")[:-1] == expected
    warm, start = await logs(shop, made)
    assert [one["hookName"] for one in warm][0::2] == ["global", "repository:deck"]
    assert warm[2]["output"] == "/workspace/deck\n"
    assert set(warm[0]) == {
        *("hookType", "hookName", "hookScript", "hookCommands", "output", "outputTruncated"),
        *("outputTotalChars", "exitCode", "timedOut", "executedAt", "durationMs"),
    }

    async def told() -> list[dict[str, Any]]:
        return (await shop.reach(made, "active"))["repository_statuses"]

    (status,) = await eventually(told, "the status of the repository")
    assert status["start_hooks_completed"] is True
    types = [one["type"] for one in await shop.events(made)]
    ready = types.index("engine.ready")
    assert max(n for n, type in enumerate(types) if type == "hooks.completed") < ready

    await shop.call("POST", f"/v1/workspaces/{made}/sleep")
    assert await logs(shop, made, "workspaces") == (warm, start)
    await shop.call("POST", f"/v1/workspaces/{made}/wake", status=202)
    await shop.reach(made, "active")
    assert (await shop.run(made, "cat ~/order")).split("\n")[:-1] == [*expected, *expected[3:]]
    again = await logs(shop, made)
    assert (len(again[0]), len(again[1])) == (3, 6)


@pytest.mark.long
async def test_a_failing_warm_hook_is_an_error_and_wake_tries_again(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.hook("global", "warm", "echo once >> ~/order")
    await shop.hook(environment, "warm", "echo no such tool; exit 4")
    made = await shop.begin(environment)
    replica = await shop.reach(made, "error")
    assert "ended with code 4" in replica["error"]
    assert "no such tool" in replica["error"]
    warm, _ = await logs(shop, made)
    assert [one["exitCode"] for one in warm] == [0, 4]
    assert len(await shop.events(made, "hooks.failed")) == 1
    await shop.hook(environment, "warm", "true")
    await shop.call("POST", f"/v1/workspaces/{made}/wake", status=202)
    await shop.reach(made, "active")
    assert await shop.run(made, "cat ~/order") == "once\n"
    assert [one["exitCode"] for one in (await logs(shop, made))[0]] == [0, 4, 0]


@pytest.mark.long
async def test_a_hook_is_stopped_at_the_environments_limit(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.add(environment, "variables", key="QD_HOOK_TIMEOUT_SECONDS", value="1")
    await shop.hook(environment, "start", "echo begun; sleep 600")
    made = await shop.begin(environment)
    replica = await shop.reach(made, "error")
    assert "timed out" in replica["error"]
    _, (log,) = await logs(shop, made)
    assert (log["timedOut"], log["exitCode"], log["output"]) == (True, None, "begun\n")


@pytest.mark.long
async def test_a_service_that_stops_in_a_hook_takes_it_up_again(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.hook(environment, "warm", "echo w >> ~/ran; until [ -e ~/go ]; do sleep 0.02; done")
    made = await shop.begin(environment)
    ran = shop.home.workspaces / made / "home/ran"

    async def begun() -> bool:
        return ran.exists()

    await eventually(begun, "the hook's begin")
    await shop.stop()
    (ran.parent / "go").touch()
    await shop.start()
    await shop.reach(made, "active")
    assert ran.read_text() == "w\n"
    assert len((await logs(shop, made))[0]) == 1


@pytest.mark.long
async def test_a_hook_that_failed_while_no_service_ran_has_its_log(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.hook(
        environment, "warm", "echo w >> ~/ran; until [ -e ~/go ]; do sleep 0.02; done; exit 4"
    )
    made = await shop.begin(environment)
    ran = shop.home.workspaces / made / "home/ran"

    async def begun() -> bool:
        return ran.exists()

    await eventually(begun, "the hook's begin")
    await shop.stop()
    (ran.parent / "go").touch()
    place = shop.home.workspaces / made

    async def failed() -> bool:
        journals = (content for path, content in files_under(place) if "journal" in path.name)
        return any(b"hooks.failed" in content for content in journals)

    await eventually(failed, "the hook's end")
    await shop.start()
    replica = await shop.reach(made, "error")
    assert "ended with code 4" in replica["error"]
    assert [one["exitCode"] for one in (await logs(shop, made))[0]] == [4]
    assert len(await shop.events(made, "hooks.failed")) == 1


@pytest.mark.long
async def test_an_engine_killed_in_a_hook_goes_on_with_that_hook(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.hook("global", "warm", "echo first >> ~/ran")
    await shop.hook(
        environment, "warm", "echo second >> ~/ran; until [ -e ~/go ]; do sleep 0.02; done"
    )
    made = await shop.begin(environment)
    ran = shop.home.workspaces / made / "home/ran"

    async def begun() -> bool:
        return ran.exists() and "second" in ran.read_text()

    await eventually(begun, "the second hook")
    record = json.loads((shop.home.workspaces / made / "sandbox.json").read_text())
    os.kill(record["engine"]["pid"], signal.SIGKILL)
    (ran.parent / "go").touch()
    await shop.reach(made, "active")
    assert ran.read_text().split() == ["first", "second", "second"]
    assert [one["exitCode"] for one in (await logs(shop, made))[0]] == [0, 0]


@pytest.mark.long
async def test_a_test_of_a_hook_runs_in_a_workspace_that_nobody_sees(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.hook("global", "warm", "echo global > ~/made")
    await shop.add(environment, "variables", key="WHO", value="me")
    base = f"/v1/environments/{environment}"
    body = {"content": "cat ~/made; echo $WHO; exit 3"}
    answer = await shop.call("POST", f"{base}/warm-hooks/test", body)
    assert answer == {"test": {"exit_code": 3, "output": "global\nme\n", "timed_out": False}}
    assert shop.workspaces() == []
    assert (await shop.call("GET", "/v1/replica"))["total"] == 0
    assert (await shop.call("GET", f"{base}/warm-hooks"))["warm_hook"] is None
    assert await shop.context.changes.newest() == 0  # nobody is told

    await shop.hook(environment, "warm", "echo warm > ~/warmed")
    body = {"content": "cat ~/made ~/warmed"}
    answer = await shop.call("POST", f"{base}/start-hooks/test", body)
    assert answer["test"]["output"] == "global\nwarm\n"
    assert shop.workspaces() == []


@pytest.mark.long
async def test_a_test_of_nothing_or_elsewhere_is_refused(shop: Shop) -> None:
    environment = await shop.environment()
    base = f"/v1/environments/{environment}"
    for path in (
        f"{kind}-hooks/test{how}" for kind in ("warm", "start") for how in ("", "/stream")
    ):
        answer = await shop.call("POST", f"{base}/{path}", {}, 400)
        assert answer["code"] == "INVALID_REQUEST"
    await shop.hook("global", "warm", "echo the global one fails; exit 5")
    answer = await shop.call("POST", f"{base}/warm-hooks/test", {"content": "true"}, 409)
    assert "the global one fails" in answer["details"]
    assert shop.workspaces() == []


@pytest.mark.long
async def test_save_and_test_puts_in_force_only_what_works(shop: Shop) -> None:
    environment = await shop.environment()
    base = f"/v1/environments/{environment}/warm-hooks"
    good = await shop.call("POST", f"{base}/save-test", {"content": "echo fine"}, 201)
    assert good["test"] == {"exit_code": 0, "output": "fine\n", "timed_out": False}
    assert (good["warm_hook"]["version"], good["warm_hook"]["is_active"]) == (1, True)
    bad = await shop.call("POST", f"{base}/save-test", {"content": "exit 1"}, 201)
    assert (bad["warm_hook"]["version"], bad["warm_hook"]["is_active"]) == (2, False)
    assert (await shop.call("GET", base))["warm_hook"]["version"] == 1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["warm", "start"])
async def test_a_streamed_test_tells_while_it_runs_and_ends_when_nobody_listens(
    shop: Shop, kind: str
) -> None:
    environment = await shop.environment()
    path = f"/v1/environments/{environment}/{kind}-hooks/test/stream"

    async def frames(response: httpx.Response) -> list[dict]:
        found: list[dict] = []
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                if found[-1]["type"] == "output" and "leave" in found[-1]["output"]:
                    break
        return found

    body = {"content": "echo hello; exit 2"}
    async with shop.client.stream("POST", path, json=body) as response:
        told = await frames(response)
    assert told[0]["type"] == "progress"
    assert {"type": "output", "output": "hello\n"} in told
    assert told[-1] == {
        "type": "complete",
        "exit_code": 2,
        "output": "hello\n",
        "timed_out": False,
    }
    async with shop.client.stream("POST", path, json={"content": "echo leave; sleep 600"}) as left:
        await frames(left)

    async def gone() -> bool:
        return not shop.workspaces()

    await eventually(gone, "the end of the workspace")


@pytest.mark.long
async def test_a_test_that_a_stopped_service_left_is_removed_at_the_next_start(shop: Shop) -> None:
    environment = await shop.environment()
    path = f"/v1/environments/{environment}/start-hooks/test/stream"
    async with shop.client.stream("POST", path, json={"content": "echo on; sleep 600"}) as response:
        async for line in response.aiter_lines():
            if '"output"' in line:
                break
        (left,) = shop.workspaces()
        shop.fleet.pools._delete = _never  # as if it were killed before it can tidy up
        await shop.stop()
    assert shop.workspaces() == [left]
    await shop.start()

    async def gone() -> bool:
        return not shop.workspaces()

    await eventually(gone, "the end of the workspace")


async def _never(*_: object) -> bool:
    return False
