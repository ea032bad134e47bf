"""HTTP connections, their limits, and the headers of forwarded messages.

HTTP on one connection, with bounds on the cost of a request before its caller is known.

The underlying server limits neither the size nor the time of heads.

Limits of connections, by entrance and peer.

Any process that can reach a socket can open connections without a key, so they are limited before
the caller is known: by the number of files that the process may have open.
"""

import asyncio
import ipaddress
import json
import logging
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from quarterdeck.service.identity.service import INSIDE, OWNER
from quarterdeck.service.listeners import Bound, Entrance
from quarterdeck.service.middleware import is_owner, sandbox_of
from quarterdeck.wire.dial_home import BOOT_PATH, LINK_PATH
from quarterdeck.wire.errors import ErrorCode, ErrorObject

Header = tuple[bytes, bytes]

_OF_A_CONNECTION = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)


def end_to_end(headers: Iterable[Header]) -> list[Header]:
    """Return the headers to pass on: no hop-by-hop headers, nor those that `Connection` names."""
    every = list(headers)
    named = {
        word.strip().lower()
        for name, value in every
        if name.lower() == b"connection"
        for word in value.split(b",")
    }
    dropped = _OF_A_CONNECTION | named
    return [(name, value) for name, value in every if name.lower() not in dropped]


MARK = b"x-quarterdeck-forwarded"
"""Names the home that has passed a request on; it is never passed on twice."""

_OF_A_REQUEST = frozenset((b"host", b"expect", MARK))


def for_owner(headers: Iterable[Header], home_id: str) -> list[Header]:
    """Return a request's headers for the owner: the caller's own, and the forwarding service.

    `Via` also prevents the owner from treating a caller as the person who runs it.
    """
    kept = [(name, value) for name, value in _lowered(headers) if name not in _OF_A_REQUEST]
    return [*kept, (b"via", b"1.1 quarterdeck"), (MARK, home_id.encode())]


def for_caller(headers: Iterable[Header]) -> list[Header]:
    """Return a response's headers for the caller."""
    return _lowered(headers)


def _lowered(headers: Iterable[Header]) -> list[Header]:
    return [(name.lower(), value) for name, value in end_to_end(headers)]


ACCEPT_PAUSE_SECONDS = 1.0
"""Pause after the system refused to accept, for lack of files or memory."""

LOG_SECONDS = 60.0
"""Between two log lines about requests that were refused for the same reason."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of connections by entrance, and of one peer where peers are distinguished."""

    of: dict[Entrance, int]
    of_peer: dict[Entrance, int]


