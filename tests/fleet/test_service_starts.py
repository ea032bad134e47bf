"""Where a replica begins: what may be asked for, and how long uploads are kept."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import func, select

from quarterdeck.sandboxes.errors import CloneError
from quarterdeck.sandboxes.port import StartPoint, UncommittedCommit
from quarterdeck.service.db.tables import uncommitted_changes
from quarterdeck.wire.replicas import UNCOMMITTED_LIMIT
from tests.fleet.conftest import Time, World
from tests.support.waiting import eventually

BASE, COMMIT = "a" * 40, "b" * 40
PACK = b"PACK" + bytes(range(256))
BUNDLE = f"# v2 git bundle\n-{BASE} \n{COMMIT} refs/heads/uncommitted\n\n".encode() + PACK


async def bound(world: World) -> tuple[str, str]:
    """An environment with a repository, and the repository's id."""
    body = {"url": f"https://host/{uuid4().hex[:8]}.git"}
    made = (await world.client.post("/v1/replica/repositories", json=body)).json()
    repository = made["repository"]["id"]
    body = {"name": f"of {repository[:8]}", "repository_id": repository}
    made = (await world.client.post("/v1/environments", json=body)).json()
    return made["environment"]["id"], repository


async def upload(world: World, bundle: bytes = BUNDLE) -> httpx.Response:
    return await world.client.post("/v1/replica/uncommitted", content=bundle)


async def uploaded(world: World) -> str:
    answer = await upload(world)
    assert answer.status_code == 201, answer.text
    assert answer.json()["uncommitted"]["base"] == BASE
    assert answer.json()["uncommitted"]["size_bytes"] == len(BUNDLE)
    return answer.json()["uncommitted"]["id"]


async def kept(world: World) -> int:
    statement = select(func.count()).select_from(uncommitted_changes)
    return await world.context.database.read(lambda c: c.execute(statement).scalar_one())


async def refused(world: World, environment: str, **config: Any) -> dict[str, Any]:
    body = {"name": "fine", "environment_id": environment, "config": config}
    answer = await world.client.post("/v1/replica", json=body)
    assert answer.status_code == 400, answer.text
    assert (await world.client.get("/v1/replica")).json()["total"] == 0
    return answer.json()


@pytest.mark.one_database
async def test_a_base_is_where_the_repository_begins(world: World) -> None:
    environment, repository = await bound(world)
    made = await world.create(environment_id=environment, config={"base": "feature"})
    [source] = world.driver.provisioned[made]
    assert source.start == StartPoint(("refs/heads/feature",), branch="feature")
    made = await world.create(environment_id=environment, config={"base": "main"})
    [source] = world.driver.provisioned[made]
    assert source.start is None
    config = {"pull_request": 7, "repository": repository}
    made = await world.create(environment_id=environment, config=config)
    [source] = world.driver.provisioned[made]
    assert source.start == StartPoint(("refs/pull/7/head", "refs/merge-requests/7/head"))
    answer = await world.client.get(f"/v1/replica/repositories/{repository}/branches")
    assert answer.json() == {"branches": ["main", "feature"], "default_branch": "main"}
    answer = await world.client.get(f"/v1/replica/repositories/{uuid4()}/branches")
    assert answer.status_code == 404


@pytest.mark.one_database
async def test_what_cannot_be_is_refused_by_its_field(world: World) -> None:
    environment, _ = await bound(world)
    error = await refused(world, environment, base="nothing")
    assert "has no branch, tag or commit nothing" in error["error"]
    assert error["details"] == "config.base"
    error = await refused(world, environment, pull_request=8)
    assert error["details"] == "config.pull_request"
    assert "refs/pull/8/head" in error["error"]
    error = await refused(world, environment, pull_request=7, base="feature")
    assert error["details"].startswith("config.pull_request")
    error = await refused(world, environment, uncommitted=str(uuid4()))
    assert error["details"].startswith("config.uncommitted")
    error = await refused(world, environment, base="feature", repository=str(uuid4()))
    assert error["details"].startswith("config.repository")
    error = await refused(world, world.environment, base="feature")
    assert error["details"].startswith("config.repository")
    for wrong in ("", " ", "x" * 256, "two\nlines", 5):
        error = await refused(world, environment, base=wrong)
        assert error["details"].startswith("config.base"), error
    upload_id = await uploaded(world)
    error = await refused(world, environment, base="main2", uncommitted=upload_id)
    assert error["details"] == "config.base"
    assert await kept(world) == 1


