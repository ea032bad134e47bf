"""What is said of a `tcp://` address whose certificates are wrong, and that changed ones are read."""

import asyncio
import logging
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes import docker
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.errors import EngineAwayError, SandboxError
from quarterdeck.service.certificate import certificate_for
from tests.containers.test_configured import Rootless
from tests.support.waiting import WAIT_SECONDS, eventually


class Engine(ThreadingHTTPServer):
    """A container engine that speaks TLS, and accepts one client's certificate."""

    context: ssl.SSLContext

    def use(self, certificate: Path) -> None:
        """Have this certificate from now on, and accept it of clients."""
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificate)
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_cert_chain(certificate)
        self.context = made

    def get_request(self) -> tuple[ssl.SSLSocket, Any]:
        connection, address = super().get_request()
        return self.context.wrap_socket(connection, server_side=True), address

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.server_port}"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    for name in ("first", "second"):
        certificate_for(tmp_path / f"{name}.pem", "127.0.0.1")
    with Engine(("127.0.0.1", 0), Rootless) as server:
        server.use(tmp_path / "first.pem")
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()


def give(tmp_path: Path, name: str) -> Path:
    """Write a client's files, all from one; return their directory."""
    place = tmp_path / "certificates"
    place.mkdir(exist_ok=True)
    for file in ("ca.pem", "cert.pem", "key.pem"):
        (place / file).write_bytes((tmp_path / f"{name}.pem").read_bytes())
    return place


def seal(key: Path, to: Path) -> None:
    """Protect a key with a passphrase."""
    words = ("openssl", "pkcs8", "-topk8", "-v2", "aes256", "-passout", "pass:word")
    subprocess.run([*words, "-in", key, "-out", to], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("wrong", "details"),
    [
        ("another authority", "certificate verify failed"),
        ("damaged key", "PEM"),
        ("key with a passphrase", ""),
        ("no file", "No such file"),
    ],
)
async def test_wrong_certificates_are_named(
    engine: Engine, tmp_path: Path, wrong: str, details: str
) -> None:
    place = give(tmp_path, "second" if wrong == "another authority" else "first")
    key = place / "key.pem"
    if wrong == "damaged key":
        key.write_text("damaged")
    elif wrong == "no file":
        key.unlink()
    elif wrong == "key with a passphrase":
        seal(tmp_path / "first.pem", key)
    containers = DockerContainers(Home(tmp_path / "home"), "image", engine.url, place)
    try:
        with pytest.raises(SandboxError) as caught:
            await containers.open()
    finally:
        await containers.close()
    assert not isinstance(caught.value, EngineAwayError)
    assert f"TLS with the container engine at {engine.url} failed" in str(caught.value)
    assert str(place) in str(caught.value) and details in (caught.value.details or "")


async def test_changed_certificates_are_read_when_it_connects_again(
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(docker, "UNUSABLE_SECONDS", 0.01)
    back = asyncio.Event()

    async def connected() -> None:
        back.set()

    place = give(tmp_path, "first")
    containers = DockerContainers(Home(tmp_path / "home"), "image", engine.url, place)
    keeping = asyncio.create_task(containers.keep_connected(connected))
    try:
        await containers.open()
        engine.use(tmp_path / "second.pem")
        # Replicas wait until the certificates are right.
        with pytest.raises(EngineAwayError, match=f"Check the certificates .* in {place}"):
            await containers.require()
        assert containers.absence is not None and str(place) in containers.absence.reason
        await eventually(
            lambda: any(one.levelno == logging.ERROR for one in caplog.records), "an error"
        )
        give(tmp_path, "second")
        async with asyncio.timeout(WAIT_SECONDS):
            await back.wait()
        await containers.require()
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await containers.close()
