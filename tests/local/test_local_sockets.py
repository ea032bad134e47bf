"""Unix sockets whose paths the kernel would refuse."""

import os
import socket
from pathlib import Path

import pytest

from quarterdeck.local.sockets import ADDRESS_LIMIT, socket_address


@pytest.mark.parametrize("depth", [0, 12])
def test_bind_and_connect(tmp_path, depth):
    directory = tmp_path.joinpath(*(["some-rather-long-name"] * depth))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "s.sock"
    assert (len(os.fsencode(path)) > ADDRESS_LIMIT) == (depth > 0)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as caller:
        with socket_address(path) as address:
            listener.bind(address)
        listener.listen()
        with socket_address(path) as address:
            caller.connect(address)
        answered, _ = listener.accept()
        with answered:
            answered.sendall(b"hello")
            assert caller.recv(5) == b"hello"
    assert path.is_socket()


def test_nothing_stays_open(tmp_path):
    path = tmp_path.joinpath(*(["some-rather-long-name"] * 8)) / "s"
    path.parent.mkdir(parents=True)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with socket_address(path) as address:
        assert len(address) < ADDRESS_LIMIT
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_missing_directory(tmp_path):
    path = tmp_path / ("x" * 120) / "s"
    with pytest.raises(FileNotFoundError), socket_address(path):
        pass
