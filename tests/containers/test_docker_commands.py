"""What the service asks of a container engine, by the requests that it sends."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any, ClassVar

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.errors import SandboxError
from tests.containers.test_configured import Rootless


class Refusing(Rootless):
    """Makes volumes, and notes what containers were asked for without making them."""

    created: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        made = "/volumes/create" in self.path
        if not made:
            self.created.append(body)
        answer = json.dumps({"Name": "made"} if made else {"message": "not here"}).encode()
        self.send_response(201 if made else 500)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "engine.sock"
    Refusing.created.clear()
    with ThreadingUnixStreamServer(str(path), Refusing) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"unix://{path}"
        server.shutdown()


async def asked_for(address: str, home: Path) -> dict[str, Any]:
    """What a container for a command is asked for."""
    containers = DockerContainers(Home(home), "image", address)
    await containers.open()
    try:
        with pytest.raises(SandboxError, match="not here"):
            async for _ in containers.run("w", ("head", "file"), environment={"A": "b"}):
                pass
    finally:
        await containers.close()
    (asked,) = Refusing.created
    return asked


async def test_a_command_runs_no_program_of_the_volume(address: str, tmp_path: Path) -> None:
    """The image's PATH begins with a directory of the replica, whose `head` could print without an end."""
    asked = await asked_for(address, tmp_path)
    path, *others = asked["Env"]
    assert path.startswith("PATH=/usr/local/sbin:")
    assert "/replica" not in path
    assert others == ["A=b"]


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("Engine", [], {"core": 0, "sigpending": 4096, "msgqueue": 204_800}),
        ("Engine", ["name=seccomp,profile=builtin", "name=rootless"], {"core": 0}),
        ("Podman Engine", [], {}),
        ("Podman Engine", ["name=rootless"], {}),
    ],
)
async def test_limits_are_those_that_an_engine_can_set(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: list[str],
    expected: dict[str, int],
) -> None:
    """One without root cannot set more than its own user has, and would make no container."""
    version = {"ApiVersion": "1.41", "Version": "1", "Components": [{"Name": name}]}
    info: Any = Rootless.ANSWERS["info"]
    monkeypatch.setitem(Rootless.ANSWERS, "version", version)
    monkeypatch.setitem(
        Rootless.ANSWERS, "info", {**info, "Rootless": False, "SecurityOptions": options}
    )
    limits = (await asked_for(address, tmp_path))["HostConfig"].get("Ulimits", [])
    assert {one["Name"]: one["Hard"] for one in limits} == expected