def limits_for(files: int) -> ConnectionLimits:
    """Return the limits of a process that may have this many files open.

    Sandboxes, the network and previews (each of whose connections takes two files) together get
    half, so there is always room for the owner and for the service's own files: its database,
    engines and programs. One sandbox gets a sixteenth of the share of all sandboxes; a peer of the
    network half, since everybody behind a proxy is the same peer; one replica a quarter of the
    share of previews.
    """
    inside = min(1024, files // 8)
    network = min(4096, files // 4)
    previews = min(512, files // 16)
    return ConnectionLimits(
        {
            Entrance.OWNER: files // 2,
            Entrance.INSIDE: inside,
            Entrance.NETWORK: network,
            Entrance.PREVIEW: previews,
        },
        {
            Entrance.INSIDE: max(8, inside // 16),
            Entrance.NETWORK: network // 2,
            Entrance.PREVIEW: max(4, previews // 4),
        },
    )


def limits_here() -> ConnectionLimits:
    """Return the current limits of this process."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limits_for(files)


class Connections:
    """Counts open connections, and decides whether to admit another."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._open: Counter[tuple[Entrance, str]] = Counter()
        self._full: set[tuple[Entrance, str]] = set()
        self._logged: dict[str, float] = {}

    def admit(self, entrance: Entrance, peer: str) -> bool:
        """Count a connection of a peer; False when there are too many, and it is not counted."""
        groups = self._groups(entrance, peer)
        for group, most in groups.items():
            if self._open[group] >= most:
                self._refuse(group, most)
                return False
        self._open.update(groups.keys())
        return True

    def release(self, entrance: Entrance, peer: str) -> None:
        """Stop counting an admitted connection."""
        for group, most in self._groups(entrance, peer).items():
            self._open[group] -= 1
            # Not every time: a peer that keeps trying must not fill the log.
            if self._open[group] <= most // 2 and group in self._full:
                self._full.discard(group)
                log.info("Connections are accepted again: %s", _named(group))
            if not self._open[group]:
                del self._open[group]

    def note_refused(self, entrance: Entrance, peer: str, reason: str) -> None:
        """Log that a request was refused, unless the same was logged a moment ago."""
        now = time.monotonic()
        if now - self._logged.get(reason, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged[reason] = now
            log.warning("A request was refused: %s (%s)", reason, _named((entrance, peer)))

    def _groups(self, entrance: Entrance, peer: str) -> dict[tuple[Entrance, str], int]:
        groups = {(entrance, ""): self._limits.of[entrance]}
        if peer:
            groups[entrance, peer] = self._limits.of_peer[entrance]
        return groups

    def _refuse(self, group: tuple[Entrance, str], most: int) -> None:
        if group not in self._full:
            self._full.add(group)
            log.warning("Connections are refused beyond %d: %s", most, _named(group))


def _named(group: tuple[Entrance, str]) -> str:
    entrance, peer = group
    return f"{entrance}, {peer}" if peer else str(entrance)


@dataclass(frozen=True)
class AdmittedPeer:
    """An admitted connection: its entrance, its peer, and the mark of its requests."""

    entrance: Entrance
    peer: str
    mark: str | None = None


class Acceptor:
    """Accepts connections on one socket, one by one: each is admitted, or closed at once.

    The event loop's own servers accept all waiting connections before they can be checked: more
    than the process may have files open, and then nothing is accepted for a while.
    """

    def __init__(
        self,
        bound: Bound,
        connections: Connections,
        protocol: Callable[[AdmittedPeer], asyncio.Protocol],
    ) -> None:
        self._bound = bound
        self._connections = connections
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._beginning: dict[asyncio.Task[None], socket.socket] = {}
        self._pause: asyncio.TimerHandle | None = None
        self._resume()

    async def close(self) -> None:
        """Accept no more; accepted connections continue."""
        self._loop.remove_reader(self._bound.socket)
        if self._pause is not None:
            self._pause.cancel()
        if self._bound.tls is not None:
            # A handshake may take long. It is not canceled: the loop would not say whether the protocol
            # has begun, and so who releases the connection.
            for accepted in self._beginning.values():
                with suppress(OSError):  # the peer has ended it
                    accepted.shutdown(socket.SHUT_RDWR)
        await asyncio.gather(*self._beginning, return_exceptions=True)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._bound.socket, self._accept)

    def _accept(self) -> None:
        try:
            accepted, _ = self._bound.socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # it was closed in the meantime
        except OSError as e:
            log.error("No connection can be accepted for a moment: %s", e)
            self._loop.remove_reader(self._bound.socket)
            self._pause = self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume)
            return
        peer = _recognize(accepted, self._bound.entrance)
        if not self._connections.admit(peer.entrance, peer.peer):
            accepted.close()
            return
        task = self._loop.create_task(self._begin(accepted, peer))
        self._beginning[task] = accepted
        task.add_done_callback(self._beginning.pop)

    async def _begin(self, accepted: socket.socket, peer: AdmittedPeer) -> None:
        try:
            accepted.setblocking(False)
            if accepted.family != socket.AF_UNIX:
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tls = self._bound.tls
            await self._loop.connect_accepted_socket(
                lambda: self._protocol(peer),
                accepted,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else HEAD_SECONDS,
            )
        except OSError as e:  # it has ended already
            log.debug("A connection ended before it was served: %s", e)
            accepted.close()
            self._connections.release(peer.entrance, peer.peer)


def _recognize(accepted: socket.socket, entrance: Entrance) -> AdmittedPeer:
    match entrance:
        case Entrance.NETWORK:
            return AdmittedPeer(entrance, _network_of(accepted))
        case Entrance.OWNER if is_owner(accepted):
            return AdmittedPeer(entrance, "", OWNER)
        case Entrance.OWNER:  # it does not count against the owner's connections
            return AdmittedPeer(Entrance.INSIDE, sandbox_of(accepted))
        case Entrance.INSIDE if accepted.family != socket.AF_UNIX:  # a container, by its address
            return AdmittedPeer(entrance, _network_of(accepted), INSIDE)
        case Entrance.INSIDE:
            return AdmittedPeer(entrance, sandbox_of(accepted), INSIDE)
        case Entrance.PREVIEW:  # its replica is known with its request
            return AdmittedPeer(entrance, "")


def _network_of(accepted: socket.socket) -> str:
    """Return the peer's address: with IPv6 its network, as a host has 64 bits of addresses."""
    try:
        address = ipaddress.ip_address(accepted.getpeername()[0].partition("%")[0])
    except OSError:
        return ""  # it has ended already
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))


HEAD_BYTES = 32 << 10
"""Limit of a request's line and headers."""

HEADERS = 100
"""Maximum number of fields of a request's head."""

HEAD_SECONDS = 10.0
"""From the connection, or a later head's first byte, to the end of the head."""

PIPELINED = 16
"""Maximum number of requests that wait on a connection while an earlier one is served."""

_TOO_LARGE = f"at most {HEAD_BYTES} bytes"
_TOO_MANY = f"at most {HEADERS} headers"
_HAS_BODY = "a request with Upgrade has no body"
_SINGLE = (b"host", b"authorization", b"service-org-id", b"x-workspace-id")
"""What says who asks whom: of two fields some would read the first, others the last."""
_BAD_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
)


_PATHS = (BOOT_PATH.encode(), LINK_PATH.encode())
"""Where a connection may become a WebSocket."""


class _RefusedHeadError(Exception):
    """The head exceeds a limit. Raised through the parser, which stops."""


class BoundedProtocol(HttpToolsProtocol):
    """HTTP on one admitted connection, within the limits.

    Requests of the installation's owner have `state["owner"]` in their scope, those over the socket
    for callers inside workspaces `state["inside"]`.
    """

    def __init__(
        self,
        peer: AdmittedPeer,
        counted: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
    ) -> None:
        marked = app_state if peer.mark is None else {**app_state, peer.mark: True}
        super().__init__(config, server_state, marked)
        self._admitted = peer
        self._counted = counted
        self._deadline: asyncio.TimerHandle | None = None
        """When the head, or the rest of a body whose request was answered, must be complete."""
        self._progressed = False
        """A request started, or a part of its body came, within the bytes that are being read."""
        self._pending_bytes = 0
        """How many bytes of an incomplete item the parser holds."""
        self._refused: str | None = None
        self._head_complete = False
        self._trailers = 0
        """How many fields came after the body of the request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to serve the connection."""
        super().connection_made(cast("Any", transport))
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._cancel_deadline()
        self._counted.release(self._admitted.entrance, self._admitted.peer)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._progressed = False
        rest = data
        try:
            while rest:
                try:
                    cast("Any", self.parser).feed_data(rest)
                    rest = b""
                except httptools.HttpParserUpgrade as upgrade:
                    if self._should_upgrade():
                        self._cancel_deadline()
                        self.handle_websocket_upgrade()
                        return
                    # No other protocol is supported: the request is answered as it is, and so are
                    # those that came with it.
                    rest = rest[upgrade.args[0] :]
        except httptools.HttpParserError:
            self.send_400_response(self._refused or "not valid HTTP")
            return
        if not self._progressed:  # one read is small
            self._pending_bytes += len(data)
        if self._pending_bytes > HEAD_BYTES:
            self.send_400_response(_TOO_LARGE)
        elif self._is_idle() and self.timeout_keep_alive_task is None:
            self._await_head()

    def on_message_begin(self) -> None:
        """Note that a request starts."""
        super().on_message_begin()
        self._head_complete, self._trailers = False, 0
        self._note_progress()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Accept a complete field of the head; ignore a trailer."""
        if self._head_complete:
            # The list is that of the request which is being served: a trailer must not change it.
            self._trailers += 1
        else:
            super().on_header(name, value)
        if len(self.headers) + self._trailers > HEADERS:
            self._refuse(_TOO_MANY)

    def on_headers_complete(self) -> None:
        """Note that the head is complete: the request is served."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > HEAD_BYTES:
            self._refuse(_TOO_LARGE)
        if len(self.pipeline) >= PIPELINED:
            self._refuse(f"at most {PIPELINED} requests at once")
        fields = Counter(name for name, _ in self.headers)
        for name in _SINGLE:
            if fields[name] > 1:
                self._refuse(f"at most one {name.decode()}")
        # The parser takes a body after a request with `Upgrade` for the other protocol, and a proxy
        # takes it for a body: what it contains would be a request of somebody else.
        if fields[b"upgrade"] and self._has_body():
            self._refuse(_HAS_BODY)
        self._cancel_deadline()
        self._head_complete = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that a part of the body came."""
        self._note_progress()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is complete with its body."""
        super().on_message_complete()
        self._pending_bytes = 0
        if cast("Any", self.parser).should_upgrade() and self._should_upgrade():
            return
        if self.cycle.response_complete and self.timeout_keep_alive_task is None:
            self._cancel_deadline()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def handle_websocket_upgrade(self) -> None:
        """Give the connection to an engine's WebSocket; it stays counted until that ends."""
        link = cast("Any", self.ws_protocol_class)
        entrance, peer = self._admitted.entrance, self._admitted.peer
        counted = self._counted
        self.ws_protocol_class = partial(link, on_lost=lambda: counted.release(entrance, peer))
        super().handle_websocket_upgrade()

    def _should_upgrade_to_ws(self) -> bool:
        supported = super()._should_upgrade_to_ws()
        return supported and self.url in _PATHS and self._is_idle()

    def send_400_response(self, msg: str) -> None:
        """Answer with the Error object, unless another answer is on its way, and close."""
        self._counted.note_refused(self._admitted.entrance, self._admitted.peer, msg)
        if self._is_idle():
            error = ErrorObject(
                error="The request is not valid.",
                details=f"head: {msg}",
                code=ErrorCode.INVALID_REQUEST,
            )
            body = json.dumps(error.model_dump(mode="json")).encode()
            self.transport.write(_BAD_REQUEST % (len(body), body))
        self.transport.close()

    def _has_body(self) -> bool:
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
            for name, value in self.headers
        )

    def _is_idle(self) -> bool:
        """Return whether every request so far was answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def _note_progress(self) -> None:
        self._progressed = True
        self._pending_bytes = 0

    def _refuse(self, reason: str) -> NoReturn:
        self._refused = reason
        raise _RefusedHeadError

    def _await_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._end_waiting)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_waiting(self) -> None:
        if not self.transport.is_closing():
            reason = f"not complete after {HEAD_SECONDS:.0f} seconds"
            self._counted.note_refused(self._admitted.entrance, self._admitted.peer, reason)
            self.transport.close()
