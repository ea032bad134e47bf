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
from quarterdeck.service.listeners import Bound, Listener, bind
from quarterdeck.service.peers import PeerProtocol
from quarterdeck.service.probe import answers_health

GRACE_SECONDS = 3
"""How long running requests may take to end. Event streams get their end at once."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger(__name__)

Ready = Callable[[list[Bound]], None]


async def serve(
    context: ServiceContext, listeners: Sequence[Listener], on_ready: Ready | None = None
) -> None:
    """Serves until SIGTERM, SIGINT or cancellation; then ends streams, requests and the fleet.

    `on_ready` is called once `GET /v1/health` was answered on the first listener.

    Raises:
        AddressInUseError, ListenError: a socket cannot be opened; nothing was started.
        StartError: the application did not start; the log says why.
    """
    with ExitStack() as stack:
        bound = [_open(stack, listener) for listener in listeners]
        server = _Server(build_app(context), context)
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
    if await answers_health(bound[0].address):
        log.info("Ready", extra={"listening": [str(one.address) for one in bound]})
        if on_ready is not None:
            on_ready(bound)
    else:
        log.error("The service listens but does not answer its health request")


class _Server(uvicorn.Server):
    """The server, told to stop by us, so that open streams end first."""

    def __init__(self, app: FastAPI, context: ServiceContext) -> None:
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
        )
        super().__init__(config)
        self.listening = asyncio.Event()
        self._stopped = asyncio.Event()
        self._context = context

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
        self.listening.set()

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
