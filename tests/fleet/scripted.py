"""A sandbox driver for tests that runs the real engine, with agents that follow a script.

Run as `python -m tests.fleet.scripted HOME`, a whole service over it, to be killed by tests.
"""

import asyncio
import os
import sys
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import open_service
from quarterdeck.wire.agents import Agent
from tests.fleet.doubles import DoubleDriver

ROOT = Path(__file__).parents[2]
AGENTS = [
    Agent(id="builtin", name="Scripted", available=True, supports_goal=True, supports_plan=True),
    Agent(id="gemini", name="Plain", available=True),
]


class ScriptedDriver(DoubleDriver):
    """Engines outlive the process that started them, as with the real drivers."""

    async def start(self, workspace_id: str) -> None:
        self.calls["start"] += 1
        if self.running(workspace_id):
            return
        place = self.place(workspace_id)
        (place / "engine.sock").unlink(missing_ok=True)
        log = str(place / "engine.log")
        pid = os.posix_spawn(  # noqa: ASYNC221 - it does not wait
            sys.executable,
            [sys.executable, "-m", "tests.fleet.scripted_engine", str(place)],
            {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(place)},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        (place / "pid").write_text(str(pid))
        while not (place / "engine.sock").exists():
            if not self.running(workspace_id):
                raise SandboxError("The engine did not start.", (place / "engine.log").read_text())
            await asyncio.sleep(0.01)


async def main(root: Path) -> None:
    home = Home(root)
    async with open_service(home, ScriptedDriver(home.workspaces), lambda: AGENTS) as context:
        context.fleet = Fleet(context)
        await serve(context, [UnixListener(home.socket)], lambda _: print("ready", flush=True))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
