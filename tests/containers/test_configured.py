"""What the configuration file says about containers, where no Docker Engine is needed."""

import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest

from quarterdeck.cli.schema import SandboxesTable
from quarterdeck.cli.way_home import WayHome
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.image import engine_requirements, write_context
from quarterdeck.service.certificate import certificate_for
from tests.containers.cluster import kubeconfig
from tests.support import forked

PROGRAM = (sys.executable, "-P", "-m", "quarterdeck")
NOWHERE = "unix:///nowhere/docker.sock"
SECURE = 'home_url = "https://192.0.2.1:8443"'
LISTEN = 'driver = "docker"\nhome_listen = "127.0.0.1:0"'
UMLAUT = f'{LISTEN}\nhome_url = "https://münchen.example:8443"'
SCOPED = f'{LISTEN}\nhome_url = "https://[fe80::1%eth0]:8443"'


def qd(table: str, *words: str) -> "subprocess.CompletedProcess[str]":
    with TemporaryDirectory(prefix="qd-") as home:
        (Path(home) / "config.toml").write_text(f"[sandboxes]\n{table}\n")
        return forked.run(
            [*PROGRAM, *words],
            env={**os.environ, "QUARTERDECK_HOME": home},
            text=True,
            timeout=120,
        )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('driver = "lxc"', "sandboxes.driver"),
        ('driver = "docker"\naddress = "npipe://x"', "sandboxes.address"),
        (f'driver = "docker"\naddress = "tcp://192.0.2.1:2375"\n{SECURE}', "needs certificates"),
        ('driver = "docker"\naddress = "ssh://build-1"', "need a home_url"),
        (f'driver = "docker"\naddress = "tcp://x:1"\ncertificates = "x"\n{SECURE}', "lacks ca.pem"),
        (
            'driver = "docker"\naddress = "ssh://x"\nhome_url = "http://127.0.0.1:80"',
            "sandboxes.home_url",
        ),
        ('driver = "docker"\nhome_url = "deck.example"', "sandboxes.home_url"),
        ('driver = "docker"\nswarm = true', "need a home_url"),
        ('driver = "process"\nswarm = true', 'swarm needs driver = "docker"'),
        ('driver = "docker"\nconstraints = ["node.role==worker"]', "set swarm = true"),
        ('driver = "docker"\nstorage = "20 GB"', "sandboxes.storage"),
        ('driver = "process"\nstorage = "20Gi"', "a cluster has kubernetes.storage"),
        ('driver = "docker"\nswarm = true\nhome_url = "http://127.0.0.1:80"', "sandboxes.home_url"),
        ('driver = "kubernetes"', "needs an image that its nodes can pull, and a home_url"),
        (
            f'driver = "kubernetes"\nimage = "x"\naddress = "ssh://x"\n{SECURE}',
            "kubernetes.context",
        ),
        (
            'driver = "kubernetes"\nimage = "x"\nhome_url = "http://127.0.0.1:80"',
            "sandboxes.home_url",
        ),
        ('driver = "docker"\nhome_url = "http://192.0.2.1:80"', "sandboxes.home_url"),
        ('driver = "docker"\nhome_url = "http://nowhere.invalid"', "sandboxes.home_url"),
        ('driver = "docker"\nhome_listen = "0.0.0.0:8443"', "home_listen needs a home_url"),
        (f'driver = "docker"\nhome_ca = "x"\n{SECURE}', "sandboxes.home_ca: "),
        (f'driver = "docker"\nhome_ca = "x"\nhome_listen = "x:1"\n{SECURE}', "leave home_ca out"),
        (UMLAUT, "certificate for münchen.example"),
        (SCOPED, "certificate for fe80::1%eth0"),
    ],
)
def test_the_service_does_not_start_with_what_cannot_work(table: str, said: str) -> None:
    done = qd(table, "serve")
    assert done.returncode != 0
    assert said in done.stderr and "Traceback" not in done.stderr


