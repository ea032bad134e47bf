"""The socket of a container engine on another machine, before anything is connected to."""

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
