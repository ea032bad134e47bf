"""Docker and podman for tests, each in a network namespace of its own, with the image of replicas."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import httpx
import pytest

from tests.support.tools import require

BASE = "qd-test-base"
IMAGE = "qd-test-replica"
START_SECONDS = 60.0
LIMIT = 20_000


@dataclass
class Daemon(ABC):
    """`host` is the address of the tests as seen from containers, `inside` that of its namespace."""

    directory: Path
    namespace: str
    host: str
    inside: str
    parts: Path
    process: "subprocess.Popen[bytes] | None" = None
    more: Sequence[str] = ()
    """Arguments besides its own."""
    link: str = ""
    """Its end of the wire in the namespace of the tests."""

    tools: ClassVar[tuple[str, ...]]
    gaps: ClassVar[list[str]] = ["the disk space of a replica is not limited"]
    """What it leaves open."""

    @property
    def socket(self) -> Path:
        return self.directory / "engine.sock"

    @property
    def address(self) -> str:
        return f"unix://{self.socket}"

    def client(self) -> httpx.Client:
        transport = httpx.HTTPTransport(uds=str(self.socket))
        return httpx.Client(transport=transport, base_url="http://docker", timeout=120)

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """What to run in the network namespace; called before each start."""

    def start(self) -> None:
        command = [f"--net=/run/netns/{self.namespace}", *map(str, self.command())]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["nsenter", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self._answers():
                return
            assert time.monotonic() < deadline, (self.directory / "log").read_text()[-2000:]
            assert self.process.poll() is None, (self.directory / "log").read_text()[-2000:]
            time.sleep(0.05)

    def unplug(self) -> None:
        """What a broken network does: the engine and its containers go on alone."""
        ip("link", "set", self.link, "down")

    def plug(self) -> None:
        ip("link", "set", self.link, "up")

    def _answers(self) -> bool:
        # Not by the HTTP client, which leaves a socket open when nobody listens.
        with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self.socket))
            probe.sendall(b"GET /version HTTP/1.0\r\n\r\n")
            return b" 200 " in probe.recv(100)
        return False

    def kill(self) -> None:
        """What a crash does to it: containers run on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        with self.client() as client:
            for one in client.get("/containers/json?all=true").json():
                client.delete(f"/containers/{one['Id']}?force=true")
        self.kill()
        self.unmount()

    def unmount(self) -> None:
        mounted = (line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines())
        for place in [one for one in mounted if Path(one).is_relative_to(self.directory)][::-1]:
            subprocess.run(["umount", place], check=True)

    def run(self, *words: str) -> str:
        """A command in the network namespace."""
        command = ["nsenter", f"--net=/run/netns/{self.namespace}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def load_base(self) -> None:
        with self.client() as client, (self.parts / "base.tar").open("rb") as tar:
            client.post(f"/images/create?fromSrc=-&repo={BASE}", content=tar).raise_for_status()


class DockerEngine(Daemon):
    tools = ("dockerd", "ip", "iptables")

    def command(self) -> Sequence[str | Path]:
        # What was killed may not have been reaped yet, and would be taken for alive.
        for path in (self.directory / "pid", self.directory / "exec/containerd/containerd.pid"):
            path.unlink(missing_ok=True)
        return (
            *("unshare", "--mount", "--propagation", "slave", "dockerd"),
            *("--data-root", self.directory / "data", "--exec-root", self.directory / "exec"),
            *("--pidfile", self.directory / "pid", "-H", self.address, "--live-restore"),
            *("--storage-driver", "overlay2", "--oom-score-adjust", "0", "--bridge", "none"),
            *self.more,
        )


class Podman(Daemon):
    tools = ("podman", "ip", "iptables")
    gaps: ClassVar[list[str]] = [
        *Daemon.gaps,
        "replicas reach each other's ports on the network",
    ]

    def keep_apart(self) -> None:
        """Close the gap as the documentation says."""
        words = ("network", "inspect", "quarterdeck", "--format", "{{.NetworkInterface}}")
        bridge = self.run("podman", "--url", self.address, *words).strip()
        self.run("iptables", "-I", "FORWARD", "-i", bridge, "-o", bridge, "-j", "DROP")

    def command(self) -> Sequence[str | Path]:
        place = self.directory
        # Its own limits need a capability that root lacks in some virtual machines.
        limits = [f'"{name}={LIMIT}:{LIMIT}"' for name in ("nofile", "nproc")]
        config = place / "containers.conf"
        config.write_text(f"[containers]\ndefault_ulimits = [{', '.join(limits)}]\n")
        return (
            *("env", f"CONTAINERS_CONF={config}", "podman", "--runtime", "runc"),
            *("--root", place / "data", "--runroot", place / "run"),
            *("--tmpdir", place / "tmp", "--volumepath", place / "volumes"),
            *("--network-config-dir", place / "networks", "--storage-driver", "overlay"),
            *("--cgroup-manager", "cgroupfs", "--events-backend", "file"),
            *("system", "service", "--time=0", self.address),
        )


def configure(home: Path, engine: Daemon, more: str = "", image: str = IMAGE) -> None:
    table = f'driver = "docker"\naddress = "{engine.address}"\nimage = "{image}"\n'
    (home / "config.toml").write_text(f"[sandboxes]\n{table}{more}")


def left(engine: Daemon) -> list[str]:
    """The containers and volumes there are."""
    with engine.client() as client:
        containers = client.get("/containers/json?all=true").json()
        volumes = client.get("/volumes").json()["Volumes"] or []
    return [*(one["Names"][0] for one in containers), *(one["Name"] for one in volumes)]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def parts() -> Path:
    """What the image is made from. Tests download nothing: the gate has prepared it."""
    given = os.environ.get("REPLICA_PARTS")
    if given is None:
        reason = "REPLICA_PARTS is not set: to what .ci/replica DIRECTORY has written"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return Path(given)


@contextmanager
def started(kind: type[Daemon]) -> Generator[Daemon]:
    if os.geteuid() != 0:
        pytest.skip("root is needed for a container engine and its network namespace")
    for tool in kind.tools:
        require(tool)
    made_from = parts()
    name = uuid4().hex[:8]
    namespace, outer, inner = f"qd-{name}", f"qo{name}", f"qi{name}"
    subnet = f"10.{100 + int(name[:2], 16) % 100}.{int(name[2:4], 16)}"
    directory = Path(tempfile.mkdtemp(prefix="qd-docker-"))
    ip("netns", "add", namespace)
    try:
        ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", namespace)
        ip("address", "add", f"{subnet}.1/30", "dev", outer)
        ip("link", "set", outer, "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{subnet}.2/30", "dev", inner),
            ("link", "set", inner, "up"),
            ("route", "add", "default", "via", f"{subnet}.1"),
        ):
            ip("-n", namespace, *words)
        made = kind(directory, namespace, f"{subnet}.1", f"{subnet}.2", made_from, link=outer)
        made.start()
        try:
            made.load_base()
            yield made
        finally:
            made.stop()
    finally:
        ip("netns", "delete", namespace)
        shutil.rmtree(directory, ignore_errors=True)