def test_the_private_key_in_a_file_of_certificates_is_not_given_to_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    made = tmp_path / "made.pem"
    certificate = certificate_for(made, "192.0.2.1")
    assert "PRIVATE KEY" in made.read_text()
    table = SandboxesTable(driver="docker", home_url="https://192.0.2.1:8443", home_ca="made.pem")
    containers = DockerContainers(Home(tmp_path), "image", NOWHERE)
    assert WayHome(Home(tmp_path), containers, table).address.ca == certificate


def test_the_doctor_says_that_docker_does_not_answer() -> None:
    done = qd(f'driver = "docker"\naddress = "{NOWHERE}"', "doctor", "--json")
    found: dict[str, Any] = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1 and found["docker"]["level"] == "fail"
    assert NOWHERE in found["docker"]["message"]


class Rootless(BaseHTTPRequestHandler):
    """What podman 4.3.1 answers without root, on control groups of version 1."""

    ANSWERS: ClassVar[dict[str, object]] = {
        "version": {
            "ApiVersion": "1.41",
            "Version": "4.3.1",
            "Components": [{"Name": "Podman Engine", "Version": "4.3.1"}],
        },
        "info": {
            "NCPU": 2,
            "Rootless": True,
            "CgroupVersion": "1",
            **dict.fromkeys(("CpuCfsQuota", "MemoryLimit", "PidsLimit"), True),
        },
        "quarterdeck": {
            "Id": "quarterdeck",
            "Options": {},
            "IPAM": {"Config": [{"Subnet": "10.89.0.0/24", "Gateway": "10.89.0.1"}]},
        },
    }

    def do_GET(self) -> None:
        body = json.dumps(self.ANSWERS[self.path.rpartition("/")[2]]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_a_rootless_engine_needs_an_address_of_the_service(tmp_path: Path) -> None:
    address = tmp_path / "podman.sock"
    with ThreadingUnixStreamServer(str(address), Rootless) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            table = f'driver = "docker"\naddress = "unix://{address}"'
            done = qd(table, "serve")
            assert done.returncode != 0 and "sandboxes.home_url" in done.stderr, done.stderr
            done = qd(table, "doctor", "--json")
        finally:
            server.shutdown()
    checks = json.loads(done.stdout)["checks"]
    said = [(one["name"], one["level"], one["message"]) for one in checks]
    assert ("docker", "ok", "Podman Engine 4.3.1, bridge 10.89.0.1") in said
    assert "container sizes" not in [name for name, _, _ in said]
    gaps = " ".join(message for name, _, message in said if name == "container gap")
    assert "processor time, memory, processes" in gaps and "each other's ports" in gaps
    assert any(level == "fail" and "sandboxes.home_url" in message for _, level, message in said)


def test_the_doctor_says_that_there_can_be_no_certificate() -> None:
    (message,) = [
        one["message"]
        for one in json.loads(qd(UMLAUT, "doctor", "--json").stdout)["checks"]
        if "certificate" in one["message"]
    ]
    assert "sandboxes.home_url" in message


@pytest.mark.parametrize(
    ("swarm", "said"),
    [
        (None, "is not part of a Swarm"),
        ({"LocalNodeState": "inactive", "ControlAvailable": False}, "is not part of a Swarm"),
        ({"LocalNodeState": "active", "ControlAvailable": False}, "is a worker of a Swarm"),
    ],
    ids=["podman", "no member", "worker"],
)
def test_a_swarm_needs_a_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swarm: object, said: str
) -> None:
    info: Any = Rootless.ANSWERS["info"]
    monkeypatch.setitem(Rootless.ANSWERS, "info", {**info, "Swarm": swarm})
    address = tmp_path / "docker.sock"
    with ThreadingUnixStreamServer(str(address), Rootless) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            table = f'driver = "docker"\nswarm = true\naddress = "unix://{address}"\n{SECURE}'
            served, checked = qd(table, "serve"), qd(table, "doctor", "--json")
        finally:
            server.shutdown()
    assert served.returncode != 0 and said in served.stderr and "manager" in served.stderr
    (docker,) = [one for one in json.loads(checked.stdout)["checks"] if one["name"] == "docker"]
    assert docker["level"] == "fail" and said in docker["message"]


