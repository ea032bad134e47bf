"""Ends the program when its terminal goes away, or when it is asked to end by a signal.

Textual's own reader would spin on the end of its input, and a killed program would leave the
terminal in the alternate screen.
"""

import asyncio
import contextlib
import select
import signal
import sys
from collections.abc import Callable, Generator

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ending_on_hangup(end: Callable[[], object]) -> Generator[None]:
    """Calls `end` in the running loop on SIGTERM, SIGHUP, and when the terminal hangs up."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, end)
    try:
        with _watching(loop, end):
            yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _watching(loop: asyncio.AbstractEventLoop, end: Callable[[], object]) -> Generator[None]:
    if not hasattr(select, "epoll"):
        yield
        return
    with select.epoll() as watch:
        # No event is asked for: a hang-up is always told, and what is typed wakes nobody here.
        watch.register(sys.__stdin__.fileno() if sys.__stdin__ else 0, 0)

        def hung_up() -> None:
            loop.remove_reader(watch.fileno())
            end()

        loop.add_reader(watch.fileno(), hung_up)
        try:
            yield
        finally:
            loop.remove_reader(watch.fileno())
