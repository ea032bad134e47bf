"""What is said of an `ssh://` address when the person's own SSH cannot be used."""

import asyncio
from pathlib import Path

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes import docker
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.errors import EngineAwayError, SandboxError
from tests.containers.test_configured import SECURE, qd
from tests.support.waiting import eventually

HOST = "Host build-1\n  HostName 127.0.0.1\n  Port 9\n"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the person's SSH."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    place = tmp_path / ".ssh"
    place.mkdir()
    (place / "broken").write_text(
        "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n-----END OPENSSH PRIVATE KEY-----\n"
    )
    return place


async def failure(home: Path, address: str = "ssh://build-1") -> SandboxError:
    containers = DockerContainers(Home(home), "image", address)
    try:
        with pytest.raises(SandboxError) as caught:
            await containers.open()
        return caught.value
    finally:
        await containers.close()


@pytest.mark.parametrize(
    ("config", "details"),
    [
        ("Host build-1\n  Port abc\n", "Invalid Port"),
        ('Host build-1\n  User "abc\n', "No closing quotation"),
        (f"{HOST}  IdentityFile ~/.ssh/broken\n", "Invalid PEM data"),
    ],
)
async def test_a_configuration_that_cannot_be_used_is_named(
    settings: Path, tmp_path: Path, config: str, details: str
) -> None:
    (settings / "config").write_text(config)
    error = await failure(tmp_path)
    assert "ssh://build-1: ~/.ssh/config or a file" in str(error)
    assert not isinstance(error, EngineAwayError) and details in (error.details or "")


async def test_a_key_that_is_missing_is_named(settings: Path, tmp_path: Path) -> None:
    (settings / "config").write_text(f"{HOST}  IdentityFile ~/.ssh/missing\n")
    error = await failure(tmp_path)
    missing = f"ssh://build-1: {settings}/missing cannot be read: No such file or directory."
    assert missing in str(error) and "IdentityFile" in str(error)
    assert not isinstance(error, EngineAwayError)


def test_the_service_says_what_is_wrong(settings: Path) -> None:
    (settings / "config").write_text("Host build-1\n  Port abc\n")
    done = qd(f'driver = "docker"\naddress = "ssh://build-1"\n{SECURE}', "serve")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "config line 2: Invalid Port" in done.stderr


@pytest.mark.parametrize("address", ["ssh://build-1:99999", "ssh://[::1"])
async def test_an_address_that_cannot_be_read_is_refused(
    settings: Path, tmp_path: Path, address: str
) -> None:
    error = await failure(tmp_path, address)
    assert f"sandboxes.address: {address} cannot be used" in str(error)
    assert not isinstance(error, EngineAwayError)


async def test_it_connects_again_after_the_configuration_was_repaired(
    settings: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A mistake in ~/.ssh/config while the machine is away does not end the attempts."""
    for name in ("AGAIN_SECONDS", "UNUSABLE_SECONDS"):
        monkeypatch.setattr(docker, name, 0.01)
    (settings / "config").write_text(HOST)
    containers = DockerContainers(Home(tmp_path), "image", "ssh://build-1")

    async def connected() -> None:
        """Nothing listens there."""

    with pytest.raises(EngineAwayError):
        await containers.open()
    (settings / "config").write_text("Host build-1\n  Port abc\n")
    keeping = asyncio.create_task(containers.keep_connected(connected))
    try:
        await eventually(lambda: keeping.done() or "Invalid Port" in caplog.text, "the mistake")
        containers.absence = None
        (settings / "config").write_text(HOST)
        await eventually(lambda: keeping.done() or containers.absence, "another attempt")
        assert not keeping.done()
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await containers.close()
