"""The sockets a service listens on."""

import errno
import os
import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path

from quarterdeck.local.files import reason_of
from quarterdeck.local.sockets import refuse_descriptors, socket_address
from quarterdeck.service.errors import AddressInUseError, ListenError

BACKLOG = 512
OWNER_ONLY = 0o177
EVERYBODY = 0o111
LAST_PORT = 65_535
IP_FREEBIND = 15
"""Of Linux; the standard library does not name it."""


class Entrance(StrEnum):
    """The entrances of the service, each with its own connections."""

    OWNER = "the owner's socket"
    INSIDE = "the socket for sandboxes"
    NETWORK = "TCP"
    PREVIEW = "the port of previews"


@dataclass(frozen=True)
class UnixListener:
    """A unix socket, mode 0600. A stale socket is replaced."""

    path: Path


@dataclass(frozen=True)
class TcpListener:
    """A TCP address; port 0 lets the system choose one."""

    host: str
    port: int


@dataclass(frozen=True)
class InsideListener(UnixListener):
    """A unix socket for callers inside workspaces, who run as another user when we are root."""


@dataclass(frozen=True)
class InsideTcpListener(TcpListener):
    """A TCP address for callers inside workspaces: on the bridge of their containers.

    Some container engines make the bridge with the first container only, and remove it with the last.
    With a `certificate`, a file that holds its key as well, it speaks TLS.
    """

    certificate: Path | None = None


@dataclass(frozen=True)
class PreviewListener(TcpListener):
    """The TCP address at which browsers open previews."""


Listener = UnixListener | TcpListener


@dataclass(frozen=True)
class Bound:
    """An open socket and the address that reaches it: a path or (host, port)."""

    socket: socket.socket
    address: Path | tuple[str, int]
    entrance: Entrance
    inode: int | None = None
    tls: ssl.SSLContext | None = None

    def close(self) -> None:
        """Close the socket, and remove its file if that still belongs to it."""
        self.socket.close()
        _on_tcp.discard(self)
        if isinstance(self.address, Path) and _inode(self.address) == self.inode:
            self.address.unlink(missing_ok=True)


_on_tcp: set[Bound] = set()
"""Where this process listens, for `listens_here`."""


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is reached from its own machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bind(listener: Listener) -> Bound:
    """Open a listening socket.

    Raises:
        AddressInUseError: somebody listens there.
        ListenError: it cannot be opened for another reason.
    """
    match listener:
        case InsideListener(path):
            return _bind_unix(path, OWNER_ONLY if os.geteuid() else EVERYBODY, Entrance.INSIDE)
        case UnixListener(path):
            return _bind_unix(path, OWNER_ONLY, Entrance.OWNER)
        case InsideTcpListener(host, port, certificate):
            return _bind_tcp(host, port, Entrance.INSIDE, certificate)
        case PreviewListener(host, port):
            return _bind_tcp(host, port, Entrance.PREVIEW)
        case TcpListener(host, port):
            return _bind_tcp(host, port, Entrance.NETWORK)


def _bind_tcp(host: str, port: int, entrance: Entrance, certificate: Path | None = None) -> Bound:
    if not 0 <= port <= LAST_PORT:
        raise ListenError(f"Cannot listen on port {port}: ports go from 0 to {LAST_PORT}.")
    try:
        info = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        create = _early_server if entrance is Entrance.INSIDE else socket.create_server
        opened = create(info[0][4][:2], family=info[0][0], backlog=BACKLOG)
    except OSError as e:
        if e.errno == errno.EADDRINUSE:
            raise AddressInUseError(
                f"Port {port} on {host} is in use by another program; choose another port."
            ) from e
        raise ListenError(f"Cannot listen on {host} port {port}: {e.strerror or e}.") from e
    opened.setblocking(False)
    tls = None if certificate is None else _server_context(certificate)
    bound = Bound(opened, (host, opened.getsockname()[1]), entrance, tls=tls)
    _on_tcp.add(bound)
    return bound


def _server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


def _early_server(
    address: tuple[str | int, int | bytes], *, family: socket.AddressFamily, backlog: int
) -> socket.socket:
    """As `socket.create_server`, also at an address that this machine does not have yet."""
    opened = socket.socket(family)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        opened.bind(address)
        opened.listen(backlog)
    except BaseException:
        opened.close()
        raise
    return opened


def _bind_unix(path: Path, mask: int, entrance: Entrance) -> Bound:
    if _answers(path):
        raise AddressInUseError(f"Another service listens on {path}.")
    # Bound under another name and renamed: the path never names a socket that does not listen yet.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    refuse_descriptors(opened.fileno())
    try:
        draft.unlink(missing_ok=True)
        with socket_address(draft) as address, _umask(mask):
            opened.bind(address)
        opened.listen(BACKLOG)
        opened.setblocking(False)
        draft.replace(path)
    except OSError as e:
        opened.close()
        raise ListenError(f"Cannot listen on {path}: {reason_of(e)}.") from e
    return Bound(opened, path, entrance, _inode(path))


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            with socket_address(path) as address:
                probe.connect(address)
        except (ConnectionRefusedError, FileNotFoundError, NotADirectoryError):
            return False
        except OSError as e:
            raise ListenError(f"Cannot listen on {path}: {reason_of(e)}.") from e
    return True


def listens_here(port: int) -> bool:
    """Return whether this process listens on a TCP port."""
    open_ports = {one.socket.getsockname()[1] for one in _on_tcp if one.socket.fileno() >= 0}
    return port in open_ports


@contextmanager
def _umask(mask: int) -> Generator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except FileNotFoundError:
        return None
