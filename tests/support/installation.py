"""A whole installation as a person has it: a home, the service as a process, real engines."""

import base64
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any
from uuid import uuid4

import httpx

from quarterdeck.local.home import Home
from tests.support import forked
from tests.support.waiting import WAIT_SECONDS, until

PROGRAM = (sys.executable, "-P", "-m", "quarterdeck")


def free_port() -> int:
    """A port below those that connections are given, so that none has it while a service restarts."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)  # not the generator that each test seeds
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def block(script: str) -> str:
    """A message that makes the built-in agent run a script."""
    return f"```sh\n{script}\n```"


def refused(
    answer: httpx.Response, status: int, code: str, sentence: str, details: str = ""
) -> Any:
    """The answer is the Error object, with this status, code, sentence and details."""
    answer.read()
    body = answer.json()
    assert (answer.status_code, body.get("code")) == (status, code), answer.text
    assert set(body) <= {"error", "details", "code"}
    assert sentence in body["error"], body
    assert body["error"].endswith(".") or "Install it with" in body["error"], body
    assert details in (body.get("details") or ""), body
    assert "Traceback" not in answer.text
    return body


def of_engine(event: dict[str, Any]) -> bool:
    """Whether an event of the log comes from the engine's journal; the service tells the others."""
    return "workspaceStatus" not in event["payload"] and event["type"] not in (
        "error",
        "chat.created",
    )


def snapshot(directory: Path) -> dict[str, Any]:
    """Every file below a directory with what could be changed in it."""
    found: dict[str, Any] = {}
    for path in sorted(directory.rglob("*")):
        kept = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[str(path.relative_to(directory))] = (
            kept.st_mode,
            kept.st_uid,
            kept.st_mtime_ns,
            content,
        )
    return found


def environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def command_of(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return ""


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def megabytes(pid: int, what: str = "VmRSS") -> float:
    """Memory of a process: `VmRSS` now, `VmHWM` at its highest."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} has no memory")


@dataclass
class Installation:
    """One home. `start` and `kill` are its service's; `api` speaks to it with its key.

    `wrapper` stands before the service's command, `words` after it, and `variables` join its
    environment.
    """

    base: Path
    variables: dict[str, str] = field(default_factory=dict[str, str])
    wrapper: Sequence[str] = ()
    words: Sequence[str] = ()
    process: "subprocess.Popen[str] | None" = None
    port: int = field(default_factory=lambda: free_port())
    _names: int = 0

    @property
    def home(self) -> Home:
        return Home(self.base / "home")

    @property
    def seen_home(self) -> Home:
        """The home as this process can reach it."""
        return self.home

    @property
    def log(self) -> Path:
        return self.base / "service.log"

    @property
    def environment(self) -> dict[str, str]:
        own = {k: v for k, v in os.environ.items() if not k.startswith(("QD_", "QUARTERDECK_"))}
        return own | {"QUARTERDECK_HOME": str(self.home.root)} | self.variables

    # The service

    def start(self) -> dict[str, Any]:
        """Starts the service and waits until it says that it is ready; returns what it said."""
        with self.log.open("a") as log:
            process = forked.ForkedPopen(
                [*self.wrapper, *PROGRAM, "serve", "--json", *self._listen, *self.words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.environment,
                cwd=self.base,
            )
        assert process.stdout is not None
        self.process = process
        ready, _, _ = select.select([process.stdout], [], [], WAIT_SECONDS)
        line = process.stdout.readline() if ready else ""
        assert line, f"the service did not start: {self.log.read_text()[-2000:]}"
        return json.loads(line)

    @property
    def _listen(self) -> list[str]:
        return ["--listen", f"127.0.0.1:{self.port}"]

    @property
    def pid(self) -> int:
        """The service's process."""
        return int(self.seen_home.lock.read_text())

    def revive(self) -> None:
        """Starts the service unless it runs: a test that failed may have left it dead."""
        if self.process is None or self.process.poll() is not None:
            self._reap()
            self.start()

    def kill(self) -> None:
        """What a crash does to the service."""
        os.kill(self.pid, signal.SIGKILL)
        self._reap()

    def stop(self) -> None:
        """Ends the service in order."""
        if self.process is not None and self.process.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
        self._reap()

    def _reap(self) -> None:
        if self.process is not None:
            self.process.communicate(timeout=WAIT_SECONDS)
            self.process = None

    def qd(
        self, *arguments: str, stdin: str = "", cwd: Path | None = None, **variables: str
    ) -> Any:
        return forked.run(
            [*PROGRAM, *arguments],
            input=stdin,
            text=True,
            timeout=WAIT_SECONDS * 2,
            env=self.environment | variables,
            cwd=cwd or self.base,
        )

    # Requests

    @property
    def key(self) -> str:
        return self.seen_home.key.read_text().strip()

    @contextmanager
    def client(self, **headers: str) -> Iterator[httpx.Client]:
        """A connection over TCP; without `Authorization` it has no key."""
        base = f"http://127.0.0.1:{self.port}"
        with httpx.Client(
            # Nothing to verify without TLS, and reading the certificates costs 30 ms.
            base_url=base,
            headers=headers,
            timeout=WAIT_SECONDS * 2,
            trust_env=False,
            verify=False,
        ) as client:
            yield client

    def ask(self, method: str, path: str, json: Any = None, **more: Any) -> httpx.Response:
        with self.client(Authorization=f"Bearer {self.key}") as client:
            return client.request(method, path, json=json, **more)

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.status_code == status, answer.text
        return answer.json()

    # Resources

    @property
    def plain_environment(self) -> str:
        """The global environment: workspaces without a repository."""
        return self.get("/v1/environments/global")["environment"]["id"]

    def connect(self, url: str) -> str:
        """The id of the repository, connected."""
        body = self.post("/v1/replica/repositories", {"url": url}, 201)
        return body["repository"]["id"]

    def environment_with(self, repository_id: str, **settings: Any) -> str:
        body = {"name": f"with {uuid4()}", "repository_id": repository_id, **settings}
        return self.post("/v1/environments", body, 201)["environment"]["id"]

    def create(self, environment: str | None = None, wait: bool = True, **body: Any) -> str:
        """A replica; active when this returns, unless told not to wait."""
        self._names += 1
        body = {
            "name": f"r{self._names}-{uuid4().hex[:6]}",
            "environment_id": environment or self.plain_environment,
            **body,
        }
        made = self.post("/v1/replica", body, 201)["replica"]
        assert made["status"] == "preparing"
        if wait:
            self.reach(made["id"], "active")
        return made["id"]

    def replica(self, id: str) -> dict[str, Any]:
        return self.get(f"/v1/replica/{id}")["replica"]

    def reach(self, id: str, status: str) -> dict[str, Any]:
        """Waits until a replica is in a state."""

        found: dict[str, Any] = {}

        def there() -> dict[str, Any] | None:
            found.update(self.replica(id))
            assert status == "error" or found["status"] != "error", found["error"]
            return found if found["status"] == status else None

        try:
            return until(there, f"the state {status}")
        except AssertionError as e:
            e.add_note(f"The replica: {found}")
            raise

    def chat(self, id: str) -> str:
        return self.replica(id)["chats"][0]["id"]

    def send(self, id: str, message: str, **body: Any) -> dict[str, Any]:
        return self.post(f"/v1/replica/{id}/messages", {"message": message, **body})

    def history(self, id: str) -> list[dict[str, Any]]:
        return self.get(f"/v1/replica/{id}/history")["events"]

    def results(self, id: str) -> dict[str, list[dict[str, Any]]]:
        """The ends of turns by message; each should have one."""
        found: dict[str, list[dict[str, Any]]] = {}
        for event in self.history(id):
            if event["type"] == "turn-result":
                found.setdefault(event["payload"]["messageId"], []).append(event["payload"])
        return found

    def result(self, id: str, message_id: str) -> dict[str, Any]:
        """Waits for the end of a message's turn, which must be one."""
        ends = until(lambda: self.results(id).get(message_id), "the end of a turn")
        assert len(ends) == 1
        return ends[0]

    def turn(self, id: str, message: str, **body: Any) -> dict[str, Any]:
        """Sends a message and waits for its end."""
        return self.result(id, self.send(id, message, **body)["message_id"])

    def said(self, id: str) -> list[str]:
        """The messages that were run, in their order."""
        events = self.history(id)
        return [one["payload"]["text"] for one in events if one["type"] == "user-message"]

    def run(self, id: str, command: str, seconds: int = 30) -> dict[str, Any]:
        return self.post(f"/v1/replica/{id}/exec", {"command": command, "timeout_seconds": seconds})

    def in_terminal(self, id: str, command: str) -> str:
        """What a command prints in a terminal of the replica."""
        base = f"/v1/workspaces/{id}/terminal/sessions"
        session = self.post(base, {"cols": 300, "rows": 50}, 201)["session"]["id"]
        keys = {"data": f"stty -echo; {command}; exit\n", "generation": 0, "sequence": 0}
        self.post(f"{base}/{session}/input", keys)
        seen = b""
        with (
            self.client(Authorization=f"Bearer {self.key}") as client,
            client.stream("GET", f"{base}/{session}/stream") as response,
        ):
            for line in response.iter_lines():
                if line.startswith("data:"):
                    seen += base64.b64decode(json.loads(line[5:]).get("data", ""))
        self.ask("DELETE", f"{base}/{session}")
        return seen.decode(errors="replace")

    def delete(self, id: str) -> None:
        answer = self.ask("DELETE", f"/v1/replica/{id}")
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"success": True}

    def delete_all(self) -> None:
        for replica in self.get("/v1/replica?limit=100")["replicas"]:
            self.delete(replica["id"])

    # What runs and lies on the disk

    def place(self, id: str) -> Path:
        return self.seen_home.workspaces / id

    def processes(self, id: str) -> list[int]:
        """All processes that were born in a replica's sandbox."""
        mark = f"QUARTERDECK_WORKSPACE={id}".encode()
        return [pid for pid in pids() if mark in environment_of(pid).split(b"\0") and runs(pid)]

    def engine(self, id: str) -> int:
        return json.loads((self.place(id) / "sandbox.json").read_text())["engine"]["pid"]

    def agents(self, id: str) -> list[int]:
        return [pid for pid in self.processes(id) if "quarterdeck.agents" in command_of(pid)]

    def journal(self, id: str) -> list[dict[str, Any]]:
        """The engine's own record. A line that is just being written is left out."""
        text = (self.place(id) / "state" / "journal.jsonl").read_text()
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [json.loads(line) for line in lines if line.startswith('{"index"')]

    def log_lines(self) -> list[dict[str, Any]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{")]

    def check_log(self) -> None:
        """Nothing happened in the service that nobody foresaw."""
        bad = [
            line
            for line in self.log_lines()
            if line["message"].startswith(("A request failed", "The life of", "Task exception"))
            or "never retrieved" in line["message"]
        ]
        assert not bad, bad
        assert self.key not in self.log.read_text()

    def kill_all(self) -> None:
        """Ends the sandboxes that a failed test left."""
        for place in self.seen_home.workspaces.glob("*"):
            for pid in self.processes(place.name):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def check_ended(self) -> None:
        """Nothing that a service of this home started, killed ones included, still runs."""
        mark = f"QUARTERDECK_HOME={self.home.root}".encode()

        def left() -> list[str]:
            found = [pid for pid in pids() if mark in environment_of(pid).split(b"\0")]
            return [command_of(pid) for pid in found if runs(pid)]

        until(lambda: not left(), f"the end of {left()}")

    def check_gone(self, *ids: str) -> None:
        """No process, no file and no mount of these replicas is left."""
        left = {id: [command_of(pid) for pid in self.processes(id)] for id in ids}
        assert not any(left.values()), left
        names = [path.name for path in self.seen_home.workspaces.glob("*")]
        assert not [name for name in names if any(id in name for id in ids)], names
        mounts = Path("/proc/self/mounts").read_text()
        assert not any(id in mounts for id in ids)


class Follower:
    """Reads an event stream in a thread and resumes it whenever it ends, as the contract says."""

    def __init__(self, installation: Installation, id: str, after: int = 0) -> None:
        self.id = id
        self._installation = installation
        self._path = f"/v1/replica/{id}/events"
        self._stopped = threading.Event()
        self.events: list[tuple[int, dict[str, Any]]] = []
        self.connections = 0
        self._after = after
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def indices(self) -> list[int]:
        return [index for index, _ in self.events]

    def has(self, type: str, **payload: Any) -> bool:
        return any(
            event["type"] == type and payload.items() <= event["payload"].items()
            for _, event in list(self.events)
        )

    def printed(self, text: str) -> bool:
        """Whether a running block has printed a text."""
        updates = [event["payload"].get("event", {}) for _, event in list(self.events)]
        shown = [one["payload"] for one in updates if one.get("type") == "acp-session_update"]
        return any(
            text in json.dumps(one.get("content"))
            for one in shown
            if one["sessionUpdate"] == "tool_call_update"
        )

    def end(self) -> None:
        self._stopped.set()
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()

    def _follow(self) -> None:
        while not self._stopped.wait(0.05):
            try:
                self._connect()
            except (httpx.HTTPError, OSError):
                continue

    def _connect(self) -> None:
        last = self.events[-1][0] if self.events else self._after
        headers = {
            "Authorization": f"Bearer {self._installation.key}",
            "Last-Event-ID": str(last),
        }
        with (
            self._installation.client(**headers) as client,
            client.stream("GET", self._path, timeout=httpx.Timeout(5, read=0.5)) as response,
        ):
            response.raise_for_status()
            self.connections += 1
            index = 0
            for line in response.iter_lines():
                if line.startswith("id:"):
                    index = int(line[3:])
                elif line.startswith("data:"):
                    self.events.append((index, json.loads(line[5:])))


def remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
