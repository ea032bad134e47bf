"""A source host on loopback: the public REST shapes of both kinds, and what was asked of it."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN_A, TOKEN_B = "token-of-a", "token-of-b"


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    method: str
    path: str
    body: Any


@dataclass
class SourceHost:
    """`down` answers 503; `lost` carries out and then breaks the line; `gate` holds requests.

    Below `files` lie repositories that git can read, as `git update-server-info` leaves them.
    """

    port: int = 0
    token_a: str = TOKEN_A
    down: bool = False
    lost: bool = False
    files: Path | None = None
    gate: threading.Event = field(default_factory=threading.Event)
    asked: list[Asked] = field(default_factory=list[Asked])
    runs: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    """Check runs of host A by their id."""
    heads: dict[int, str] = field(default_factory=dict[int, str])
    """Where the heads of pull requests stand, by number."""
    statuses: dict[tuple[str, str, str], dict[str, Any]] = field(
        default_factory=dict[tuple[str, str, str], dict[str, Any]]
    )
    """Statuses of host B by project, commit and name."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    @contextmanager
    def running(cls) -> Generator["SourceHost"]:
        host = cls()
        host.gate.set()

        class Handler(_Handler):
            source = host

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        host.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield host
        finally:
            host.gate.set()
            server.shutdown()
            server.server_close()
            thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_a(self) -> str:
        return f"{self.url}/a"

    @property
    def api_b(self) -> str:
        return f"{self.url}/b/api/v4"

    def only_run(self) -> dict[str, Any]:
        """The only check run there is."""
        assert len(self.runs) == 1, self.runs
        return next(iter(self.runs.values()))

    def answer(
        self, method: str, target: str, token: tuple[str, str], body: Any
    ) -> tuple[int, Any]:
        parts = urlsplit(target)
        with self._lock:
            if parts.path.startswith("/a/repos/"):
                if token[0] != f"Bearer {self.token_a}":
                    return 401, {"message": "Bad credentials"}
                words = parts.path.removeprefix("/a/repos/").split("/")
                if words[2] == "pulls":
                    return self._pull(method, int(words[3]))
                return self._check_runs(method, words, parse_qs(parts.query), body)
            if parts.path.startswith("/b/api/v4/projects/"):
                if token[1] != TOKEN_B:
                    return 401, {"message": "401 Unauthorized"}
                project, word, sha = parts.path.removeprefix("/b/api/v4/projects/").split("/")
                if word == "merge_requests":
                    return self._merge_request(method, int(sha))
                assert (method, word) == ("POST", "statuses")
                return self._status(unquote(project), sha, body)
        return 404, {"message": "Not Found"}

    def _pull(self, method: str, number: int) -> tuple[int, Any]:
        assert method == "GET"
        if number not in self.heads:
            return 404, {"message": "Not Found"}
        head = {"ref": "sails", "sha": self.heads[number]}
        return 200, {"number": number, "head": head, "base": {"ref": "main", "sha": "0" * 40}}

    def _merge_request(self, method: str, number: int) -> tuple[int, Any]:
        assert method == "GET"
        if number not in self.heads:
            return 404, {"message": "404 Not found"}
        branches = {"source_branch": "sails", "target_branch": "main"}
        return 200, {"iid": number, "sha": self.heads[number], **branches}

    def _check_runs(
        self, method: str, words: list[str], query: dict[str, list[str]], body: Any
    ) -> tuple[int, Any]:
        match method, words[2:]:
            case "POST", ["check-runs"]:
                made = {"id": 40_000_000_000 + len(self.runs), "repo": "/".join(words[:2]), **body}
                self.runs[made["id"]] = made
                return 201, made
            case "PATCH", ["check-runs", id]:
                run = self.runs[int(id)]
                run.update(body)
                return 200, run
            case "GET", ["commits", sha, "check-runs"]:
                wanted = [
                    run
                    for run in self.runs.values()
                    if run["head_sha"] == sha and run["name"] == query["check_name"][0]
                ]
                return 200, {"total_count": len(wanted), "check_runs": wanted}
            case _:
                return 404, {"message": "Not Found"}

    def _status(self, project: str, sha: str, body: Any) -> tuple[int, Any]:
        known = self.statuses.get((project, sha, body["name"]))
        if known and known["status"] == "running" == body["state"]:
            message = "Cannot transition status via :run from :running (Reason(s): Status cannot)"
            return 400, {"message": message}
        made = {"id": 70 + len(self.asked), "sha": sha, "name": body["name"]}
        made |= {"status": body["state"], "description": body.get("description")}
        self.statuses[(project, sha, body["name"])] = made
        return 201, made


class _Handler(BaseHTTPRequestHandler):
    source: SourceHost
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        host = self.source
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        host.asked.append(Asked(self.command, self.path, body))
        host.gate.wait(60)
        if host.files is not None and self.command == "GET" and ".git/" in self.path:
            self._show(host.files / urlsplit(self.path).path.lstrip("/"))
            return
        if host.down:
            self._say(503, {"message": "down"})
            return
        token = (self.headers.get("Authorization") or "", self.headers.get("PRIVATE-TOKEN") or "")
        status, answer = host.answer(self.command, self.path, token, body)
        if host.lost:
            self.close_connection = True
            return
        self._say(status, answer)

    do_GET = do_POST = do_PATCH = _serve

    def _show(self, file: Path) -> None:
        if file.is_file():
            self._put(200, "application/octet-stream", file.read_bytes())
        else:
            self._say(404, {"message": "Not Found"})

    def _say(self, status: int, answer: Any) -> None:
        self._put(status, "application/json", json.dumps(answer).encode())

    def _put(self, status: int, kind: str, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""
