"""The canvas with real engines: operation 14 and docs/interface.md 6."""

import base64
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest

from quarterdeck.service.replicas.rows import change_workspace
from tests.support.waiting import eventually
from tests.workspace_files.conftest import RealWorld

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 5 << 20


async def put(
    world: RealWorld, id: str, name: str, content: bytes, family: str = "workspaces"
) -> httpx.Response:
    return await world.client.post(
        f"/v1/{family}/{id}/canvas", files={"file": ("x", content)}, data={"filename": name}
    )


async def listed(world: RealWorld, id: str) -> dict[str, dict[str, Any]]:
    answer = await world.client.get(f"/v1/replica/{id}/canvas")
    assert answer.status_code == 200, answer.text
    return {one["filename"]: one for one in answer.json()["items"]}


async def test_an_active_workspace_is_written_to(world: RealWorld, active: str) -> None:
    answer = await put(world, active, "plan.md", b"# Plan\n")
    assert answer.status_code == 200
    assert answer.json() == {
        "filePath": "~/.quarterdeck/canvas/plan.md",
        "originalName": "plan.md",
        "sizeBytes": 7,
    }
    assert await world.exec(active, "cat ~/.quarterdeck/canvas/plan.md") == "# Plan\n"
    assert await listed(world, active) == {
        "plan.md": {"filename": "plan.md", "kind": "markdown", "sizeBytes": 7}
    }
    got = await world.client.get(f"/v1/workspaces/{active}/canvas/plan.md")
    assert got.json() == {
        "filename": "plan.md",
        "kind": "markdown",
        "sizeBytes": 7,
        "mimeType": "text/markdown",
        "content": "# Plan\n",
    }


async def test_what_the_agent_writes_is_listed_by_its_kind(world: RealWorld, active: str) -> None:
    names = {
        "a.md": "markdown",
        "b.HTML": "html",
        "c.png": "image",
        "d.mp4": "video",
        "e.mp3": "audio",
        "f.bin": "other",
        "g": "other",
        "deep/h.webp": "image",
    }
    quoted = " ".join(f"'{name}'" for name in names)
    await world.exec(
        active,
        f"mkdir -p ~/.quarterdeck/canvas/deep; cd ~/.quarterdeck/canvas; for f in {quoted}; do "
        'echo x > "$f"; done; ln -s /etc/passwd out.txt; mkfifo pipe; printf y > "$(printf "b\\377c")"',
    )
    found = await listed(world, active)
    odd = "b\\xffc"
    assert {name: one["kind"] for name, one in found.items()} == {**names, odd: "other"}
    base = f"/v1/replica/{active}/canvas"
    deep = await world.client.get(f"{base}/deep/h.webp")
    assert deep.json()["mimeType"] == "image/webp"
    got = await world.client.get(f"{base}/{quote(odd)}")
    assert got.json()["content"] == "y"
    for name in ("out.txt", "pipe", "deep", "nothing", "%2e%2e/canvas/a.md", ""):
        assert (await world.client.get(f"{base}/{name}")).status_code == 404, name
    assert (await world.client.get(f"{base}/%00")).status_code == 400


async def test_a_canvas_is_read_in_every_state_and_nothing_wakes(
    world: RealWorld, active: str
) -> None:
    await world.exec(
        active,
        "mkdir -p ~/.quarterdeck/canvas/deep; cd ~/.quarterdeck/canvas; echo plan > plan.md; "
        "printf '\\0' > deep/a.png; ln deep/a.png twice.png; truncate -s 6M large.bin; "
        'printf y > "$(printf "b\\377c")"; echo secret > ~/secret; ln -s ~/secret inside; '
        "ln -s /etc/passwd out.txt; ln -s /etc etc; ln -s .. above; mkfifo pipe",
    )
    base = f"/v1/replica/{active}/canvas"
    files = await listed(world, active)
    assert set(files) == {"plan.md", "deep/a.png", "twice.png", "large.bin", "b\\xffc"}
    items = {name: (await world.client.get(f"{base}/{quote(name)}")).json() for name in files}
    assert items["plan.md"]["content"] == "plan\n" and items["large.bin"]["tooLarge"] is True

    async def same(status: str) -> None:
        assert await listed(world, active) == files, status
        for name, item in items.items():
            assert (await world.client.get(f"{base}/{quote(name)}")).json() == item, (status, name)
        leading_out = (
            "inside",
            "out.txt",
            "etc/passwd",
            "above/uploads",
            "pipe",
            "deep",
            "nothing",
        )
        for name in (*leading_out, "%2e%2e/%2e%2e/secret"):
            assert (await world.client.get(f"{base}/{name}")).status_code == 404, (status, name)
        assert (await world.get(active))["status"] == status

    await world.sleep(active)
    await same("sleeping")
    assert (await world.post(active, "/archive")).status_code == 200
    await same("archived")
    assert not (world.home.workspaces / active).exists(), "it was unpacked"
    await world.context.database.write(lambda c: change_workspace(c, active, status="error"))
    await same("error")


