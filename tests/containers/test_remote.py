"""Replicas on a Docker Engine of another machine: by SSH, and by TCP with TLS."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.errors import EngineAwayError, SandboxError
from tests.containers.daemons import IMAGE, Daemon, DockerEngine, left
from tests.containers.deck import Deck
from tests.git.remotes import SshRemote, ssh_remote
from tests.support.git import make_repository
from tests.support.tools import require
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.long,
    pytest.mark.parametrize("engine", [DockerEngine], ids=["docker"], indirect=True),
]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshRemote]:
    """A machine that the person's SSH knows, and may enter."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    base = tmp_path / "sshd"
    base.mkdir()
    with ssh_remote(base, require) as remote:
        settings = tmp_path / ".ssh"
        settings.mkdir()
        known = (base / "host_key.pub").read_text()
        (settings / "known_hosts").write_text(f"[127.0.0.1]:{remote.port} {known}")
        (settings / "config").write_text(
            f"Host build-1\n  HostName 127.0.0.1\n  Port {remote.port}\n  User root\n"
            f"  IdentityFile {remote.key}\n"
        )
        yield remote


@asynccontextmanager
async def deck_on(
    engine: Daemon, address: str, certificates: Path | None = None
) -> AsyncIterator[Deck]:
    with TemporaryDirectory(prefix="qd-") as directory:
        home = Home(Path(directory) / "home")
        containers = DockerContainers(home, IMAGE, address, certificates)
        try:
            await containers.open()
            made = Deck(home, containers, engine.host)
            await made.start()
            try:
                yield made
                for replica in (await made.get("/v1/replica?limit=100"))["replicas"]:
                    await made.client.delete(f"/v1/replica/{replica['id']}")
                assert left(engine) == []
            finally:
                await made.stop()
        finally:
            await containers.close()


def cut(machine: SshRemote) -> None:
    """End every connection to the machine, not its server."""
    children = Path(f"/proc/{machine.pid}/task/{machine.pid}/children").read_text().split()
    assert children
    for child in children:
        os.kill(int(child), signal.SIGKILL)


async def test_a_replica_on_a_machine_by_ssh(
    engine: Daemon, machine: SshRemote, tmp_path: Path
) -> None:
    address = f"ssh://build-1{engine.socket}"
    repository = make_repository(tmp_path / "shop")
    async with deck_on(engine, address) as deck:
        id = await deck.create(await deck.environment(str(repository)))
        assert (await deck.run(id, "id -u; cat shop/README")).startswith("1000\n")
        # The line is cut: what runs is reached without it, and it comes back by itself.
        cut(machine)
        assert await deck.run(id, "echo kept > note; cat note") == "kept\n"
        containers = deck.containers
        assert isinstance(containers, DockerContainers)

        async def noticed() -> bool:
            try:
                await containers.require()
            except EngineAwayError:
                return True
            return False

        await eventually(noticed, "the cut")
        await containers.open()
        await deck.post(f"/v1/replica/{id}/sleep")
        await deck.client.post(f"/v1/replica/{id}/wake")
        await deck.reach(id, "active")
        assert await deck.run(id, "cat note") == "kept\n"


async def test_a_machine_is_known_by_its_key(
    engine: Daemon, machine: SshRemote, tmp_path: Path
) -> None:
    known = tmp_path / ".ssh/known_hosts"
    right, config = known.read_text(), tmp_path / ".ssh/config"

    async def refused(path: Path = engine.socket) -> SandboxError:
        containers = DockerContainers(Home(tmp_path / "home"), IMAGE, f"ssh://build-1{path}")
        try:
            with pytest.raises(SandboxError) as caught:
                await containers.open()
            return caught.value
        finally:
            await containers.close()

    other = (machine.key.with_suffix(".pub")).read_text()
    for text in ("", right.split()[0] + " " + other):
        known.write_text(text)
        assert "known_hosts" in str(await refused())
    written = config.read_text()
    config.write_text(f"{written}  UserKnownHostsFile none\n")
    assert "known_hosts" in str(await refused())
    config.write_text(written)
    known.write_text(right)
    missing = await refused(tmp_path / "nothing")
    assert isinstance(missing, EngineAwayError) and "cannot be opened" in str(missing)
    authorized = machine.key.with_name("authorized_keys")
    authorized.write_text("")
    assert "none of your SSH keys" in str(await refused())


def openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


@pytest.fixture
def certificates(engine: Daemon, tmp_path: Path) -> Path:
    """What dockerd and its client need, as Docker's documentation makes it."""
    place = tmp_path / "certificates"
    place.mkdir()
    short = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    for name in ("ca", "stranger"):
        key = place / f"{name}-key.pem"
        made = ("-keyout", key, "-out", place / f"{name}.pem", "-subj", f"/CN={name}")
        openssl("req", "-x509", *short, *made)
    for name, signer, extension in (
        ("server", "ca", f"subjectAltName=IP:{engine.inside}"),
        ("client", "ca", "extendedKeyUsage=clientAuth"),
        ("other", "stranger", "extendedKeyUsage=clientAuth"),
    ):
        (place / "extensions").write_text(extension)
        made = ("-keyout", place / f"{name}-key.pem", "-out", place / f"{name}.csr")
        openssl("req", "-newkey", "rsa:2048", "-nodes", *made, "-subj", f"/CN={name}")
        by = ("-CA", place / f"{signer}.pem", "-CAkey", place / f"{signer}-key.pem")
        signed = (*by, "-CAcreateserial", "-days", "2", "-extfile", place / "extensions")
        openssl(
            "x509", "-req", "-in", place / f"{name}.csr", *signed, "-out", place / f"{name}.pem"
        )
    for client in ("client", "other"):
        own = place / f"of-{client}"
        own.mkdir()
        for name, source in (("ca", "ca"), ("cert", client), ("key", f"{client}-key")):
            (own / f"{name}.pem").write_bytes((place / f"{source}.pem").read_bytes())
    return place


async def test_a_replica_by_tcp_with_certificates(engine: Daemon, certificates: Path) -> None:
    address = f"tcp://{engine.inside}:2376"
    engine.kill()
    engine.more = (
        *("-H", address, "--tlsverify", "--tlscacert", str(certificates / "ca.pem")),
        *("--tlscert", str(certificates / "server.pem")),
        *("--tlskey", str(certificates / "server-key.pem")),
    )
    try:
        engine.start()
        async with deck_on(engine, address, certificates / "of-client") as deck:
            id = await deck.create(await deck.environment())
            assert await deck.run(id, "id -u") == "1000\n"
            await deck.post(f"/v1/replica/{id}/sleep")
            await deck.client.post(f"/v1/replica/{id}/wake")
            await deck.reach(id, "active")
        with pytest.raises(EngineAwayError):
            async with deck_on(engine, address, certificates / "of-other"):
                pass
    finally:
        engine.kill()
        engine.more = ()
        engine.start()
