"""Serve the application: sockets, logs and the end of the process."""

import asyncio
import ctypes
import json
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI

from quarterdeck.local.open_files import raise_limit
from quarterdeck.service.app import build_app
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import AddressInUseError, ListenError, StartError
from quarterdeck.service.http_protocol import (
    Acceptor,
    AdmittedPeer,
    BoundedProtocol,
    Connections,
    limits_for,
)
from quarterdeck.service.listeners import Bound, InsideListener, Listener, bind
from quarterdeck.service.ownership import address_of
from quarterdeck.service.start import ServiceParts, answers_health
from quarterdeck.wire.dial_home import PART_BYTES

if TYPE_CHECKING:
    from quarterdeck.service.dial_home import LinkProtocol

GRACE_SECONDS = 3
"""How long running requests may take to end. Event streams end at once."""

KEEP_ALIVE_SECONDS = 75
"""An idle connection stays open longer than clients keep theirs: then the client closes first and
no request is lost."""

ASK_AGAIN_SECONDS = 0.5
"""Pause between two requests for its own health while it does not answer."""

TRIM_SECONDS = 300
"""Interval at which free memory is returned to the system."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger(__name__)

Ready = Callable[[list[Bound]], None]


async def serve(
    service: ServiceParts,
    listeners: Sequence[Listener],
    on_ready: Ready | None = None,
    advertise: str | None = None,
    inside: "asyncio.Queue[Listener] | None" = None,
) -> None:
    """Serve until SIGTERM, SIGINT or cancellation; then end streams, requests and the service.

    Callers inside workspaces have a separate socket, and the listeners `inside`, those that are put
    there later too. `advertise` is the URL at which other services on the same database reach this
    one, by default a listener's address. `on_ready` is called once
    `GET /v1/health` was answered on the first listener. The limit of open files is raised first
    (`local.open_files`).

    Raises:
        AddressInUseError, ListenError: a socket cannot be opened; nothing was started.
        StartError: the application did not start; the log says why.
    """
    context = service.context
    with ExitStack() as stack:
        bound = [_open(stack, listener) for listener in listeners]
        own = InsideListener(context.home.inside_socket)
        callers_inside = [_open(stack, own)]
        while inside is not None and not inside.empty():
            callers_inside.append(_open(stack, inside.get_nowait()))
        context.address = advertise or address_of(
            [bound_listener.address for bound_listener in bound]
        )
        connections = Connections(limits_for(raise_limit()))
        server = _Server(build_app(service), context, [*bound, *callers_inside], connections)
        with server.stopped_by_signals():
            await _run(server, bound, on_ready, inside and _open_later(server, stack, inside))


def _open(stack: ExitStack, listener: Listener) -> Bound:
    bound = bind(listener)
    stack.callback(bound.close)
    return bound


async def _open_later(
    server: "_Server", stack: ExitStack, listeners: "asyncio.Queue[Listener]"
) -> None:
    await server.listening.wait()
    while True:
        listener = await listeners.get()
        try:
            server.accept_on(_open(stack, listener))
        except (AddressInUseError, ListenError) as e:
            log.error("Replicas in containers cannot reach this service: %s", e)


async def _trim_memory() -> None:
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim)


async def _run(
    server: "_Server",
    bound: list[Bound],
    on_ready: Ready | None,
    opening: Coroutine[Any, Any, None] | None,
) -> None:
    running = asyncio.create_task(server.serve())
    beside = [
        asyncio.create_task(work)
        for work in (_announce(server, bound, on_ready), _trim_memory(), opening)
        if work is not None
    ]
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        server.stop()
        await running
        raise
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


async def _announce(server: "_Server", bound: list[Bound], on_ready: Ready | None) -> None:
    await server.listening.wait()
    # The parent process waits for this: a busy machine may delay it, but must not prevent it.
    while not await answers_health(bound[0].address):
        log.error("The service listens but does not answer its health request; it is asked again")
        await asyncio.sleep(ASK_AGAIN_SECONDS)
    log.info("Ready", extra={"listening": [str(listener.address) for listener in bound]})
    if on_ready is not None:
        on_ready(bound)


def _link_protocol() -> "type[LinkProtocol]":
    from quarterdeck.service.dial_home import LinkProtocol  # needed where engines dial home

    return LinkProtocol


class _Server(uvicorn.Server):
    """The server, stopped by this module, so that open streams end first.

    It accepts on the bound sockets itself, within limits (`service.http_protocol`).
    """

    def __init__(
        self,
        app: FastAPI,
        context: ServiceContext,
        bound: Sequence[Bound],
        connections: Connections,
    ) -> None:
        config = uvicorn.Config(
            app,
            ws=_link_protocol() if context.switchboard is not None else "none",
            ws_per_message_deflate=False,
            ws_max_size=PART_BYTES,
            lifespan="on",
            log_config=None,
            # It would put the address that a header names in the place of the peer's. Where that is
            # wanted, it is read there.
            proxy_headers=False,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        super().__init__(config)
        self.listening = asyncio.Event()
        self._stopped = asyncio.Event()
        self._context = context
        self._bound = bound
        self._connections = connections
        self._acceptors: list[Acceptor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then accept.

        Raises:
            StartError: the application's lifespan failed.
        """
        try:
            await super().startup([])
        except SystemExit as e:
            # The server's way to say that the lifespan failed, which has been logged.
            raise StartError("The service did not start; see its log.") from e
        for bound in self._bound:
            self.accept_on(bound)
        self.listening.set()

    def accept_on(self, bound: Bound) -> None:
        """Accept on one more socket."""
        self._acceptors.append(Acceptor(bound, self._connections, self._protocol))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and end accepted connections."""
        for acceptor in self._acceptors:
            await acceptor.close()
        await super().shutdown(sockets)

    def _protocol(self, admitted: AdmittedPeer) -> BoundedProtocol:
        return BoundedProtocol(
            admitted, self._connections, self.config, self.server_state, self.lifespan.state
        )

    async def main_loop(self) -> None:
        """Wait to be stopped, without waking up in between."""
        await self.on_tick(0)
        await self._stopped.wait()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Do not handle signals: the server's own handlers would raise them again at the end."""
        yield

    @contextmanager
    def stopped_by_signals(self) -> Generator[None]:
        """Stop on a signal during the block."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """End streams now, then the rest in order. A second signal does not wait for requests."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._stopped.set()
        self._context.stopping.set()
        self._context.event_log.end_streams()


_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class JsonFormatter(logging.Formatter):
    """A record with its extra fields as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "ts": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure_logging(level: int = logging.INFO) -> None:
    """Send every log record of the process to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # The server's messages about each start and stop are logged here already.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def trim() -> None:
    """Give free memory back to the system, where the C library can (glibc).

    By itself glibc returns only the end of each of its heaps, so what threads have freed before a piece
    that is still in use stays with a service for days.
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except AttributeError:  # another C library
        return
    malloc_trim(0)
