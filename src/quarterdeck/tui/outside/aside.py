"""Another program has the terminal; behind it the cockpit goes on, but paints nothing.

    suspend --> driver silenced --> program runs, the loop too --> driver speaks again --> resume

So streams are read meanwhile, and what came is there when the person comes back.
"""

import asyncio
import contextlib
from collections.abc import Generator, Sequence
from typing import Any

from textual.app import App

_later: dict[App[Any], list[str]] = {}
"""What should go to the terminal when it is ours again."""


@contextlib.contextmanager
def stepped_aside(app: App[Any]) -> Generator[None]:
    """The terminal is somebody else's.

    Raises:
        SuspendNotSupported: it cannot be given away.
    """
    with app.suspend():
        driver: Any = app._driver  # pyright: ignore[reportPrivateUsage]
        # A driver that is suspended takes what it is given, and blocks the loop when it has enough.
        driver.write, driver.flush = _nowhere, _nothing
        _later[app] = []
        try:
            yield
        finally:
            del driver.write, driver.flush
            kept = _later.pop(app)
    for sequence in kept:
        driver.write(sequence)
    driver.flush()


def say_later(app: App[Any], sequence: str) -> bool:
    """Keeps what is for the terminal, if that is somebody else's now; whether it is."""
    if app in _later:
        _later[app].append(sequence)
    return app in _later


async def run_there(command: Sequence[str]) -> int:
    """Runs a program on the terminal; the code that it ended with.

    Raises:
        OSError: it did not start.
    """
    process = await asyncio.create_subprocess_exec(*command)
    try:
        return await process.wait()
    except asyncio.CancelledError:
        # The cockpit ends: nobody would give the terminal back to it.
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise


def _nowhere(data: str) -> None:
    """Instead of the driver's: what is painted is painted again afterwards."""


def _nothing() -> None:
    """The same for its other half."""
