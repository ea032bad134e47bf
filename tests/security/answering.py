"""A server that answers every route of the service with its shape, filled with texts of a test.

A stream has each kind of event, and of agents' events in it, once. Where it is asked for what follows the
last one, it is not found, so that a command which follows it ends.
"""

import asyncio
import base64
import json
import re
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from uuid import UUID

import httpx

from quarterdeck.local.home import Home
from quarterdeck.service.app import build_app
from quarterdeck.service.db.database import sqlite_url
from quarterdeck.service.start import build_service, open_service
from tests.service.conftest import Mirrors

Object = dict[str, Any]
KNOWN = str(UUID(int=7))
"""Every id of an answer."""
FIRST_EVENT = 2
"""Index of the first event of a stream: that of every log in an answer is 1."""


@cache
def description() -> Object:
    """Return the description of a service, which it answers itself."""

    async def asked(place: Path) -> bytes:
        driver, database = cast(Any, Mirrors()), sqlite_url(place / "one.sqlite3")
        async with open_service(Home(place / "home"), driver, list, database) as context:
            transport = httpx.ASGITransport(build_app(build_service(context)))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as nobody:
                return (await nobody.get("/openapi.json")).content

    with TemporaryDirectory() as place:
        return json.loads(asyncio.run(asked(Path(place))))


class Shapes:
    """Values of the schemas of a description, in which every free text is the next payload."""

    def __init__(self, description: Object, texts: list[str]) -> None:
        self._schemas: dict[str, Object] = description["components"]["schemas"]
        self._texts: Iterator[str] = cycle(texts)
        self._routes = [
            (method.upper(), re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path) + "$"), operation)
            for path, methods in sorted(description["paths"].items(), key=_most_fixed)
            for method, operation in methods.items()
        ]

    def answer(self, method: str, path: str, after: str | None = None) -> tuple[int, str, str]:
        """Return status, type and body of the first success that a route describes.

        Args:
            after: the place that a stream is to go on from.
        """
        for known, pattern, described in self._routes:
            if known == method and pattern.match(path):
                operation = described
                break
        else:
            return 404, "application/json", self.error()
        status = next(int(one) for one in operation["responses"] if one.startswith("2"))
        content = operation["responses"][str(status)].get("content", {})
        kind = next(iter(content), "")
        if kind == "application/json":
            return status, kind, json.dumps(self.filled(content[kind].get("schema", {})))
        if kind == "text/event-stream":
            data = content[kind]["itemSchema"]["properties"]["data"]
            messages = self._messages(data["contentSchema"])
            if after == str(FIRST_EVENT + len(messages) - 1):
                return 404, "application/json", self.error()
            return status, kind, "".join(messages)
        return status, kind, next(self._texts)

    def _messages(self, schema: Object) -> list[str]:
        values = enumerate(self.variants(schema), FIRST_EVENT)
        return [f"id: {number}\ndata: {json.dumps(value)}\n\n" for number, value in values]

    def error(self) -> str:
        """Return the body of an error."""
        return json.dumps({name: next(self._texts) for name in ("error", "details", "code")})

    def variants(self, schema: Object, depth: int = 0) -> Iterator[Any]:
        """Yield a value of a schema, or one of each of its types: its own, or those of one property."""
        schema = self._resolved(schema)
        if "discriminator" in schema:
            for choice in schema["oneOf"]:
                yield from self.variants(choice, depth)
            return
        properties: Object = schema.get("properties", {})
        if "sessionUpdate" in properties:
            yield from self._session_updates()
            return
        for name, one in properties.items() if depth < 3 else ():
            if len(several := list(self.variants(one, depth + 1))) > 1:
                yield from ({**self.filled(schema), name: value} for value in several)
                return
        yield self.filled(schema)

    def _session_updates(self) -> Iterator[Object]:
        for kind in ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk"):
            yield {"sessionUpdate": kind, "content": {"type": "text", "text": next(self._texts)}}
        yield {"sessionUpdate": "tool_call", **self._tool_call()}
        yield {"sessionUpdate": "tool_call_update", **self._tool_call(), "status": "failed"}
        entry = {"content": next(self._texts), "status": next(self._texts)}
        yield {"sessionUpdate": "plan", "entries": [entry]}
        yield {"sessionUpdate": next(self._texts)}

    def _tool_call(self) -> Object:
        """Return a tool call of the Agent Client Protocol, which the description leaves open."""
        text = self._texts
        return {
            "toolCallId": next(text),
            "title": next(text),
            "kind": next(text),
            "status": next(text),
            "content": [
                {"type": "content", "content": {"type": "text", "text": next(text)}},
                {"type": "diff", "path": next(text), "oldText": next(text), "newText": next(text)},
                {"type": "terminal", "terminalId": next(text)},
                {"type": next(text)},
            ],
            "locations": [{"path": next(text)}],
            "rawInput": {"command": next(text)},
            "rawOutput": {"output": next(text), "exitCode": 1},
        }

    def _resolved(self, schema: Object) -> Object:
        while "$ref" in schema:
            schema = self._schemas[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def filled(self, schema: Object, name: str = "", depth: int = 0) -> Any:
        """Return a value of a schema; lists have one element, or one of each type, the last first."""
        schema = self._resolved(schema)
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                return self.filled(schema[choice][0], name, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object":
                return self._tool_call() if name == "toolCall" else self._object(schema, depth)
            case "array":
                return [] if depth > 8 else self._list(schema, name, depth)
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return name in ("has_more", "enabled")
            case "null":
                return None
            case _:
                return self._text(schema, name)

    def _list(self, schema: Object, name: str, depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self.filled(one, name, depth + 1) for one in schema["prefixItems"]]
        items: Object = schema.get("items", {})
        if "discriminator" in self._resolved(items):
            return list(self.variants(items))[::-1]
        return [self.filled(items, name, depth + 1)]

    def _object(self, schema: Object, depth: int) -> Object:
        made: Object = {
            name: self.filled(one, name, depth + 1)
            for name, one in schema.get("properties", {}).items()
        }
        more: Any = schema.get("additionalProperties")
        if isinstance(more, dict) and more and depth < 8:
            made[next(self._texts)] = self.filled(cast(Object, more), "", depth + 1)
        return made

    def _text(self, schema: Object, name: str) -> str | None:
        if name in ("nextCursor", "beforeCursor"):
            return None
        if name == "data" and "base64" in schema.get("description", ""):
            return base64.b64encode(next(self._texts).encode(errors="replace")).decode()
        if schema.get("format") == "date-time":
            return "2026-01-02T00:00:00Z"
        is_id = schema.get("format") == "uuid" or name == "chatId"
        return KNOWN if is_id else next(self._texts)


def _most_fixed(route: tuple[str, Any]) -> tuple[int, str]:
    return route[0].count("{"), route[0]


@contextmanager
def answering(shapes: Shapes, refuses: bool = False) -> Generator[str]:
    """Serve the shapes, or with `refuses` errors alone; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path, after = self.path.partition("?")[0], self.headers.get("Last-Event-ID")
            status, kind, body = shapes.answer(self.command, path, after)
            if refuses:
                status, kind, body = 409, "application/json", shapes.error()
            data = b"" if status == 204 else body.encode("utf-8", "replace")
            self.send_response(status)
            if kind:
                self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
