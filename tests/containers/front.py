"""One address for several services, as a load balancer has."""

import asyncio
from contextlib import suppress


class Front:
    """Each connection goes to the next service that accepts one."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self.ports: list[int] = []
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://{self._host}:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, self._host, 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self.cut()

    async def cut(self) -> None:
        """End every connection."""
        for one in self._open:
            one.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        # Not in the task, which does not begin when it is cut at once.
        task.add_done_callback(lambda _: writer.close())

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in self.ports:
            self.ports.append(port := self.ports.pop(0))
            with suppress(OSError):
                inner, outer = await asyncio.open_connection(self._host, port)
                break
        else:
            return
        pipes = [
            asyncio.create_task(_copy(one, other))
            for one, other in ((reader, outer), (inner, writer))
        ]
        try:
            await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pipe in pipes:
                pipe.cancel()
            await asyncio.gather(*pipes, return_exceptions=True)
            outer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
