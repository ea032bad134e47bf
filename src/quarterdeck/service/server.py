"""Runs the application on its sockets until it is told to stop."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager

import uvicorn
from fastapi import FastAPI

from quarterdeck.service.app import build_app
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import StartError
from quarterdeck.service.listeners import Bound, InsideListener, Listener, bind
from quarterdeck.service.peers import InsideProtocol, PeerProtocol
from quarterdeck.service.presence import address_of
from quarterdeck.service.probe import answers_health

GRACE_SECONDS = 3
"""How long running requests may take to end. Event streams get their end at once."""

KEEP_ALIVE_SECONDS = 75
"""An idle connection stays open longer than clients keep theirs: who closes first loses no request."""

ASK_AGAIN_SECONDS = 0.5
"""Between two requests for its own health while it does not answer."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger(__name__)

Ready = Callable[[list[Bound]], None]


async def serve(
    context: ServiceContext,
    listeners: Sequence[Listener],
    on_ready: Ready | None = None,
    advertise: str | None = None,
) -> None:
    """Serves until SIGTERM, SIGINT or cancellation; then ends streams, requests and the fleet.

    Callers inside workspaces have a socket of their own beside the listeners. `advertise` is where
    other services over the same database reach this one, unless a listener's own address serves.
    `on_ready` is called once `GET /v1/health` was answered on the first listener.

    Raises:
        AddressInUseError, ListenError: a socket cannot be opened; nothing was started.
        StartError: the application did not start; the log says why.
    """
    with ExitStack() as stack:
        bound = [_open(stack, listener) for listener in listeners]
        inside = _open(stack, InsideListener(context.home.inside_socket))
        context.address = advertise or address_of([one.address for one in bound])
        server = _Server(build_app(context), context, inside)
        with server.stopped_by_signals():
            await _run(server, bound, on_ready)


def _open(stack: ExitStack, listener: Listener) -> Bound:
    bound = bind(listener)
    stack.callback(bound.close)
    return bound


async def _run(server: "_Server", bound: list[Bound], on_ready: Ready | None) -> None:
    running = asyncio.create_task(server.serve([one.socket for one in bound]))
    announcing = asyncio.create_task(_announce(server, bound, on_ready))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        server.stop()
        await running
        raise
    finally:
        announcing.cancel()
        await asyncio.gather(announcing, return_exceptions=True)


async def _announce(server: "_Server", bound: list[Bound], on_ready: Ready | None) -> None:
    await server.listening.wait()
    # Whoever started it waits for this: a machine that is busy for a while must not make it never.
    while not await answers_health(bound[0].address):
        log.error("The service listens but does not answer its health request; it is asked again")
        await asyncio.sleep(ASK_AGAIN_SECONDS)
    log.info("Ready", extra={"listening": [str(one.address) for one in bound]})
    if on_ready is not None:
        on_ready(bound)


class _Server(uvicorn.Server):
    """The server, told to stop by us, so that open streams end first."""

    def __init__(self, app: FastAPI, context: ServiceContext, inside: Bound) -> None:
        config = uvicorn.Config(
            app,
            http=PeerProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            backlog=512,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        super().__init__(config)
        self.listening = asyncio.Event()
        self._stopped = asyncio.Event()
        self._context = context
        self._inside = inside

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts the application, then accepts.

        Raises:
            StartError: the application's lifespan failed.
        """
        try:
            await super().startup(sockets)
        except SystemExit as e:
            # The server's way to say that the lifespan failed, which has been logged.
            raise StartError("The service did not start; its log says why.") from e
        await self._listen_inside()
        self.listening.set()

    async def _listen_inside(self) -> None:
        """Serves the same application to callers inside workspaces, by another protocol."""

        def protocol() -> InsideProtocol:
            return InsideProtocol(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )

        loop = asyncio.get_running_loop()
        self.servers.append(await loop.create_server(protocol, sock=self._inside.socket))

    async def main_loop(self) -> None:
        """Waits to be stopped, without waking up in between."""
        await self.on_tick(0)
        await self._stopped.wait()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leaves signals alone: the server's own handlers would raise them again at the end."""
        yield

    @contextmanager
    def stopped_by_signals(self) -> Generator[None]:
        """Stops on a signal for the time of the block."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Ends streams now and the rest in order. A second time does not wait for requests."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._stopped.set()
        self._context.stopping.set()
        self._context.event_log.end_streams()
