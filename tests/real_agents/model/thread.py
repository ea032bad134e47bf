"""The model server in a thread of its own, for tests that wait by blocking."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.real_agents.model.dialect import Dialect
from tests.real_agents.model.server import WAIT_SECONDS, Model


class ModelThread:
    """`Model` from another thread."""

    def __init__(self, model: Model, loop: asyncio.AbstractEventLoop) -> None:
        self.model = model
        self._loop = loop

    @property
    def url(self) -> str:
        return self.model.url

    def release(self, name: str) -> None:
        self._loop.call_soon_threadsafe(self.model.release, name)

    def forget(self) -> None:
        self._loop.call_soon_threadsafe(self.model.forget)

    def waits(self, name: str, times: int = 1) -> None:
        waiting = asyncio.run_coroutine_threadsafe(self.model.waits(name, times), self._loop)
        waiting.result(WAIT_SECONDS + 5)


@contextmanager
def running(*dialects: Dialect) -> Iterator[ModelThread]:
    """A running server."""
    started: threading.Event = threading.Event()
    found: list[ModelThread] = []
    ending: list[asyncio.Event] = []

    async def serve() -> None:
        async with Model.running(*dialects) as model:
            ending.append(asyncio.Event())
            found.append(ModelThread(model, asyncio.get_running_loop()))
            started.set()
            await ending[0].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(WAIT_SECONDS)
    try:
        yield found[0]
    finally:
        found[0]._loop.call_soon_threadsafe(ending[0].set)
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()
