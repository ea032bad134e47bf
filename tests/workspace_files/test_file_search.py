"""Searching files with real engines and repositories: each rule of operation 13."""

import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import delete

from quarterdeck.service.db.tables import file_indexes
from quarterdeck.wire.base import utc_now
from tests.support.git import git
from tests.support.waiting import eventually
from tests.workspace_files.conftest import RealWorld, clear, make_repository, usable

pytestmark = pytest.mark.asyncio(loop_scope="module")

COMMITTED = ["README.md", "docs/guide.md", "src/app/panel.py", "src/main.py"]


async def search(world: RealWorld, id: str, **query: Any) -> dict[str, Any]:
    answer = await world.client.get(f"/v1/workspaces/{id}/repo-files/search", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def paths(page: dict[str, Any]) -> list[str]:
    return [one["path"] for one in page["files"]]


def later(world: RealWorld, **by: float) -> None:
    """Moves the service's clock until the end of the test."""
    world.renew = True
    before = world.context.clock
    world.context.clock = lambda: before() + timedelta(**by)


@pytest.fixture(scope="module")
def _repository(_world: RealWorld) -> Path:
    return make_repository(_world.home.root / "source" / "deck")


@pytest_asyncio.fixture(loop_scope="module")
async def made(world: RealWorld, _repository: Path) -> str:
    """An active replica of the module whose repository is as it was cloned, and not indexed yet."""
    if not await usable(world, world.shared):
        await clear(world)
        world.shared = await world.create(environment_id=await world.connect(_repository))
    await world.exec(world.shared, "rm -f secret; cd deck; git reset -q --hard; git clean -qffdx")
    id = world.shared
    await world.context.database.write(
        lambda c: c.execute(delete(file_indexes).where(file_indexes.c.workspace_id == id))
    )
    return id


@pytest_asyncio.fixture(loop_scope="module")
async def own(world: RealWorld, repository: Path) -> str:
    """A replica of the test's own, of a repository of its own."""
    return await world.create(environment_id=await world.connect(repository))


async def test_the_shape_of_a_page(world: RealWorld, made: str) -> None:
    page = await search(world, made, q="panel")
    assert page.keys() == {"files", "nextCursor", "indexedAt", "stale", "refreshing", "truncated"}
    (file,) = page["files"]
    assert file == {
        "repoName": "deck",
        "path": "src/app/panel.py",
        "displayPath": "deck/src/app/panel.py",
        "status": "unchanged",
        "score": file["score"],
        "indexedAt": page["indexedAt"],
        "stale": False,
    }
    assert isinstance(file["score"], float | int) and file["score"] > 0
    assert (page["nextCursor"], page["stale"], page["truncated"]) == (None, False, False)
    other = await world.client.get(f"/v1/replica/{made}/repo-files/search?q=panel")
    assert other.json()["files"][0]["path"] == "src/app/panel.py"


async def test_statuses(world: RealWorld, made: str) -> None:
    await world.exec(
        made,
        "cd deck; echo x >> README.md; rm docs/guide.md; touch 'new file.txt'; echo ignored > .gitignore;"
        " touch ignored; git init -q inner; touch inner/deep; git mv src/main.py src/moved.py",
    )
    page = await search(world, made, refresh="true")
    assert {one["path"]: one["status"] for one in page["files"]} == {
        ".gitignore": "untracked",
        "README.md": "changed",
        "new file.txt": "untracked",
        "src/app/panel.py": "unchanged",
        "src/moved.py": "changed",
    }


async def test_an_empty_query_lists_all_and_a_prefix_narrows(world: RealWorld, made: str) -> None:
    assert paths(await search(world, made)) == COMMITTED
    assert paths(await search(world, made, q="  ")) == COMMITTED
    assert paths(await search(world, made, prefix="src/")) == ["src/app/panel.py", "src/main.py"]
    assert paths(await search(world, made, prefix="src/", q="main")) == ["src/main.py"]
    assert paths(await search(world, made, prefix="rc/")) == []
    assert paths(await search(world, made, q="nothing at all")) == []


@pytest.mark.long
async def test_the_limit_is_clamped(world: RealWorld, made: str) -> None:
    await world.exec(made, "cd deck; for n in $(seq 5200); do echo > f$n; done")
    await search(world, made, refresh="true")
    for asked, given in ((-5, 1), (0, 1), (1, 1), (2, 2), (4999, 4999), (5000, 5000), (5001, 5000), (10**30, 5000)):  # fmt: skip
        assert len((await search(world, made, limit=asked))["files"]) == given, asked
    assert len((await search(world, made))["files"]) == 100
    path = f"/v1/workspaces/{made}/repo-files/search"
    for bad in ("limit=x", "limit=1.5", "limit=", "refresh=maybe", f"q={'x' * 1001}", "cursor=x"):
        answer = await world.client.get(f"{path}?{bad}")
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST"), bad


async def test_pages_follow_one_another(world: RealWorld, made: str) -> None:
    await world.exec(made, "cd deck; mkdir d; for n in $(seq 2500); do echo > d/file$n.txt; done")
    for q in ("", "file"):
        whole = await search(world, made, q=q, limit=5000, refresh="true")
        found: list[str] = []
        page = await search(world, made, q=q, limit=700)
        while True:
            assert page["indexedAt"] == whole["indexedAt"]
            found += paths(page)
            if page["nextCursor"] is None:
                break
            page = await search(world, made, q=q, limit=700, cursor=page["nextCursor"])
        assert found == paths(whole) and len(found) >= 2500
        scores = [one["score"] for one in whole["files"]]
        assert scores == sorted(scores, reverse=True)


async def test_a_cursor_belongs_to_its_search(world: RealWorld, made: str) -> None:
    cursor = (await search(world, made, q="m", prefix="", limit=1))["nextCursor"]
    assert cursor
    path = f"/v1/workspaces/{made}/repo-files/search"
    good = {"q": "m", "limit": 1, "cursor": cursor}
    assert (await world.client.get(path, params=good)).status_code == 200
    for change in (
        {"q": "ma"},
        {"prefix": "src"},
        {"limit": 2},
        {"cursor": cursor[:-3]},
        {"cursor": "é"},
    ):
        answer = await world.client.get(path, params=good | change)
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST"), change
    other = await world.create(wait=False)
    answer = await world.client.get(path.replace(made, other), params=good)
    assert answer.status_code == 400


async def test_a_cursor_survives_nothing_changing(world: RealWorld, made: str) -> None:
    first = await search(world, made, limit=2)
    later(world, seconds=31)
    again = await search(world, made, limit=2, refresh="true")
    assert again["indexedAt"] == first["indexedAt"] and again["stale"] is False
    second = await search(world, made, limit=2, cursor=first["nextCursor"])
    assert paths(first) + paths(second) == COMMITTED
    assert second["indexedAt"] == first["indexedAt"]


async def test_a_changed_index_is_told_between_pages(world: RealWorld, made: str) -> None:
    first = await search(world, made, limit=2)
    await world.exec(made, "cd deck; echo > AAA")
    fresh = await search(world, made, limit=2, refresh="true")
    assert fresh["indexedAt"] > first["indexedAt"] and paths(fresh) == ["AAA", "README.md"]
    second = await search(world, made, limit=2, cursor=first["nextCursor"])
    assert second["indexedAt"] == fresh["indexedAt"]
    await world.exec(made, "cd deck; rm -r src docs README.md AAA")
    await search(world, made, refresh="true")
    beyond = await search(world, made, limit=2, cursor=first["nextCursor"])
    assert (beyond["files"], beyond["nextCursor"]) == ([], None)


async def test_thirty_seconds_then_the_background(world: RealWorld, made: str) -> None:
    first = await search(world, made)
    await world.exec(made, "cd deck; echo > AAA")
    later(world, seconds=29)
    cached = await search(world, made)
    assert (cached["stale"], cached["refreshing"], paths(cached)) == (False, False, COMMITTED)
    later(world, seconds=2)
    old = await search(world, made)
    assert (old["stale"], old["refreshing"], paths(old)) == (True, True, COMMITTED)
    assert old["indexedAt"] == first["indexedAt"]

    async def refreshed() -> bool:
        page = await search(world, made)
        return not page["refreshing"] and page["files"][0]["path"] == "AAA" and not page["stale"]

    await eventually(refreshed, "the refresh")


async def test_a_failed_refresh_keeps_the_last_index(world: RealWorld, made: str) -> None:
    await search(world, made)
    later(world, seconds=31)
    real = world.fleet.of(made).call

    async def broken(*words: Any, **more: Any) -> Any:
        from quarterdeck.service.fleet.runtime import unreachable

        raise unreachable("The engine is gone.")

    world.fleet.of(made).call = broken  # type: ignore[method-assign]
    page = await search(world, made, refresh="true")
    assert (page["stale"], page["refreshing"], paths(page)) == (True, False, COMMITTED)
    world.fleet.of(made).call = real  # type: ignore[method-assign]
    assert (await search(world, made, refresh="true"))["stale"] is False


async def test_an_engine_that_knows_no_files(world: RealWorld, made: str) -> None:
    async def older(*words: Any, **more: Any) -> Any:
        from quarterdeck.service.errors import ApiError
        from quarterdeck.wire.errors import ErrorCode

        raise ApiError(ErrorCode.NOT_FOUND, "The engine has no method 'files.index'.")

    world.renew = True
    world.fleet.of(made).call = older  # type: ignore[method-assign]
    page = await search(world, made)
    assert (page["unsupported"], page["stale"], paths(page)) == (True, True, COMMITTED)


async def test_inactive_ones_are_served_and_not_woken(world: RealWorld, made: str) -> None:
    await world.exec(made, "cd deck; echo > only-here")
    indexed = await search(world, made)
    await world.sleep(made)
    now = world.context.clock
    for status in ("sleeping", "archived", "preparing", "error"):
        world.context.clock = now
        await world.set_status(made, status)
        answer = await read(world, made, "README.md")
        assert (answer.status_code, answer.json()["code"]) == (409, "WORKSPACE_NOT_ACTIVE")
        later(world, seconds=31)
        states = await world.states(made)
        for query in ({}, {"refresh": "true"}):
            page = await search(world, made, **query)
            assert "only-here" in paths(page)
            assert (page["stale"], page["refreshing"]) == (True, False)
            assert page["indexedAt"] == indexed["indexedAt"]
        later(world, days=6, hours=23)
        assert (await search(world, made))["indexedAt"] == indexed["indexedAt"]
        later(world, hours=2)  # seven days are over
        page = await search(world, made)
        assert paths(page) == COMMITTED and page["stale"] is True
        assert await world.states(made) == states
        assert (await world.get(made))["status"] == status
        assert not await world.driver.alive(made)


@pytest.mark.long
async def test_the_fallback_is_five_minutes_old_at_most(
    world: RealWorld, own: str, repository: Path
) -> None:
    await world.sleep(own)
    first = await search(world, own)
    assert (paths(first), first["stale"], first["refreshing"]) == (COMMITTED, True, False)
    (repository / "AAA").write_text("a")
    git(repository, "add", "AAA")
    git(repository, "commit", "-qm", "more")
    later(world, minutes=4.9)
    assert (await search(world, own))["indexedAt"] == first["indexedAt"]
    later(world, minutes=0.2)
    second = await search(world, own)
    assert second["indexedAt"] > first["indexedAt"] and "AAA" in paths(second)


@pytest.mark.long
async def test_a_repository_that_is_not_there_leaves_the_rest(
    world: RealWorld, own: str, repository: Path
) -> None:
    await world.exec(own, "rm -rf deck/.git")
    assert (await search(world, own))["truncated"] is True
    await world.sleep(own)
    later(world, days=8)
    (repository_id,) = {
        one["id"]
        for one in (await world.client.get("/v1/replica/repositories")).json()["repositories"]
        if one["url"] == str(repository)
    }
    shutil.rmtree(world.home.mirrors / repository_id)
    page = await search(world, own)
    assert (page["truncated"], page["files"], page["stale"]) == (True, [], True)


@pytest.mark.long
async def test_a_workspace_without_repositories(world: RealWorld) -> None:
    made = await world.create()
    page = await search(world, made)
    assert (page["files"], page["truncated"], page["stale"]) == ([], False, False)


@pytest.mark.long
async def test_several_repositories(world: RealWorld, made: str) -> None:
    from quarterdeck.service.formats import moment_text
    from quarterdeck.service.replicas.file_indexes import IndexOrigin, SavedIndex, pack, save_index

    now = moment_text(utc_now())
    packed = pack([("web", ["index.ts", "api/main.ts"], "uc"), ("api", ["main.py"], "n")])
    index = SavedIndex(made, IndexOrigin.ENGINE, True, now)
    await world.context.database.write(lambda c: save_index(c, index, packed))
    page = await search(world, made)
    assert [(one["repoName"], one["path"], one["status"]) for one in page["files"]] == [
        ("api", "main.py", "untracked"),
        ("web", "api/main.ts", "changed"),
        ("web", "index.ts", "unchanged"),
    ]
    assert page["truncated"] is True
    found = await search(world, made, q="api/main")
    assert [one["displayPath"] for one in found["files"]] == ["api/main.py", "web/api/main.ts"]


NAMES = [
    b"with space.txt",
    b"new\nline.txt",
    b"tab\there",
    b"-rf",
    b"--help",
    b"\xff\xfe.bin",
    b"caf\xe9.txt",
    "ünï✓.txt".encode(),
    b"quote'\"`$(x).txt",
    b"back\\slash",
    b"back\\xff",
    b"*?[a]",
    b".hidden",
    b"a:b",
    b"%2e%2e",
    b"x" * 200,
]


def _write_names(directory: Path) -> None:
    for name in NAMES:
        (directory / os.fsdecode(name)).write_bytes(name)


@pytest.mark.long
async def test_names_of_every_kind(world: RealWorld, repository: Path) -> None:
    _write_names(repository)
    git(repository, "add", "--all", ".")
    git(repository, "commit", "-qm", "names")
    made = await world.create(environment_id=await world.connect(repository))
    page = await search(world, made, limit=5000)
    shown = {name.decode(errors="backslashreplace") for name in NAMES}
    assert set(paths(page)) == shown | set(COMMITTED)
    for name in NAMES:
        text = name.decode(errors="backslashreplace")
        answer = await read(world, made, text)
        assert answer.status_code == 200, text
        got = answer.json()
        assert got.get("content", "").encode() == name or got["base64"], text
        assert text in paths(await search(world, made, q=text[:60])) or "\n" in text or "\t" in text
    await world.sleep(made)
    later(world, days=8)
    assert set(paths(await search(world, made, limit=5000))) == shown | set(COMMITTED)


# Content


async def read(world: RealWorld, id: str, path: str, repo: str = "deck") -> httpx.Response:
    return await world.client.get(
        f"/v1/workspaces/{id}/repo-files/content", params={"repoName": repo, "path": path}
    )


async def test_content(world: RealWorld, made: str) -> None:
    got = await read(world, made, "src/main.py")
    assert got.json() == {"content": "src/main.py\n", "sizeBytes": 12, "truncated": False}
    await world.exec(made, "cd deck; printf 'a\\0b' > bin; ln -s src/main.py inside; : > empty")
    assert (await read(world, made, "bin")).json()["base64"] == "YQBi"
    assert (await read(world, made, "inside")).json()["content"] == "src/main.py\n"
    assert (await read(world, made, "empty")).json()["content"] == ""


async def test_the_cap_of_content(world: RealWorld, made: str) -> None:
    cap = 1 << 20
    await world.exec(
        made,
        f"cd deck; for n in {cap - 1} {cap} {cap + 1}; do head -c $n /dev/zero | tr '\\0' x > f$n; done;"
        f" (head -c {cap - 1} /dev/zero | tr '\\0' x; printf 'é') > split",
    )
    for size, cut in ((cap - 1, False), (cap, False), (cap + 1, True)):
        got = (await read(world, made, f"f{size}")).json()
        assert (got["sizeBytes"], got["truncated"], len(got["content"])) == (
            size,
            cut,
            min(size, cap),
        )
    split = (await read(world, made, "split")).json()
    assert (split["truncated"], len(split["content"])) == (True, cap - 1)


async def test_nothing_outside_the_repository_is_read(world: RealWorld, made: str) -> None:
    await world.exec(
        made,
        "echo s > secret; cd deck; ln -s ../secret up; ln -s /etc/passwd abs; ln -s .. dir; mkfifo pipe;"
        " ln -s loop loop; ln -s . self; ln -s .git other",
    )
    for path in (
        "",
        "/etc/passwd",
        "../secret",
        "src/../../secret",
        "..",
        "a/../README.md",
        "a\0b",
    ):
        answer = await read(world, made, path)
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST"), path
    for path in ("up", "abs", "dir/secret", "pipe", "loop", "src", "self", "nothing", ".git/config", "self/.git/HEAD", "other/HEAD", "README.md/x"):  # fmt: skip
        answer = await read(world, made, path)
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), path
    assert (await read(world, made, "README.md", repo="other")).status_code == 404
    assert (await read(world, made, "README.md", repo="../deck")).status_code == 404
    missing = await world.client.get(f"/v1/workspaces/{made}/repo-files/content?path=x")
    assert missing.status_code == 400
