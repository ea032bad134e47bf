"""Keeps a library within bounds while it sends what a user asked for.

The library has a hundred services, made by many people. So the interpreter itself is asked, by an
audit hook, what it does: where it connects, which files it opens, whether it starts programs.
"""

import os
import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from quarterdeck.local.addresses import (
    AddressRefusedError,
    check_address,
    numeric_address,
    resolve,
)

_private: ContextVar[bool | None] = ContextVar("outgoing_private", default=None)
"""Whether the current thread may connect to private addresses; None while it is not confined."""
_connections = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg"))
_programs = frozenset(("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork"))
_READ_ONLY = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CERTIFICATES = ("/etc/ssl", "/etc/pki", "/usr/lib/ssl", "/usr/share/ca-certificates")
_SYSTEM = ("/etc/mime.types", "/usr/share/zoneinfo", "/dev/urandom")


@contextmanager
def confined(private: bool) -> Generator[None]:
    """Let the block connect only to judged addresses, read only its own code, and start nothing.

    What it may not do raises an OSError there. For one thread, without others that it starts.
    """
    _install_judge()
    token = _private.set(private)
    try:
        yield
    finally:
        _private.reset(token)


@cache
def _install_judge() -> None:
    """Install the audit hook, once: the interpreter has no way to remove one."""
    proxies = _proxy_addresses()

    def judge(event: str, arguments: tuple[Any, ...]) -> None:
        private = _private.get()
        if private is None:
            return
        if event in _connections:
            _judge_address(arguments[1], private, proxies)
        elif event == "open":
            _judge_file(arguments[0], arguments[2])
        elif event in _programs:
            raise PermissionError("A notification starts no programs.")

    sys.addaudithook(judge)


def _judge_address(address: Any, private: bool, proxies: frozenset[str]) -> None:
    host = str(address[0]) if isinstance(address, tuple) else ""  # pyright: ignore[reportUnknownArgumentType]
    if host in proxies:
        return
    numeric = numeric_address(host) if host else None
    if numeric is None:
        raise AddressRefusedError("A notification is sent only to addresses of the network.")
    check_address(numeric, private)


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
