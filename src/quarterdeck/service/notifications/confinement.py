"""Keeps a library within bounds while it sends what a user asked for.

The library has a hundred services, made by many people. So the interpreter itself is asked, by an
audit hook, what it does: where it connects, which files it opens, whether it starts programs. It
reads all that a target answers, for as long as that comes, so connections are cut at a deadline, and
what it reads over HTTP and SMTP is limited.
"""

import os
import smtplib
import socket
import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from threading import Timer
from typing import Any, BinaryIO
from urllib.parse import urlsplit
from urllib.request import getproxies

from quarterdeck.local.addresses import (
    AddressRefusedError,
    check_address,
    numeric_address,
    resolve,
)

ANSWER_BYTES = 1 << 20
"""Limit of a target's answer over HTTP, and of all that a mail server says."""


class _Bounds:
    """What one thread may do. `private`: connect to private addresses; `proxies`: to these, too."""

    def __init__(self, private: bool, proxies: frozenset[str]) -> None:
        self.private = private
        self.proxies = proxies
        self._over = False
        self._connections: list[socket.socket] = []

    def note(self, connecting: socket.socket) -> None:
        """Keep a connection that is about to be made, to cut it.

        Raises:
            TimeoutError: the deadline has passed.
        """
        # A copy: TLS puts another object in the place of the connection's.
        self._connections.append(socket.socket(fileno=os.dup(connecting.fileno())))
        if self._over:
            raise TimeoutError("The notification was not accepted in time.")

    def cut(self) -> None:
        """End all connections, now and later."""
        self._over = True
        for connection in [*self._connections]:
            with suppress(OSError):  # it has ended, or was never made
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Forget the connections."""
        for connection in self._connections:
            connection.close()


_bounds: ContextVar[_Bounds | None] = ContextVar("notification_bounds", default=None)
"""Of the current thread; None while it is not confined."""
_connections = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg"))
_programs = frozenset(("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork"))
_READ_ONLY = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CERTIFICATES = ("/etc/ssl", "/etc/pki", "/usr/lib/ssl", "/usr/share/ca-certificates")
_SYSTEM = ("/etc/mime.types", "/usr/share/zoneinfo", "/dev/urandom")


@contextmanager
def confined(private: bool, seconds: float, proxy: bool = False) -> Generator[None]:
    """Let the block connect only to judged addresses, read only its own code, and start nothing.

    What it may not do raises an OSError there. For one thread, without others that it starts. After
    some seconds its connections are cut. With `proxy` it uses the proxies of the environment, which
    connect by their own rules.
    """
    _install_judge()
    _limit_answers()
    bounds = _Bounds(private, _proxy_addresses() if proxy else frozenset())
    deadline = Timer(seconds, bounds.cut)
    deadline.daemon = True
    deadline.start()
    token = _bounds.set(bounds)
    try:
        yield
    finally:
        _bounds.reset(token)
        deadline.cancel()
        deadline.join()
        bounds.close()


@cache
def _limit_answers() -> None:
    """Let the library's clients read answers up to a limit, once; they have no setting for it."""
    import requests

    library: Any = requests

    usual: Any = library.adapters.HTTPAdapter.send
    broken: Any = library.exceptions.ConnectionError

    def send(adapter: Any, request: Any, **given: Any) -> Any:
        if (bounds := _bounds.get()) is None:
            return usual(adapter, request, **given)
        if not bounds.proxies:
            given["proxies"] = {}
        request.headers["Accept-Encoding"] = "identity"  # a short answer may unpack to a long one
        answer: Any = usual(adapter, request, **{**given, "stream": True})
        try:
            content: bytes = answer.raw.read(ANSWER_BYTES + 1, decode_content=False)
        except Exception as e:
            answer.close()
            raise broken(e, request=request) from e
        if len(content) > ANSWER_BYTES:
            answer.close()
            raise broken("The answer is too long.", request=request)
        answer._content, answer._content_consumed = content, True
        return answer

    library.adapters.HTTPAdapter.send = send
    mail: Any = smtplib.SMTP
    reply: Any = mail.getreply

    def getreply(connection: Any) -> Any:
        if connection.file is None and _bounds.get() is not None:
            connection.file = _BoundedFile(connection.sock.makefile("rb"))
        return reply(connection)

    mail.getreply = getreply


class _BoundedFile:
    """What a mail server says. A reply may have any number of lines, and smtplib keeps all."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = ANSWER_BYTES
        self.close = file.close

    def readline(self, size: int) -> bytes:
        line = self._file.readline(size)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("The answer is too long.")
        return line


@cache
def _install_judge() -> None:
    """Install the audit hook, once: the interpreter has no way to remove one."""

    def judge(event: str, arguments: tuple[Any, ...]) -> None:
        bounds = _bounds.get()
        if bounds is None:
            return
        if event in _connections:
            _judge_address(arguments[1], bounds)
            bounds.note(arguments[0])
        elif event == "open":
            _judge_file(arguments[0], arguments[2])
        elif event in _programs:
            raise PermissionError("A notification starts no programs.")

    sys.addaudithook(judge)


def _judge_address(address: Any, bounds: _Bounds) -> None:
    host = str(address[0]) if isinstance(address, tuple) else ""  # pyright: ignore[reportUnknownArgumentType]
    if host in bounds.proxies:
        return
    numeric = numeric_address(host) if host else None
    if numeric is None:
        raise AddressRefusedError("A notification is sent only to addresses of the network.")
    check_address(numeric, bounds.private)


def _judge_file(path: Any, flags: Any) -> None:
    if isinstance(path, int):
        return
    name = os.path.realpath(os.fsdecode(path))
    if flags & _READ_ONLY or not name.startswith(_readable()):
        raise PermissionError(f"A notification does not read {name}.")


def _readable() -> tuple[str, ...]:
    own = {sysconfig.get_path("stdlib"), sys.prefix, sys.base_prefix}
    found = [os.path.realpath(path) + os.sep for path in (*own, *sys.path) if len(path) > 1]
    return (*found, *_CERTIFICATES, *_SYSTEM)


@cache
def _proxy_addresses() -> frozenset[str]:
    """Return the addresses of the environment's proxies, which make connections by their own rules."""
    found: set[str] = set()
    for url in getproxies().values():
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            found.update(resolve(parts.hostname or "", parts.port or 0, private=True))
        except OSError:
            continue  # it cannot be used either
    return frozenset(found)
