"""The socket of a container engine on another machine, before anything is connected to."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from quarterdeck.sandboxes import ssh_tunnel
from quarterdeck.sandboxes.errors import EngineAwayError, SandboxError
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
    """In a thread: the directory for temporary files may have any number of entries."""
    threads: set[int] = set()

    def removed(path: Path) -> None:
        threads.add(threading.get_ident())
        shutil.rmtree(path)

    monkeypatch.setattr(ssh_tunnel, "remove_tree", removed)
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(["true"]) as ended:
        directory = Path(name)  # short enough for a socket
        monkeypatch.setattr(tempfile, "tempdir", name)
        ended.wait()
        left, others = directory / f"qd-ssh-{ended.pid}-x", directory / f"qd-ssh-{os.getppid()}-x"
        for one in (left, others):
            one.mkdir()
            (one / "engine.sock").touch()
        tunnel = SshTunnel("ssh://127.0.0.1:1")
        with pytest.raises(EngineAwayError):
            asyncio.run(tunnel.open())
        assert {others, tunnel.path.parent} == set(directory.iterdir())
        assert threads and threading.get_ident() not in threads
        asyncio.run(tunnel.close())
        assert [others] == list(directory.iterdir())
