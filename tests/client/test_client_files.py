"""Canvas, files and previews: what the client asks for and how it reads the answers."""

import json
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.client import Client
from quarterdeck.client.errors import NotFoundError, PayloadTooLargeError

R = uuid4()
W = f"/v1/workspaces/{R}"
NOW = "2026-11-21T10:00:00.000Z"
PREVIEW = {"port": 80, "publicUrl": "http://127.0.0.1:1/x/", "createdAt": NOW}
PAGE = {"files": [], "nextCursor": None, "indexedAt": NOW, "stale": True, "refreshing": False, "truncated": False}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "method", "target", "answer"),
    [
        (lambda c: c.canvas.list(R), "GET", f"{W}/canvas", {"items": []}),
        (
            lambda c: c.canvas.get(R, "a/b ?.md"),
            "GET",
            f"{W}/canvas/a/b%20%3F.md",
            {"filename": "b", "kind": "new-kind", "sizeBytes": 1, "mimeType": "x/y", "novel": 1},
        ),
        (lambda c: c.files.search(R), "GET", f"{W}/repo-files/search?q=&prefix=&limit=100", PAGE),
        (
            lambda c: c.files.search(R, "a b", prefix="src/", limit=5, cursor="xyz"),
            "GET",
            f"{W}/repo-files/search?q=a+b&prefix=src%2F&limit=5&cursor=xyz",
            PAGE,
        ),
        (
            lambda c: c.files.search(R, refresh=True),
            "GET",
            f"{W}/repo-files/search?q=&prefix=&limit=100&refresh=true",
            PAGE,
        ),
        (
            lambda c: c.files.content(R, "deck", "-rf &"),
            "GET",
            f"{W}/repo-files/content?repoName=deck&path=-rf+%26",
            {"content": "", "sizeBytes": 0, "truncated": False},
        ),
        (lambda c: c.previews.list(R), "GET", f"{W}/previews", {"previews": [PREVIEW]}),
        (lambda c: c.previews.close(R, 80), "DELETE", f"{W}/previews/80", {"success": True, "port": 80}),
        (lambda c: c.previews.open_own(80), "POST", "/v1/previews", {"preview": PREVIEW}),
        (lambda c: c.previews.close_own(80), "DELETE", "/v1/previews/80", {"success": True, "port": 80}),
    ],
    ids=range(10),
)  # fmt: skip
async def test_calls(
    tiny_server: Any, connect: Any, call: Any, method: str, target: str, answer: Any
) -> None:
    async def script(_: Any, reply: Any) -> None:
        await reply.json(answer)

    async with tiny_server(script) as server, Client(connect(server)) as client:
        await call(client)
        (seen,) = server.seen
        assert (seen.method, seen.target.replace("%20", "+") if "?" in target else seen.target) == (
            method,
            target,
        )


async def test_an_upload_is_a_form_and_sent_once(tiny_server: Any, connect: Any) -> None:
    async def script(seen: Any, reply: Any) -> None:
        if len(server.seen) == 1:
            answer = {"filePath": "p", "originalName": "é.md", "sizeBytes": 2, "uploadId": "u"}
            await reply.json(answer, 202)
        else:
            await reply.json({"error": "Too large.", "code": "PAYLOAD_TOO_LARGE"}, 413)

    async with tiny_server(script) as server, Client(connect(server)) as client:
        done = await client.canvas.upload(R, "é.md", b"\0\xff")
        assert (done.upload_id, done.original_name) == ("u", "é.md")
        with pytest.raises(PayloadTooLargeError):
            await client.canvas.upload(R, "big", b"x")
        first, _ = server.seen
        assert first.headers["content-type"].startswith("multipart/form-data; boundary=")
        assert b'name="filename"\r\n' in first.body and "é.md".encode() in first.body
        assert b'name="file"; filename=' in first.body and b"\r\n\r\n\0\xff\r\n" in first.body


async def test_all_pages_of_a_search(tiny_server: Any, connect: Any) -> None:
    def file(path: str) -> dict[str, Any]:
        return {"repoName": "d", "path": path, "displayPath": path, "status": "novel", "score": 1, "indexedAt": NOW, "stale": True}  # fmt: skip

    async def script(seen: Any, reply: Any) -> None:
        more = "cursor=" not in seen.target
        files = [file("a"), file("b")] if more else [file("c")]
        await reply.json(PAGE | {"files": files, "nextCursor": "next" if more else None})

    async with tiny_server(script) as server, Client(connect(server)) as client:
        assert [one.path for one in await client.files.all(R, "x")] == ["a", "b", "c"]
        assert "cursor=next" in server.seen[1].target


async def test_another_index_between_pages_begins_the_search_anew(
    tiny_server: Any, connect: Any
) -> None:
    later = "2026-11-21T12:00:31Z"
    pages = [(NOW, "old", "1"), (later, "new b", None), (later, "new a", "2"), (later, "new b", None)]  # fmt: skip

    async def script(seen: Any, reply: Any) -> None:
        at, path, following = pages[len(server.seen) - 1]
        file = {"repoName": "d", "path": path, "displayPath": path, "status": "changed", "score": 1, "indexedAt": at, "stale": True}  # fmt: skip
        await reply.json(PAGE | {"files": [file], "indexedAt": at, "nextCursor": following})

    async with tiny_server(script) as server, Client(connect(server)) as client:
        assert [one.path for one in await client.files.all(R, "x")] == ["new a", "new b"]
        asked = [one.target for one in server.seen]
        assert ["cursor=" in one for one in asked] == [False, True, False, True]
        assert not any("refresh" in one for one in asked)


async def test_a_refusal_is_raised(tiny_server: Any, connect: Any) -> None:
    async def script(_: Any, reply: Any) -> None:
        await reply.json(json.loads('{"error": "Gone.", "code": "NOT_FOUND"}'), 404)

    async with tiny_server(script) as server, Client(connect(server)) as client:
        with pytest.raises(NotFoundError):
            await client.files.content(R, "deck", "x")
