"""The program itself, on a container engine of the tests."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.containers.daemons import IMAGE, Daemon, configure
from tests.support.forked import ForkedPopen

PROGRAM = (sys.executable, "-I", "-m", "quarterdeck")


class Installation:
    """The program itself, with the service on the engine's own network."""

    def __init__(self, engine: Daemon, home: Path, more: str = "", image: str = IMAGE) -> None:
        configure(home, engine, more, image)
        self._inside = ("nsenter", f"--net=/run/netns/{engine.namespace}", *PROGRAM)
        self._variables = {**os.environ, "QUARTERDECK_HOME": str(home)}
        self.log = home / "log"

    async def said(self, *words: str, cwd: Path | None = None) -> tuple[int, str]:
        return await asyncio.to_thread(self._said, words, cwd)

    def _said(self, words: Sequence[str], cwd: Path | None) -> tuple[int, str]:
        with ForkedPopen(
            [sys.executable, "-P", "-m", "quarterdeck", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._variables,
            cwd=cwd,
        ) as process:
            output, _ = process.communicate()
        return process.returncode, output.decode()

    async def qd(self, *words: str, cwd: Path | None = None) -> str:
        code, said = await self.said(*words, cwd=cwd)
        assert code == 0, said
        return said

    @asynccontextmanager
    async def serving(self, *words: str) -> AsyncGenerator[None]:
        with self.log.open("wb") as stderr:
            service = await asyncio.create_subprocess_exec(
                *(*self._inside, "serve", "--json", *words),
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                env=self._variables,
            )
        try:
            assert service.stdout is not None
            assert b'"ready": true' in await service.stdout.readline(), self.log.read_text()
            yield
        finally:
            if service.returncode is None:
                service.terminate()
            await service.communicate()
