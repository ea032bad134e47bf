"""One connection to a preview, passed on to the program in the workspace.

Both sides are HTTP/1.1; a connection is passed on request by request, as each names its preview
anew. After a switch of protocols (a websocket) bytes go both ways until either side ends.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import h11

from quarterdeck.service.previews.addresses import Address, browser_url, read_address
from quarterdeck.service.previews.headers import for_client, for_upstream, value_of

HEAD_BYTES = 64 << 10
READ_BYTES = 64 << 10
IDLE_SECONDS = 60.0
"""A connection on which no request comes is closed."""
CONNECT_SECONDS = 5.0

LOOPBACKS = ("127.0.0.1", "::1")
"""Where a program that listens on localhost may be."""

Event = h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]


class Refused(Exception):
    """The request cannot be passed on: a status, and a line for a person."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


Resolve = Callable[[str], Awaitable[int]]
"""From a token to a port; raises `Refused`."""


@dataclass(frozen=True)
class Side:
    """One end: its protocol state and its stream."""

    state: h11.Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def receive(self) -> Event:
        """The next event, reading as much as it takes."""
        while (event := self.state.next_event()) is h11.NEED_DATA:
            self.state.receive_data(await self.reader.read(READ_BYTES))
        return event

    async def send(self, event: h11.Event) -> None:
        """Sends one event."""
        if data := self.state.send(event):
            self.writer.write(data)
            await self.writer.drain()


async def serve_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, resolve: Resolve
) -> None:
    """Serves a client's connection to its end."""
    client = Side(h11.Connection(h11.SERVER, HEAD_BYTES), reader, writer)
    try:
        while await _serve_request(client, resolve):
            client.state.start_next_cycle()
    except (OSError, h11.ProtocolError, TimeoutError):
        return  # either side is gone, or speaks something else
    finally:
        writer.close()


async def _serve_request(client: Side, resolve: Resolve) -> bool:
    """Passes one request on; False when the connection cannot be used again."""
    async with asyncio.timeout(IDLE_SECONDS):
        request = await client.receive()
    if not isinstance(request, h11.Request):
        return False
    try:
        address, port = await _find(request, resolve)
        reader, writer = await _connect(port)
    except Refused as e:
        await _refuse(client, e)
        return False
    program = Side(h11.Connection(h11.CLIENT, HEAD_BYTES), reader, writer)
    try:
        return await _exchange(client, program, request, address, port)
    finally:
        writer.close()


async def _find(request: h11.Request, resolve: Resolve) -> tuple[Address, int]:
    host = value_of(request.headers, b"host").decode("latin-1")
    address = read_address(host, request.target.decode("latin-1"))
    if address is None:
        raise Refused(404, "There is no preview at this address.")
    port = await resolve(address.token)
    if address.base and value_of(request.headers, b"sec-fetch-mode") == b"navigate":
        raise Refused(307, browser_url(host, address))
    return address, port


async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for host in LOOPBACKS:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(host, port)
        except OSError:
            continue
    raise Refused(502, f"Nothing listens on port {port} of the replica.")


async def _refuse(client: Side, error: Refused) -> None:
    text = f"{error}\n".encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")]
    if error.status == 307:
        headers.append(("Location", str(error)))
    headers.append(("Content-Length", str(len(text))))
    await client.send(h11.Response(status_code=error.status, headers=headers))
    if client.state.their_state is not h11.ERROR:
        await client.send(h11.Data(data=text))
        await client.send(h11.EndOfMessage())


async def _exchange(
    client: Side, program: Side, request: h11.Request, address: Address, port: int
) -> bool:
    await program.send(
        h11.Request(
            method=request.method,
            target=address.target,
            headers=for_upstream(request.headers.raw_items(), address, port),
        )
    )
    sending = asyncio.create_task(_pass_body(client, program))
    try:
        switched = await _pass_answer(program, client, address)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    if switched:
        await _pipe_both(client, program)
        return False
    return client.state.our_state is h11.DONE and client.state.their_state is h11.DONE


async def _pass_body(client: Side, program: Side) -> None:
    while True:
        event = await client.receive()
        if not isinstance(event, h11.Data | h11.EndOfMessage):
            return
        await program.send(event)
        if isinstance(event, h11.EndOfMessage):
            return


async def _pass_answer(program: Side, client: Side, address: Address) -> bool:
    """Passes the answer on to its end; True when the protocol was switched."""
    while True:
        event = await program.receive()
        match event:
            case h11.InformationalResponse() | h11.Response():
                switching = event.status_code == 101
                headers = for_client(event.headers.raw_items(), address, switching)
                kind = type(event)
                await client.send(
                    kind(status_code=event.status_code, headers=headers, reason=event.reason)
                )
                if switching:
                    return True
            case h11.Data():
                await client.send(event)
            case h11.EndOfMessage():
                await client.send(h11.EndOfMessage())
                return False
            case _:
                raise ConnectionError("The program ended before its answer did.")


async def _pipe_both(client: Side, program: Side) -> None:
    pipes = {
        asyncio.create_task(_pipe(client, program.writer)),
        asyncio.create_task(_pipe(program, client.writer)),
    }
    try:
        await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in pipes:
            task.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)


async def _pipe(source: Side, target: asyncio.StreamWriter) -> None:
    data = source.state.trailing_data[0]
    while True:
        if data:
            target.write(data)
            await target.drain()
        if not (data := await source.reader.read(READ_BYTES)):
            return
