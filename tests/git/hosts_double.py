"""Both source hosts on loopback: the public REST shapes of pull requests, and what was asked."""

import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import httpx

from tests.support.git import git
from tests.support.waiting import WAIT_SECONDS

TOKEN = "token-of-the-hosts"
SECRET = "what the two of us know"
SHOP = "sea/shop"
HOST_A, HOST_B = "host-a", "host-b"
_LINT = {"name": "lint", "status": "completed", "html_url": "https://ci.invalid/lint"}
FAILED = {**_LINT, "conclusion": "failure"}
"""A check of host A that has failed."""
PASSED = {**_LINT, "conclusion": "success"}


@dataclass(frozen=True)
class Asked:
    """One request that came, and how it was answered."""

    method: str
    path: str
    body: Any
    status: int


@dataclass(frozen=True)
class Refusal:
    """An answer in place of the right one, to requests whose path ends so."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    method: str = ""
    end: str = ""


@dataclass
class Pull:
    """A pull request; `reviews` and the like are what the host answers."""

    number: int
    head: str
    base: str
    title: str
    body: str = ""
    draft: bool = False
    state: str = "open"
    fork: bool = False
    sha: str | None = None
    """Its newest commit where the repository is not asked."""
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields of the host's that are added, or replaced."""
    reviews: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    approvals: dict[str, Any] = field(default_factory=dict[str, Any])
    runs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    statuses: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    threads: list[bool] = field(default_factory=list[bool])
    """The threads of its reviews, whether each is resolved."""


Show = Callable[[Pull], dict[str, Any]]


