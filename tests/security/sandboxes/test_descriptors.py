"""Open files that a program inside sends to the service: closing one may take as long as its sender wants."""

import asyncio
import errno
import json
import sys

import pytest
import uvloop

from quarterdeck.local.home import INSIDE_SOCKET, Home
from quarterdeck.sandboxes.kernel import may_refuse_descriptors
from quarterdeck.sandboxes.layout import SOCKETS_INSIDE, places_of
from quarterdeck.sandboxes.link import open_stream
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.listeners import InsideListener, bind
from tests.sandboxes.conftest import ENGINE, Bench

PYTHON = sys.executable
SENDING = """
import json, socket

def sent(channel):
    try:
        socket.send_fds(channel, [b"x"], [0])
    except OSError as e:
        return e.errno
    return 0
"""

pytestmark = pytest.mark.skipif(
    not may_refuse_descriptors(), reason="this kernel cannot refuse descriptors"
)


async def test_the_socket_for_callers_inside_takes_none(bench: Bench) -> None:
    workspace = await bench.started()
    script = places_of(bench.home, workspace).files / "send.py"
    url = (await bench.driver.layout(workspace)).service_url
    path = str(url).removeprefix("unix:")
    assert path in (f"{SOCKETS_INSIDE}/{INSIDE_SOCKET}", str(bench.home.inside_socket))
    script.write_text(
        f"{SENDING}\nwith socket.socket(socket.AF_UNIX) as channel:\n"
        f"    channel.connect({path!r})\n    print(sent(channel))\n"
    )
    bound = bind(InsideListener(bench.home.inside_socket))
    try:
        assert await bench.said(workspace, f"{PYTHON} send.py") == str(errno.EPERM)
    finally:
        bound.close()


ENGINE_OF_ITS_OWN = f"""{SENDING}
import os, sys
os.chdir(sys.argv[1])
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind("own.sock")
    listener.listen()
    print("listening", flush=True)
    channel, _ = listener.accept()
    with channel:
        channel.sendall(b"%d\\n" % sent(channel))
"""


async def test_a_link_to_an_engine_takes_none(bench: Bench) -> None:
    """Whatever listens where an engine would."""
    workspace = await bench.started()
    places = places_of(bench.home, workspace)
    (places.files / "engine.py").write_text(ENGINE_OF_ITS_OWN)
    run = (await bench.driver.layout(workspace)).run_dir
    start = f"mkfifo up; setsid {PYTHON} engine.py {run} > up 2>/dev/null </dev/null & head -1 up"
    assert await bench.said(workspace, start) == "listening"
    reader, writer = await open_stream(places.run / "own.sock", lambda _: None)
    assert await reader.readline() == b"%d\n" % errno.EPERM
    writer.close()
    await writer.wait_closed()


STREAMS = f"""{SENDING}
found = []
for number in range(3):
    with socket.socket(fileno=number) as stream:
        found.append(sent(stream))
        stream.detach()
print(json.dumps(found))
"""


def test_the_streams_of_a_command_take_none(home: Home) -> None:
    """In the service's event loop they are sockets. Programs of the replica come first on the command's PATH."""

    async def said() -> str:
        bench = Bench(home, ProcessDriver(home, engine=ENGINE, grace=1.0))
        workspace = await bench.provision()
        try:
            command = [PYTHON, "-c", STREAMS]
            unread = bytes(1 << 20)  # keeps the input open
            output = bench.driver.stream_command(workspace, command, directory="/", data=unread)
            return b"".join([part async for part in output]).decode()
        finally:
            await bench.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        text = runner.run(said())
    assert json.loads(text.removeprefix("x")) == [errno.EPERM] * 3
