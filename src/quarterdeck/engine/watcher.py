"""Ends an engine that is unreachable or unused.

Engines outlive the service. One whose directories were removed can no longer be found; one that
was unused for its auto-stop time would have been put to sleep by a running service.
"""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

from quarterdeck.engine.engine import Engine
from quarterdeck.engine.errors import JournalError
from quarterdeck.engine.rpc import RpcServer

logger = logging.getLogger(__name__)

WATCH_SECONDS = 20.0
"""Between two checks."""
ALONE_SECONDS = 60.0
"""A restarted service takes over its engines within this time."""


class FileWatcher:
    """Checks the engine's files and its use. `run` is cancelled when the engine ends."""

    def __init__(self, engine: Engine, server: RpcServer, files: Iterable[Path]) -> None:
        """Note the inodes of `files`, which are needed to find the engine and its state.

        Raises:
            OSError: one of them is missing.
        """
        self._engine = engine
        self._server = server
        self._files = {path: path.stat().st_ino for path in files}

    async def run(self) -> None:
        """Check from time to time, until the engine is to end."""
        while not self._engine.ending.is_set():
            await asyncio.sleep(WATCH_SECONDS)
            await self.check()

    async def check(self) -> None:
        """Ask the engine to end when it is time."""
        if removed := next((path for path in self._files if not self._is_there(path)), None):
            logger.error("ending: %s was removed", removed)
            self._engine.ending.set()
        elif self._server.alone_seconds >= ALONE_SECONDS and self._engine.unused:
            try:
                await self._engine.fall_asleep()
            except JournalError as fault:
                logger.warning("the engine stays awake: %s", fault)

    def _is_there(self, path: Path) -> bool:
        # Inside a sandbox a removed directory is still mounted, but empty.
        try:
            return path.stat().st_ino == self._files[path]
        except OSError:
            return False
