"""A Swarm of two Docker Engines for tests, each in a network namespace of its own."""

import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.containers.daemons import IMAGE, DockerEngine, ip, parts
from tests.support.tools import require


class Node(DockerEngine):
    """One machine of the Swarm."""

    def command(self) -> Sequence[str | Path]:
        for path in (self.directory / "pid", self.directory / "exec/containerd/containerd.pid"):
            path.unlink(missing_ok=True)
        return (
            *("unshare", "--mount", "--uts", "--propagation", "slave"),
            *("sh", "-c", 'hostname "$1"; shift; exec "$@"', "sh", self.namespace, "dockerd"),
            *("--data-root", self.directory / "data", "--exec-root", self.directory / "exec"),
            *("--pidfile", self.directory / "pid", "-H", self.address),
            *("--storage-driver", "overlay2", "--oom-score-adjust", "0"),
            *("--no-new-privileges", "--icc=false"),
        )

    @contextmanager
    def halted(self) -> Generator[None]:
        """Its Docker Engine does nothing meanwhile; its containers go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def cut_power(self) -> None:
        self.unplug()
        self.kill_all()

    def kill_all(self) -> None:
        """End the engine with all its containers, at once."""
        self.kill()
        while found := self._processes():
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _processes(self) -> list[int]:
        """Its own processes that are left, and all in its containers."""
        parents: dict[int, int] = {}
        found: set[int] = set()
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state, parent = (place / "stat").read_text().rpartition(")")[2].split()[:2]
                if state == "Z":
                    continue
                parents[int(place.name)] = int(parent)
                if str(self.directory).encode() in (place / "cmdline").read_bytes():
                    found.add(int(place.name))
        more = found
        while more:
            more = {pid for pid, parent in parents.items() if parent in more} - found
            found |= more
        return [*found]


@dataclass
class Swarm:
    """`host` is the address of the tests as seen from containers."""

    manager: Node
    worker: Node
    host: str

    def share_image(self) -> None:
        with (
            self.manager.client() as one,
            self.worker.client() as other,
            one.stream("GET", f"/images/{IMAGE}/get") as image,
        ):
            loading = image.iter_bytes(1 << 16)
            other.post("/images/load", content=loading).raise_for_status()

    def get(self, path: str, **params: str) -> Any:
        with self.manager.client() as client:
            return client.get(path, params=params).raise_for_status().json()

    def set_availability(self, node: Node, availability: str) -> None:
        with self.manager.client() as client:
            found = client.get(f"/nodes/{node.namespace}").json()
            path = f"/nodes/{found['ID']}/update?version={found['Version']['Index']}"
            spec = {**found["Spec"], "Availability": availability}
            client.post(path, json=spec).raise_for_status()

    def is_ready(self, node: Node) -> bool:
        return self.get(f"/nodes/{node.namespace}")["Status"]["State"] == "ready"

    def running(self, id: str) -> list[str]:
        """The names of the nodes where a replica runs, or is meant to."""
        tasks = self.get("/tasks", filters=f'{{"service": ["qd-{id}"]}}')
        nodes = [one["NodeID"] for one in tasks if one["DesiredState"] == "running"]
        return [self.get(f"/nodes/{node}")["Description"]["Hostname"] for node in nodes]


def _join(manager: Node, worker: Node) -> None:
    with manager.client() as client:
        address = f"{manager.inside}:2377"
        body: dict[str, Any] = {"AdvertiseAddr": manager.inside, "ListenAddr": address}
        client.post("/swarm/init", json=body).raise_for_status()
        token = client.get("/swarm").json()["JoinTokens"]["Worker"]
    with worker.client() as client:
        own = {"AdvertiseAddr": worker.inside, "ListenAddr": f"{worker.inside}:2377"}
        body = {**own, "JoinToken": token, "RemoteAddrs": [address]}
        client.post("/swarm/join", json=body).raise_for_status()


@contextmanager
def started_swarm() -> Generator[Swarm]:
    if os.geteuid() != 0:
        pytest.skip("root is needed for a Swarm and its network namespaces")
    for tool in DockerEngine.tools:
        require(tool)
    made_from = parts()
    name = uuid4().hex[:8]
    bridge = f"qb{name}"
    subnet = f"10.{100 + int(name[:2], 16) % 100}.{int(name[2:4], 16)}"
    nodes: list[Node] = []
    ip("link", "add", bridge, "type", "bridge")
    try:
        ip("address", "add", f"{subnet}.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for number, letter in ((2, "a"), (3, "b")):
            namespace, inner = f"qd-{name}{letter}", f"qi{name}{letter}"
            directory = Path(tempfile.mkdtemp(prefix="qd-docker-"))
            address = f"{subnet}.{number}"
            node = Node(directory, namespace, f"{subnet}.1", address, made_from)
            node.link = f"qo{name}{letter}"
            ip("netns", "add", namespace)
            nodes.append(node)
            ip("link", "add", node.link, "type", "veth", "peer", "name", inner, "netns", namespace)
            ip("link", "set", node.link, "master", bridge, "up")
            for words in (
                ("link", "set", "lo", "up"),
                ("address", "add", f"{address}/24", "dev", inner),
                ("link", "set", inner, "up"),
                ("route", "add", "default", "via", f"{subnet}.1"),
            ):
                ip("-n", namespace, *words)
            node.start()
        _join(*nodes)
        nodes[0].load_base()
        yield Swarm(*nodes, f"{subnet}.1")
    finally:
        for node in nodes:
            if node.process is not None:
                node.kill_all()
                node.unmount()
            ip("netns", "delete", node.namespace)
            shutil.rmtree(node.directory, ignore_errors=True)
        ip("link", "delete", bridge)