@pytest.mark.long
async def test_a_canvas_that_is_a_link_is_not_followed(world: RealWorld, active: str) -> None:
    await world.exec(active, "mkdir -p ~/.quarterdeck; ln -s /etc ~/.quarterdeck/canvas")
    await world.sleep(active)
    assert await listed(world, active) == {}
    answer = await world.client.get(f"/v1/replica/{active}/canvas/passwd")
    assert answer.status_code == 404


@pytest.mark.long
async def test_a_damaged_archive_says_so(world: RealWorld, active: str) -> None:
    assert (await put(world, active, "plan.md", b"# Plan\n")).status_code == 200
    assert (await world.post(active, "/archive")).status_code == 200
    archive = world.home.archives / f"{active}.tar.gz"
    whole = archive.read_bytes()
    for harmed in (b"", b"no archive", whole[:100]):
        archive.write_bytes(harmed)
        for path in ("", "/plan.md"):
            answer = await world.client.get(f"/v1/replica/{active}/canvas{path}")
            assert answer.status_code == 500 and "damaged" in answer.json()["error"], answer.text
    archive.write_bytes(whole)
    assert list(await listed(world, active)) == ["plan.md"]


@pytest.mark.long
async def test_what_is_no_text_comes_as_base64(world: RealWorld, active: str) -> None:
    data = bytes(range(256))
    assert (await put(world, active, "x.png", data)).status_code == 200
    got = (await world.client.get(f"/v1/replica/{active}/canvas/x.png")).json()
    assert base64.b64decode(got["base64"]) == data
    assert "content" not in got and "tooLarge" not in got


async def test_a_taken_name_is_numbered(world: RealWorld, active: str) -> None:
    names = [
        (await put(world, active, "a/plan.v1.md", b"x")).json()["originalName"] for _ in range(3)
    ]
    assert names == ["a/plan.v1.md", "a/plan.v1-2.md", "a/plan.v1-3.md"]
    assert (await put(world, active, "a", b"y")).json()["originalName"] == "a-2"
    assert (await put(world, active, "a-2/b.md", b"z")).json()["originalName"] == "b.md"


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1, 9 << 20])
async def test_the_limit_of_an_item(world: RealWorld, active: str, size: int) -> None:
    fixed = await put(world, active, "big.bin", b"x" * size)
    body, type = _multipart(b"y" * size)

    async def chunks() -> AsyncIterator[bytes]:
        for first in range(0, len(body), 1 << 18):
            yield body[first : first + (1 << 18)]

    chunked = await world.client.post(
        f"/v1/replica/{active}/canvas", content=chunks(), headers={"Content-Type": type}
    )
    codes = [fixed.status_code, chunked.status_code]
    if size > LIMIT:
        assert codes == [413, 413]
        assert fixed.json()["code"] == chunked.json()["code"] == "PAYLOAD_TOO_LARGE"
        assert await listed(world, active) == {}
    else:
        assert codes == [200, 200]
        assert [one["sizeBytes"] for one in (await listed(world, active)).values()] == [size, size]


def _multipart(content: bytes) -> tuple[bytes, str]:
    files = {"file": ("x", content), "filename": (None, b"big.bin")}
    request = httpx.Request("POST", "http://test", files=files)
    return request.read(), request.headers["Content-Type"]


async def test_an_item_over_the_limit_is_listed_and_not_sent(world: RealWorld, active: str) -> None:
    await world.exec(
        active,
        "mkdir -p ~/.quarterdeck/canvas; cd ~/.quarterdeck/canvas; "
        f"head -c {LIMIT} /dev/zero > fits.bin; head -c {LIMIT + 1} /dev/zero > over.bin",
    )
    assert (await listed(world, active))["over.bin"]["sizeBytes"] == LIMIT + 1
    base = f"/v1/replica/{active}/canvas"
    over = (await world.client.get(f"{base}/over.bin")).json()
    assert over["tooLarge"] is True and "content" not in over and "base64" not in over
    fits = (await world.client.get(f"{base}/fits.bin")).json()
    assert len(base64.b64decode(fits["base64"])) == LIMIT


REFUSED = (
    "",
    " ",
    ".",
    "./",
    "/",
    "/a.md",
    "..",
    "../a",
    "a/../b",
    "a/..",
    "a\nb",
    "a\x7f",
    "dir/",
)
TAKEN = {
    "-rf": "-rf",
    "./a//b.md": "a/b.md",
    "a..b": "a..b",
    " é ✓.md": "é ✓.md",
    "x" * 255: "x" * 255,
    ".hidden": ".hidden",
}


