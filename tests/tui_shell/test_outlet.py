"""Output when the terminal has gone away."""

import asyncio
import os
import pty
import threading
from contextlib import closing

import pytest
from textual.drivers._writer_thread import WriterThread

from quarterdeck.tui.textual_ext.driver import Outlet


def test_the_writer_goes_on_when_the_terminal_is_gone() -> None:
    master, slave = pty.openpty()
    file = os.fdopen(slave, "w", encoding="utf-8")
    with closing(asyncio.new_event_loop()) as loop:
        outlet = Outlet(file, loop)
        writer = WriterThread(outlet)  # type: ignore[arg-type]
        writer.start()
        os.close(master)
        ended = threading.Event()

        def write() -> None:
            for _ in range(100):  # more than wait in its queue
                writer.write("frame")
            writer.stop()
            ended.set()

        threading.Thread(target=write, daemon=True).start()
        assert ended.wait(60)
        assert outlet.lost is not None
    with pytest.raises(OSError):
        file.close()
