"""A pull request for which a run is started by hand is one, however its repository is typed."""

import pytest

from tests.checks.desk import SHOP, Desk, pull_request

NAMES = ("shop", SHOP, "Shop", "Sea/Shop")


async def test_every_way_of_typing_it_means_one_pull_request(desk: Desk) -> None:
    automation = await desk.waiting()
    begun = [await desk.trigger(automation, repository=name) for name in NAMES]
    checks = [await desk.check_of(one) for one in begun]
    assert {one["repository"] for one in checks} == {SHOP}
    assert [one["status"] for one in checks] == [*["superseded"] * 3, "open"]
    assert f'"repository": "{SHOP}"' in await desk.prompt(begun[0])


async def test_it_is_one_where_no_host_is_set_up(desk: Desk) -> None:
    desk.use()
    automation = await desk.waiting()
    begun = [await desk.trigger(automation, repository=name) for name in NAMES]
    checks = [await desk.check_of(one) for one in begun]
    assert [one["status"] for one in checks] == [*["superseded"] * 3, "open"]


@pytest.mark.parametrize("name", ["sea/other", "hop", "other/shop"])
async def test_a_name_that_is_not_connected_is_refused(desk: Desk, name: str) -> None:
    automation = await desk.waiting()
    path = f"/v1/automations/{automation}/trigger"
    answer = await desk.world.client.post(path, json={"pr": pull_request(repository=name)})
    assert answer.status_code == 400
    told = answer.json()
    assert told["code"] == "INVALID_REQUEST" and told["details"] == "pr.repository"
    assert told["error"] == f"{name} is not connected. Connected: {SHOP}."
    assert await desk.runs(automation) == []


async def test_a_name_of_several_is_refused_unless_it_is_a_full_one(desk: Desk) -> None:
    await desk.connect(f"{desk.source_host.url}/lake/shop.git")
    automation = await desk.waiting()
    path = f"/v1/automations/{automation}/trigger"
    answer = await desk.world.client.post(path, json={"pr": pull_request(repository="shop")})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("shop may be any of lake/shop, sea/shop")
    begun = await desk.trigger(automation, repository="lake/shop")
    assert (await desk.check_of(begun))["repository"] == "lake/shop"
