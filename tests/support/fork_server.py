"""Starts `python -m MODULE` as a fork of a process that has imported the program already.

What runs is a process of its own, with its own arguments, environment, directory, descriptors and
end; only reading the program's code again, which is most of a start, is left out. Run as
`python -P -m tests.support.fork_server SOCKET`; one line of JSON per process, with its standard
descriptors and the pipe that is told how it ended.
"""

import contextlib
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
from typing import Any

PRELOADED = (
    "uvloop",
    "quarterdeck.cli",
    "quarterdeck.cli.compose",
    "quarterdeck.client",
    "quarterdeck.client.client",
    "quarterdeck.service.routes.api_keys",
    "sqlite3",
)
REQUEST_BYTES = 1 << 20


def main(descriptor: int) -> None:
    """Serves until the other end is closed; in each fork it returns once the program has run."""
    gc.disable()
    for name in PRELOADED:
        __import__(name)
    gc.freeze()
    channel = socket.socket(fileno=descriptor)
    told: dict[int, int] = {}
    woken, wakes = os.pipe()
    for end in (woken, wakes):
        os.set_blocking(end, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    selector = selectors.DefaultSelector()
    selector.register(channel, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fd == woken:
                os.read(woken, 1024)
                _reap(told)
                continue
            data, passed, _, _ = socket.recv_fds(channel, REQUEST_BYTES, 4)
            if not data:
                return
            request = json.loads(data)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                return _become(request, passed)
            *standard, status = passed
            for one in standard:
                os.close(one)
            told[pid] = status
            channel.send(json.dumps(pid).encode())


def _reap(told: dict[int, int]) -> None:
    for pid in list(told):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            descriptor = told.pop(pid)
            with contextlib.suppress(BrokenPipeError):  # whoever started it is gone
                os.write(descriptor, json.dumps(status).encode())
            os.close(descriptor)


def _become(request: dict[str, Any], passed: list[int]) -> None:
    gc.enable()
    for number, descriptor in enumerate(passed[:3]):
        os.dup2(descriptor, number)
    os.closerange(3, 1024)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    sys.argv = [request["module"], *request["arguments"]]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
