"""The emulator's process with a core that dies of one sequence, as the native one may."""

import os
import socket
import sys

from quarterdeck.tui.terminal import worker
from quarterdeck.tui.terminal.ghostty import GhosttyCore


class PoisonedCore(GhosttyCore):
    def feed(self, data: bytes) -> None:
        if b"\x1b]666;" in data:
            os.abort()
        super().feed(data)


if sys.argv[1:] == ["silent"]:
    sys.exit(1)
worker.GhosttyCore = PoisonedCore
worker.resource.setrlimit(worker.resource.RLIMIT_CORE, (0, 0))
with socket.socket(fileno=0) as link:
    worker.TerminalWorker(link).run()
