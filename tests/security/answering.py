"""A server that answers every route of the service with its shape, filled with texts of a test."""

import json
import re
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from typing import Any, cast
from uuid import UUID

Object = dict[str, Any]
KNOWN = str(UUID(int=7))
"""Every id of an answer."""


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

    def answer(self, method: str, path: str) -> tuple[int, str, str]:
        """Return status, type and body of the first success that a route describes."""
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
        return status, kind, "" if kind == "text/event-stream" else next(self._texts)

    def error(self) -> str:
        """Return the body of an error."""
        return json.dumps({name: next(self._texts) for name in ("error", "details", "code")})

    def filled(self, schema: Object, name: str = "", depth: int = 0) -> Any:
        """Return a value of a schema; lists have one element."""
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"].rsplit("/", 1)[1]]
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                return self.filled(schema[choice][0], name, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return [] if depth > 8 else [self.filled(schema.get("items", {}), name, depth + 1)]
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return name in ("has_more", "enabled")
            case "null":
                return None
            case _:
                return self._text(schema, name)

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
        if name == "nextCursor":
            return None
        if schema.get("format") == "date-time":
            return "2026-01-02T00:00:00Z"
        return KNOWN if schema.get("format") == "uuid" else next(self._texts)


def _most_fixed(route: tuple[str, Any]) -> tuple[int, str]:
    return route[0].count("{"), route[0]


@contextmanager
def answering(shapes: Shapes, refuses: bool = False) -> Generator[str]:
    """Serve the shapes, or with `refuses` errors alone; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, kind, body = shapes.answer(self.command, self.path.partition("?")[0])
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
