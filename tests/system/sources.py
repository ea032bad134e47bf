"""A git server that can be held up, so that a replica stays in preparation as long as a test likes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.git import git, make_repository


class _Handler(SimpleHTTPRequestHandler):
    server: "_Server"

    def do_GET(self) -> None:
        self.server.asked.set()
        self.server.gate.wait()
        try:
            super().do_GET()
        except (BrokenPipeError, ConnectionResetError):
            return  # a git that was ended meanwhile

    def log_message(self, format: str, *args: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(directory)))
        self.gate = threading.Event()
        self.asked = threading.Event()
        self.gate.set()


class Source:
    """A repository over HTTP. Nothing is answered between `hold` and `release`."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self.url = f"http://127.0.0.1:{server.server_address[1]}/shop.git"

    def hold(self) -> None:
        self._server.asked.clear()
        self._server.gate.clear()

    def wait_asked(self) -> None:
        """Until git waits for an answer."""
        assert self._server.asked.wait(60)

    def release(self) -> None:
        self._server.gate.set()


@contextmanager
def serve_source(directory: Path) -> Iterator[Source]:
    checkout = make_repository(directory / "shop")
    git(directory, "clone", "-q", "--bare", str(checkout), "shop.git")
    git(directory / "shop.git", "update-server-info")
    server = _Server(directory)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Source(server)
    finally:
        server.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
