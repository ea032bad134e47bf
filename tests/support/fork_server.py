"""Starts `python -m MODULE` as a fork of a process that has imported the program already.

What runs is a process of its own, with its own arguments, environment, directory, descriptors and
end; only reading the program's code again, which is most of a start, is left out. Run as
`python -P -m tests.support.fork_server SOCKET`; one line of JSON per process, with its standard
descriptors and the pipe that is told how it ended.
"""

import atexit
import contextlib
import gc
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from quarterdeck.service.app import ROUTE_TRIE

WHOLE = (
    "quarterdeck.cli",
    "quarterdeck.client",
    "quarterdeck.sandboxes",
    "quarterdeck.store",
    "quarterdeck.transcript",
)
"""Packages of which a verb and the service read what they need when they need it."""
PRELOADED = (
    "uvloop",
    "quarterdeck.agents.catalog",
    "quarterdeck.engine.daemon",
    "quarterdeck.service.server",
    "quarterdeck.service.identity.routes",
    "sqlite3",
    # What libraries read with their first request.
    "anyio._backends._asyncio",
    "encodings.idna",
    "fastapi.telemetry._runtime",
    "httpcore",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto",
)
REQUEST_BYTES = 1 << 20


def main(descriptor: int) -> None:
    """Serves until the other end is closed; in each fork it returns once the program has run."""
    gc.disable()
    for name in (*PRELOADED, *_modules()):
        __import__(name)
    # The service builds it with its first request.
    ROUTE_TRIE.find({"type": "http", "method": "GET", "path": "/"})
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


def _modules() -> Iterator[str]:
    for name in WHOLE:
        yield name
        for one in pkgutil.walk_packages(__import__(name, fromlist=["_"]).__path__, f"{name}."):
            yield one.name


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
    tempfile.tempdir = None  # an import may have asked for it already
    os.chdir(request["directory"])
    sys.argv = [request["module"], *request["arguments"]]
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        with contextlib.suppress(OSError):  # nobody reads what is left to print
            _exit(ended.code)
        raise


def _exit(code: Any) -> None:
    """End as an interpreter does, but leave all that was loaded to the system.

    To take it apart object by object would copy each of its pages, which costs more than most verbs.
    """
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


if __name__ == "__main__":
    main(int(sys.argv[1]))