@pytest.mark.one_database
async def test_an_upload_is_a_small_bundle_of_one_commit(world: World) -> None:
    header = BUNDLE.removesuffix(PACK)
    for wrong in (
        b"",
        PACK,
        header,
        BUNDLE.replace(b"v2", b"v3"),
        BUNDLE.replace(b"-", b"", 1),
        BUNDLE.replace(b"-", b"-" + b"c" * 40 + b"\n-", 1),
        header.replace(b"\n\n", b"\n" + b"c" * 40 + b" refs/heads/b\n\n") + PACK,
        BUNDLE.replace(COMMIT.encode(), b"--upload-pack=x"),
        b"# v2 git bundle\n" + b"-" * 5000 + BUNDLE,
    ):
        answer = await upload(world, wrong)
        assert answer.status_code == 400, wrong[:100]
        assert answer.json()["details"].startswith("body")
    answer = await upload(world, BUNDLE + bytes(UNCOMMITTED_LIMIT))
    assert (answer.status_code, answer.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
    large = BUNDLE + bytes(UNCOMMITTED_LIMIT - len(BUNDLE))
    assert (await upload(world, large)).status_code == 201


async def test_an_upload_is_used_once_and_removed(world: World) -> None:
    environment, repository = await bound(world)
    upload_id = await uploaded(world)
    world.driver.gate = asyncio.Event()
    config = {"base": "feature", "uncommitted": upload_id}
    made = await world.create(wait=False, environment_id=environment, config=config)
    assert await kept(world) == 1
    body = {"name": "again", "environment_id": environment, "config": config}
    answer = await world.client.post("/v1/replica", json=body)
    assert answer.status_code == 400
    assert answer.json()["details"].startswith("config.uncommitted")
    world.driver.gate.set()
    await world.reach(made, "active")
    [source] = world.driver.provisioned[made]
    assert source.start == StartPoint(("refs/heads/feature",), BASE, branch="feature")
    assert world.driver.uncommitted[made] == {repository: UncommittedCommit(COMMIT, PACK)}
    assert await kept(world) == 0


@pytest.mark.long
async def test_an_upload_is_kept_for_another_try_and_goes_with_the_replica(world: World) -> None:
    environment, repository = await bound(world)
    world.driver.provision_error = CloneError("It could not be cloned.")
    config = {"uncommitted": await uploaded(world)}
    made = await world.create(wait=False, environment_id=environment, config=config)
    await world.reach(made, "error")
    assert await kept(world) == 1
    world.driver.provision_error = None
    assert (await world.post(made, "/wake")).status_code == 202
    await world.reach(made, "active")
    assert world.driver.uncommitted[made] == {repository: UncommittedCommit(COMMIT, PACK)}
    assert await kept(world) == 0
    world.driver.provision_error = CloneError("It could not be cloned.")
    config = {"uncommitted": await uploaded(world)}
    made = await world.create(wait=False, environment_id=environment, config=config)
    await world.reach(made, "error")
    await world.client.delete(f"/v1/replica/{made}")

    async def removed() -> bool:
        return await kept(world) == 0

    await eventually(removed, "the removal of the upload")


async def test_the_newest_uploads_are_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quarterdeck.service.replicas.rows.UPLOADS_MOST", 2)
    await world.create()
    environment, repository = await bound(world)
    time = Time(world)
    uploads: list[str] = []
    for _ in range(3):
        uploads.append(await uploaded(world))
        time.move(minutes=1)
    assert await kept(world) == 2
    body = {"name": "fine", "environment_id": environment}
    config = {"repository": repository, "uncommitted": uploads[0]}
    answer = await world.client.post("/v1/replica", json={**body, "config": config})
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
    config["uncommitted"] = uploads[2]
    answer = await world.client.post("/v1/replica", json={**body, "config": config})
    assert answer.status_code == 201, answer.text


async def test_an_upload_that_is_not_used_is_removed_after_an_hour(world: World) -> None:
    await world.create()
    time = Time(world)
    upload_id = await uploaded(world)
    time.move(minutes=59)
    await world.fleet.upkeep.round()
    assert await kept(world) == 1
    time.move(minutes=2)
    await world.fleet.upkeep.round()
    assert await kept(world) == 0
    environment, _ = await bound(world)
    body = {"name": "fine", "environment_id": environment, "config": {"uncommitted": upload_id}}
    error = (await world.client.post("/v1/replica", json=body)).json()
    assert "Upload them again" in error["error"]
