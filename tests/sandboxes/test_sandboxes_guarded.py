"""A program inside lays traps where the service will write, read or connect."""

import os
import socket

import pytest

from quarterdeck.local.sockets import socket_address
from quarterdeck.sandboxes.layout import places_of


async def test_configuration_is_not_written_through_a_link(bench, tmp_path):
    target = tmp_path / "precious"
    target.write_text("mine")
    workspace = await bench.provision()
    run = places_of(bench.home, workspace).run
    (run / "engine.json").symlink_to(target)
    await bench.driver.write_config(workspace, "{}")
    assert target.read_text() == "mine"
    assert (run / "engine.json").read_text() == "{}"
    assert sorted(path.name for path in run.iterdir()) == ["engine.json"]


@pytest.mark.parametrize("kind", ["link", "pipe"])
async def test_the_log_is_not_written_through_a_trap(bench, tmp_path, kind):
    target = tmp_path / "precious"
    target.write_text("mine")
    workspace = await bench.provision()
    log = places_of(bench.home, workspace).run / "engine.log"
    if kind == "link":
        log.symlink_to(target)
    else:
        os.mkfifo(log)
    await bench.driver.start(workspace)
    assert target.read_text() == "mine"
    assert log.is_file()
    assert not log.is_symlink()


async def test_the_log_before_is_kept_once(bench):
    workspace = await bench.provision()
    log = places_of(bench.home, workspace).run / "engine.log"
    log.write_text("first life")
    await bench.driver.start(workspace)
    assert log.with_name("engine.log.1").read_text() == "first life"


async def test_no_connection_through_a_link(bench, tmp_path):
    """The service must not be led to a socket outside, such as its own."""
    workspace = await bench.provision()
    outside = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        with socket_address(outside) as address:
            listener.bind(address)
        listener.listen()
        places_of(bench.home, workspace).run.joinpath("engine.sock").symlink_to(outside)
        with pytest.raises(ConnectionError):
            await bench.driver.connect(workspace)
        assert not await bench.driver.alive(workspace)


@pytest.mark.parametrize("make", ["nothing", "file", "directory"])
async def test_what_is_no_socket(bench, make):
    workspace = await bench.provision()
    path = places_of(bench.home, workspace).run / "engine.sock"
    if make == "file":
        path.write_text("")
    elif make == "directory":
        path.mkdir()
    with pytest.raises(ConnectionError):
        await bench.driver.connect(workspace)
    assert not await bench.driver.alive(workspace)