def test_the_service_starts_while_the_cluster_is_away(tmp_path: Path) -> None:
    """It says why replicas there wait; the doctor says it, too."""
    with socket.socket() as closed:  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{closed.getsockname()[1]}"
        config = tmp_path / "kubeconfig"
        config.write_text(json.dumps(kubeconfig(host)))
        table = f'driver = "kubernetes"\nimage = "x"\n{SECURE}'
        with TemporaryDirectory(prefix="qd-") as home:
            (Path(home) / "config.toml").write_text(f"[sandboxes]\n{table}\n")
            variables = {**os.environ, "QUARTERDECK_HOME": home, "KUBECONFIG": str(config)}
            with forked.ForkedPopen(
                [*PROGRAM, "serve", "--json"],
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as service:
                assert service.stdout is not None and service.stderr is not None
                ready = service.stdout.readline()
                service.terminate()
                said = service.stderr.read()
            assert '"ready": true' in ready and f"does not answer at {host}" in said
            checked = forked.run([*PROGRAM, "doctor", "--json"], env=variables, text=True)
    found: dict[str, Any] = {one["name"]: one for one in json.loads(checked.stdout)["checks"]}
    assert found["kubernetes"]["level"] == "fail" and host in found["kubernetes"]["message"]


@pytest.mark.parametrize("damage", [{"users": [{"name": "other"}]}, "text", "{"])
def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path, damage: Any) -> None:
    config = tmp_path / "kubeconfig"
    whole = kubeconfig("https://127.0.0.1:1")
    config.write_text(damage if isinstance(damage, str) else json.dumps(whole | damage))
    variables = {
        **os.environ,
        "QUARTERDECK_HOME": str(tmp_path / "home"),
        "KUBECONFIG": str(config),
    }
    Path(variables["QUARTERDECK_HOME"]).mkdir(mode=0o700)
    table = f'[sandboxes]\ndriver = "kubernetes"\nimage = "x"\n{SECURE}\n'
    (tmp_path / "home" / "config.toml").write_text(table)
    checked = forked.run([*PROGRAM, "doctor", "--json"], env=variables, text=True)
    found: dict[str, Any] = {one["name"]: one for one in json.loads(checked.stdout)["checks"]}
    assert found["kubernetes"]["level"] == "fail" and str(config) in found["kubernetes"]["message"]


def test_an_image_cannot_be_built_without_docker() -> None:
    done = qd(f'driver = "docker"\naddress = "{NOWHERE}"', "image", "build")
    assert done.returncode == 1 and NOWHERE in done.stderr


def test_an_image_has_the_engine_and_not_the_service() -> None:
    file = io.BytesIO()
    write_context(file)
    file.seek(0)
    with tarfile.open(fileobj=file) as tar:
        names = set(tar.getnames())
    assert {"Dockerfile", "requirements.txt", "wheels", "agents"} <= names
    assert "quarterdeck/engine/dial_home.py" in names and "quarterdeck/cli/git_remote.py" in names
    packages = {Path(name).parts[1] for name in names if name.startswith("quarterdeck/")}
    assert not packages & {"tui", "service", "store", "transcript"}
    required = " ".join(engine_requirements())
    assert "pydantic" in required and "websockets" in required and "fastapi" not in required


def test_nothing_for_containers_is_loaded_where_none_are_chosen() -> None:
    script = (
        "import sys, quarterdeck.cli.serve, quarterdeck.cli.doctor, quarterdeck.engine.daemon\n"
        "import quarterdeck.service.server, quarterdeck.sandboxes.process\n"
        "print({name.partition('.')[0] for name in sys.modules}"
        " & {'websockets', 'aiodocker', 'aiohttp', 'kubernetes_asyncio'})"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