@dataclass
class HostsDouble:
    """Both hosts with one repository, `sea/shop`.

    `bare` is the repository that git reads and writes. `held` are methods whose requests are carried
    out and then wait for `gate`.
    """

    bare: Path | None = None
    port: int = 0
    page: int = 100
    """Most entries of a page."""
    merge_method: str = "merge"
    newest: int = 6
    pulls: dict[int, Pull] = field(default_factory=dict[int, Pull])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    held: set[str] = field(default_factory=set[str])
    gate: threading.Event = field(default_factory=threading.Event)
    asked: list[Asked] = field(default_factory=list[Asked])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    @contextmanager
    def running(cls) -> Generator["HostsDouble"]:
        hosts = cls()

        class Handler(_Handler):
            source = hosts

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        hosts.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hosts
        finally:
            hosts.gate.set()
            server.shutdown()
            server.server_close()
            thread.join()

    def root(self, host: str) -> str:
        """The address of a host's pages; they have different names."""
        return f"http://{'127.0.0.1' if host == HOST_A else 'localhost'}:{self.port}"

    def api(self, host: str) -> str:
        return f"{self.root(host)}/{'a' if host == HOST_A else 'b/api/v4'}"

    def serve(self, checkout: Path, served: Path) -> None:
        """Have the repository of a checkout at both hosts; it is copied below `served`."""
        self.bare = served / f"{SHOP}.git"
        git(checkout, "clone", "-q", "--bare", str(checkout), str(self.bare))

    def variables(self, home: Path) -> dict[str, str]:
        """Return variables of a service that uses the hosts, and to whose git they are here.

        `home` is that of the person, where git's configuration is written.
        """
        assert self.bare is not None
        lines = [f'[url "file://{self.bare.parents[len(Path(SHOP).parts) - 1]}/"]']
        lines += [f"\tinsteadOf = {self.root(host)}/" for host in (HOST_A, HOST_B)]
        (home / ".gitconfig").write_text("\n".join(lines) + "\n")
        return {
            "HOME": str(home),
            "QD_HOST_A_API_URL": self.api(HOST_A),
            "QD_HOST_A_TOKEN": TOKEN,
            "QD_HOST_A_WEBHOOK_SECRET": SECRET,
            "QD_HOST_B_API_URL": self.api(HOST_B),
            "QD_HOST_B_TOKEN": TOKEN,
        }

    def webhook(self) -> tuple[bytes, dict[str, str]]:
        """Return body and headers of a call by which a service reads the repository of host A again."""
        body = json.dumps({"repository": {"full_name": SHOP}, "n": len(self.asked)}).encode()
        signature = hmac.digest(SECRET.encode(), body, "sha256").hex()
        return body, {"x-hub-signature-256": f"sha256={signature}", "x-github-event": "check_run"}

    def tell(self, socket: Path) -> None:
        """Make that call to a service that listens on a socket."""
        body, headers = self.webhook()
        transport = httpx.HTTPTransport(uds=str(socket))
        with httpx.Client(
            transport=transport, base_url="http://local", timeout=WAIT_SECONDS
        ) as client:
            answer = client.post("/v1/host-a/webhook", content=body, headers=headers)
        assert answer.status_code == 202, answer.text

    def forget(self) -> None:
        """Be as before a test."""
        self.gate.set()
        self.gate.clear()
        self.held.clear()
        self.refusals.clear()
        self.pulls.clear()
        self.asked.clear()

    def add(self, head: str, **fields: Any) -> Pull:
        """A pull request that somebody has opened."""
        self.newest += 1  # also after those of an earlier test: services remember numbers
        number = self.newest
        given = {"base": "main", "title": "A title", "sha": "a" * 40, **fields}
        self.pulls[number] = Pull(number, head, **given)
        return self.pulls[number]

    def requests(self, method: str, end: str = "") -> list[Asked]:
        """What was asked by a method, of paths that end so."""
        return [
            one
            for one in self.asked
            if one.method == method and urlsplit(one.path).path.endswith(end)
        ]

    # Answers

    def answer(
        self, method: str, target: str, token: str, body: Any
    ) -> tuple[int, Any, dict[str, str]]:
        parts = urlsplit(target)
        with self._lock:
            for one in self.refusals:
                if one.method in ("", method) and parts.path.endswith(one.end):
                    return one.status, one.body, one.headers
            if token not in (f"Bearer {TOKEN}", TOKEN):
                return 401, {"message": "Bad credentials"}, {}
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            place_a, place_b = f"/a/repos/{SHOP}", f"/b/api/v4/projects/{quote(SHOP, safe='')}"
            if parts.path.startswith(place_a):
                words = parts.path.removeprefix(place_a).strip("/").split("/")
                status, answer = self._host_a(method, words, query, body)
            elif parts.path.startswith(place_b):
                words = parts.path.removeprefix(place_b).strip("/").split("/")
                status, answer = self._host_b(method, words, query, body)
            elif parts.path == "/a/graphql":
                status, answer = 200, self._threads_a(body["variables"])
            else:
                status, answer = 404, {"message": "Not Found"}
        return self._paged(status, answer, target, query)

    def _paged(
        self, status: int, answer: Any, target: str, query: dict[str, str]
    ) -> tuple[int, Any, dict[str, str]]:
        size = min(self.page, int(query.get("per_page", "30")))
        number = int(query.get("page", "1"))
        entries = answer
        if isinstance(answer, dict):
            entries = next(
                (answer[key] for key in ("check_runs", "statuses") if key in answer), None
            )
        if not isinstance(entries, list):
            return status, answer, {}
        part = entries[(number - 1) * size : number * size]
        headers = {}
        if number * size < len(entries):
            headers["Link"] = f'<http://evil.invalid{target}>; rel="next", <x>; rel="last"'
        if isinstance(answer, dict):
            part = {key: part if key != "total_count" else answer[key] for key in answer}
        return status, part, headers

    def _sha(self, pull: Pull) -> str:
        if pull.sha is not None:
            return pull.sha
        assert self.bare is not None
        return git(self.bare, "rev-parse", f"refs/heads/{pull.head}")

    def _of_sha(self, sha: str) -> Pull | None:
        return next((one for one in self.pulls.values() if self._sha(one) == sha), None)

    # Host A

    def _host_a(
        self, method: str, words: list[str], query: dict[str, str], body: Any
    ) -> tuple[int, Any]:
        match method, words:
            case "GET", ["pulls"]:
                found = [
                    self._pull_a(one)
                    for one in reversed(self.pulls.values())
                    if f"{'fork' if one.fork else 'sea'}:{one.head}" == query["head"]
                    and query["state"] in ("all", "open" if one.state == "open" else "closed")
                ]
                return 200, [{k: v for k, v in one.items() if k != "mergeable"} for one in found]
            case "POST", ["pulls"]:
                given = [body[name] for name in ("head", "base", "title", "body", "draft")]
                return self._create(self._pull_a, *given)
            case "GET", ["pulls", number] if int(number) in self.pulls:
                return 200, self._pull_a(self.pulls[int(number)])
            case "GET", ["pulls", number, "reviews"]:
                return 200, self.pulls[int(number)].reviews
            case "PUT", ["pulls", number, "merge"]:
                return self._merge(self.pulls[int(number)], body, 405)
            case "GET", ["commits", sha, "check-runs"]:
                pull = self._of_sha(sha)
                runs = pull.runs if pull else []
                return 200, {"total_count": len(runs), "check_runs": runs}
            case "GET", ["commits", sha, "status"]:
                pull = self._of_sha(sha)
                return 200, {"state": "pending", "statuses": pull.statuses if pull else []}
            case _:
                return 404, {"message": "Not Found"}

    def _pull_a(self, pull: Pull) -> dict[str, Any]:
        repository = {"full_name": "fork/shop" if pull.fork else SHOP}
        return {
            "id": 1_000 + pull.number,
            "number": pull.number,
            "html_url": f"{self.root(HOST_A)}/{SHOP}/pull/{pull.number}",
            "title": pull.title,
            "body": pull.body,
            "state": "open" if pull.state == "open" else "closed",
            "merged_at": "2040-01-02T03:04:05Z" if pull.state == "merged" else None,
            "draft": pull.draft,
            "head": {"ref": pull.head, "sha": self._sha(pull), "repo": repository},
            "base": {"ref": pull.base, "sha": "0" * 40, "repo": {"full_name": SHOP}},
            "mergeable": True,
            "requested_reviewers": [],
            "requested_teams": [],
            "review_comments": 2 * len(pull.threads),
            "updated_at": f"2040-01-02T03:04:{len(pull.threads):02}Z",
            **pull.more,
        }

    def _threads_a(self, variables: dict[str, Any]) -> dict[str, Any]:
        threads = self.pulls[variables["number"]].threads
        start = int(variables["after"] or 0)
        end = start + min(self.page, 100)
        found = {
            "nodes": [{"isResolved": resolved} for resolved in threads[start:end]],
            "pageInfo": {"hasNextPage": end < len(threads), "endCursor": str(end)},
        }
        return {"data": {"repository": {"pullRequest": {"reviewThreads": found}}}}

    # Host B

    def _host_b(
        self, method: str, words: list[str], query: dict[str, str], body: Any
    ) -> tuple[int, Any]:
        match method, words:
            case "GET", [""]:
                return 200, {"id": 5, "merge_method": self.merge_method}
            case "GET", ["merge_requests"]:
                return 200, [
                    self._request_b(one)
                    for one in reversed(self.pulls.values())
                    if one.head == query["source_branch"] and query["state"] == "all"
                ]
            case "POST", ["merge_requests"]:
                title = body["title"]
                return self._create(
                    self._request_b,
                    body["source_branch"],
                    body["target_branch"],
                    title,
                    body["description"],
                    title.startswith("Draft: "),
                )
            case "GET", ["merge_requests", number] if int(number) in self.pulls:
                return 200, self._request_b(self.pulls[int(number)])
            case "GET", ["merge_requests", number, "approvals"]:
                plain = {"approved": True, "approvals_left": 0, "approved_by": []}
                return 200, plain | self.pulls[int(number)].approvals
            case "GET", ["merge_requests", number, "discussions"]:
                return 200, [
                    {"individual_note": True, "notes": [{"resolvable": False}]},
                    *(
                        {"notes": [{"resolvable": True, "resolved": resolved}, {"system": True}]}
                        for resolved in self.pulls[int(number)].threads
                    ),
                ]
            case "PUT", ["merge_requests", number, "merge"]:
                return self._merge(self.pulls[int(number)], body, 405)
            case "GET", ["repository", "commits", sha, "statuses"]:
                pull = self._of_sha(sha)
                return 200, pull.statuses if pull else []
            case _:
                return 404, {"message": "404 Not found"}

    def _request_b(self, pull: Pull) -> dict[str, Any]:
        return {
            "id": 1_000 + pull.number,
            "iid": pull.number,
            "web_url": f"{self.root(HOST_B)}/{SHOP}/-/merge_requests/{pull.number}",
            "title": pull.title,
            "description": pull.body,
            "state": "opened" if pull.state == "open" else pull.state,
            "draft": pull.draft,
            "source_branch": pull.head,
            "target_branch": pull.base,
            "source_project_id": 6 if pull.fork else 5,
            "target_project_id": 5,
            "sha": self._sha(pull),
            "merge_status": "can_be_merged",
            "detailed_merge_status": "mergeable",
            "has_conflicts": False,
            "reviewers": [],
            "head_pipeline": None,
            "user_notes_count": len(pull.threads),
            **pull.more,
        }

    # Both

    def _create(
        self, show: Show, head: str, base: str, title: str, text: str, draft: bool
    ) -> tuple[int, Any]:
        for one in self.pulls.values():
            if (one.head, one.base, one.state) == (head, base, "open"):
                exists = f"A pull request already exists for {head}."
                return 422, {"message": "Validation Failed", "errors": [{"message": exists}]}
        pull = self.add(head, base=base, title=title, body=text, draft=draft, sha=None)
        if self.bare is None:
            pull.sha = "b" * 40
        return 201, show(pull)

    def _merge(self, pull: Pull, body: Any, status: int) -> tuple[int, Any]:
        if pull.state != "open" or pull.draft:
            return status, {"message": f"{status} Method Not Allowed"}
        if body["sha"] != self._sha(pull):
            return 409, {"message": "SHA does not match HEAD of source branch"}
        pull.state = "merged"
        return 200, self._request_b(pull) | {"merged": True}


class _Handler(BaseHTTPRequestHandler):
    source: HostsDouble
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        host = self.source
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""
        status, answer, headers = host.answer(self.command, self.path, token, body)
        text = json.dumps(answer).encode()
        if self.command == "GET" and status == 200:
            headers = {**headers, "ETag": f'W/"{hashlib.sha256(text).hexdigest()}"'}
            if self.headers.get("If-None-Match") == headers["ETag"]:
                status, text = 304, b""
        host.asked.append(Asked(self.command, unquote(self.path), body, status))
        if self.command in host.held:
            host.gate.wait(60)
        with suppress(ConnectionError):  # who asked may have been killed
            self._say(status, headers, text)

    def _say(self, status: int, headers: dict[str, str], text: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = _serve

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""
