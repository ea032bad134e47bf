"""The socket of a container engine on another machine, before anything is connected to."""

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.ssh_tunnel import SshTunnel


def test_a_directory_too_deep_for_a_socket_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with pytest.raises(SandboxError, match="Set TMPDIR to a shorter one"):
        SshTunnel("ssh://build-1")
    assert list(deep.iterdir()) == []


def test_directories_of_killed_services_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(["true"]) as ended:
        directory = Path(name)  # short enough for a socket
        monkeypatch.setattr(tempfile, "tempdir", name)
        ended.wait()
        left, others = directory / f"qd-ssh-{ended.pid}-x", directory / f"qd-ssh-{os.getppid()}-x"
        for one in (left, others):
            one.mkdir()
            (one / "engine.sock").touch()
        tunnel = SshTunnel("ssh://build-1")
        assert {others, tunnel.path.parent} == set(directory.iterdir())
        asyncio.run(tunnel.close())
        assert [others] == list(directory.iterdir())
