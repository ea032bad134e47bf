"""A line to a service that can be cut: every byte goes through it."""

import asyncio
import contextlib
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

PIECE = 1 << 16


class CutLine:
    """Listens on loopback and passes everything on to a unix socket, until it is cut."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._whole = True
        self.port = 0

    def cut(self) -> None:
        """Breaks every connection, and refuses new ones."""
        self._do(whole=False)

    def mend(self) -> None:
        """Takes connections again."""
        self._do(whole=True)

    def _do(self, *, whole: bool) -> None:
        async def change() -> None:
            self._whole = whole
            if not whole:
                for writer in self._writers:
                    writer.transport.abort()

        asyncio.run_coroutine_threadsafe(change(), self._loop).result(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        try:
            there, here = await asyncio.open_unix_connection(str(self._target))
        except OSError:  # nobody listens
            writer.transport.abort()
            return
        self._writers |= {writer, here}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, here))
                group.create_task(_pass_on(there, writer))
        finally:
            self._writers -= {writer, here}
            for end in (writer, here):
                end.close()

    @contextmanager
    def running(self) -> Generator["CutLine"]:
        """Serves in a thread of its own."""
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        listening = asyncio.start_server(self._serve, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(10)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._end(server), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        for writer in self._writers:
            writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