async def test_names(world: RealWorld, active: str) -> None:
    for name in (*REFUSED, "x" * 256, "é" * 128):
        answer = await put(world, active, name, b"x")
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST"), name
    await world.sleep(active)
    for name, given in TAKEN.items():
        answer = await put(world, active, name, b"x")
        assert (answer.status_code, answer.json()["originalName"]) == (202, given), name


async def test_a_body_that_is_no_upload(world: RealWorld) -> None:
    made = await world.create(wait=False)
    path = f"/v1/replica/{made}/canvas"
    for sent in (
        {"json": {"filename": "a"}},
        {"data": {"filename": "a", "file": "text"}},
        {"files": {"file": ("x", b"x")}},
        {
            "content": b"--x\r\nbroken",
            "headers": {"Content-Type": "multipart/form-data; boundary=x"},
        },
        {"content": b"", "headers": {"Content-Type": "multipart/form-data"}},
    ):
        answer = await world.client.post(path, **sent)
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST"), sent


@pytest.mark.long
async def test_each_state(world: RealWorld, active: str) -> None:
    await world.sleep(active)
    for status in ("sleeping", "archived", "preparing"):
        await world.set_status(active, status)
        answer = await put(world, active, "plan.md", status.encode())
        assert answer.status_code == 202
        assert UUID(answer.json()["uploadId"])
        assert (await world.get(active))["status"] == status
        assert await listed(world, active) == {}, "what waits is not written yet"
    await world.set_status(active, "error")
    answer = await put(world, active, "plan.md", b"x")
    assert (answer.status_code, answer.json()["code"]) == (409, "WORKSPACE_ERROR_STATE")
    await world.set_status(active, "sleeping")
    assert (await put(world, active, "plan.md", b"x")).json()["originalName"] == "plan-4.md"


@pytest.mark.long
async def test_queued_uploads_are_written_when_it_starts(world: RealWorld, active: str) -> None:
    await put(world, active, "plan.md", b"first")
    await world.sleep(active)
    for content, given in ((b"second", "plan-2.md"), (b"third", "plan-3.md")):
        answer = await put(world, active, "plan.md", content)
        assert (answer.status_code, answer.json()["originalName"]) == (202, given)
    await world.wake(active)

    async def there() -> bool:
        return len(await listed(world, active)) == 3

    await eventually(there, "the queued uploads")
    said = await world.exec(
        active, "cd ~/.quarterdeck/canvas; for f in *; do echo $f $(cat $f); done"
    )
    assert set(said.split("\n")[:3]) == {"plan.md first", "plan-2.md second", "plan-3.md third"}


@pytest.mark.long
@pytest.mark.parametrize("rest", ["sleep", "archive"])
async def test_an_upload_that_waits_is_told_a_name_that_no_file_has(
    world: RealWorld, active: str, rest: str
) -> None:
    for name in ("taken.md", "deep/taken.md"):
        assert (await put(world, active, name, b"first")).status_code == 200
    answer = await world.client.post(f"/v1/workspaces/{active}/{rest}")
    assert answer.status_code == 200, answer.text
    await world.reach(active, {"sleep": "sleeping", "archive": "archived"}[rest])
    told = [(await put(world, active, name, b"x")).json() for name in ("taken.md", "deep/taken.md")]
    assert [one["originalName"] for one in told] == ["taken-2.md", "deep/taken-2.md"]
    assert told[0]["filePath"] == "~/.quarterdeck/canvas/taken-2.md"
    await world.wake(active)

    async def there() -> bool:
        return len(await listed(world, active)) == 4

    await eventually(there, "the queued uploads")
    assert {one["originalName"] for one in told} <= (await listed(world, active)).keys()


@pytest.mark.long
async def test_a_message_comes_after_the_uploads_it_names(world: RealWorld, active: str) -> None:
    await world.sleep(active)
    upload = (await put(world, active, "data.txt", b"42")).json()["uploadId"]
    unknown = await world.post(
        active, "/messages", {"message": "x", "canvasUploadIds": [upload, "no-upload"]}
    )
    assert unknown.status_code == 400
    assert (await world.get(active))["status"] == "sleeping"
    text = "```sh\ncat ~/.quarterdeck/canvas/data.txt > ~/seen\n```"
    sent = await world.send(active, text, canvasUploadIds=[upload])
    assert sent["status"] == "waking"
    (end,) = await world.done(active, sent["message_id"])
    assert end["isComplete"] is True
    assert await world.exec(active, "cat ~/seen") == "42"
