"""A sandbox driver for tests that runs the real engine, with agents that follow a script.

Run as `python -m tests.fleet.scripted HOME`, a whole service over it, to be killed by tests.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import Size
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import build_service, open_service
from quarterdeck.wire.agents import Agent
from tests.fleet.doubles import DoubleDriver
from tests.support.forked import ForkedPopen, prepare

ROOT = Path(__file__).parents[2]
ENGINE = (sys.executable, "-m", "tests.fleet.scripted_engine")
AGENTS = [
    Agent(id="builtin", name="Scripted", available=True, supports_goal=True, supports_plan=True),
    Agent(id="gemini", name="Plain", available=True),
]


class ScriptedDriver(DoubleDriver):
    """Engines outlive the process that started them, as with the real drivers."""

    async def start(self, workspace_id: str, size: Size = "small") -> None:
        self.calls["start"] += 1
        if self.running(workspace_id):
            return
        place = self.place(workspace_id)
        (place / "engine.sock").unlink(missing_ok=True)
        (place / "pid").write_text(str(self.spawn(place)))
        while not (place / "engine.sock").exists():
            if not self.running(workspace_id):
                raise SandboxError("The engine did not start.", (place / "engine.log").read_text())
            await asyncio.sleep(0.01)

    def spawn(self, place: Path) -> int:
        """Start an engine; return its process."""
        log = str(place / "engine.log")
        return os.posix_spawn(
            sys.executable,
            [*ENGINE, str(place)],
            {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(place)},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )


class ForkedDriver(ScriptedDriver):
    """Takes engines from the fork server, which has read their code; for services of a test's own
    process.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._engines: list[ForkedPopen] = []
        prepare()

    def spawn(self, place: Path) -> int:
        with (place / "engine.log").open("ab") as log:
            engine = ForkedPopen(
                [*ENGINE, str(place)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "HOME": str(place)},
            )
        self._engines.append(engine)
        return engine.pid

    def kill_all(self) -> None:
        super().kill_all()
        for engine in self._engines:
            engine.kill()
            engine.wait()


async def main(root: Path) -> None:
    home = Home(root)
    async with open_service(home, ScriptedDriver(home.workspaces), lambda: AGENTS) as context:
        await serve(
            build_service(context),
            [UnixListener(home.socket)],
            lambda _: print("ready", flush=True),
        )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
