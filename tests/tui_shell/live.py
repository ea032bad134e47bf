"""The real service in a process of its own, and a cockpit in this one over its socket."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from quarterdeck.client.client import Client
from quarterdeck.client.connection import Connection
from quarterdeck.client.errors import ClientError
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.app import Cockpit
from quarterdeck.tui.options import Options
from quarterdeck.wire.environments import GLOBAL
from quarterdeck.wire.replicas import CreateReplica, ReplicaDetail
from tests.support import forked
from tests.support.waiting import pauses
from tests.tui_shell.frozen import screen_text

PATIENCE = 60.0


async def until(
    check: Callable[[], Any], what: str = "the condition", patience: float = PATIENCE
) -> Any:
    """The first true result of a check."""
    try:
        async with asyncio.timeout(patience):
            for pause in pauses(0.01):
                if found := check():
                    return found
                await asyncio.sleep(pause)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


@dataclass
class Installation:
    """A home with a service that can be killed and started again."""

    home: Path
    repository: Path
    process: subprocess.Popen[bytes] | None = None
    cockpits: int = field(default=0)

    def start(self) -> None:
        """Starts the service; returns when it answers."""
        self.process = forked.ForkedPopen(
            [sys.executable, "-m", "quarterdeck", "serve"],
            env={**os.environ, "QUARTERDECK_HOME": str(self.home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        """What a crash does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)

    def client(self) -> Client:
        from quarterdeck.local.home import Home

        home = Home(self.home)
        key = home.key.read_text().strip()
        return Client(Connection("http://local", key, socket=home.socket))

    async def ready(self) -> None:
        """Waits until the service answers."""
        async with asyncio.timeout(PATIENCE):
            for pause in pauses(0.02):
                with contextlib.suppress(OSError, ClientError):
                    async with self.client() as client:
                        await client.health.get()
                        return
                await asyncio.sleep(pause)

    async def create(self, name: str, message: str | None = None) -> ReplicaDetail:
        """A replica without a repository."""
        async with self.client() as client:
            environment = await client.environments.get(GLOBAL)
            body = CreateReplica(name=name, environment_id=environment.id, message=message)
            return await client.replicas.create(body)

    async def clear(self) -> None:
        """Deletes every replica."""
        async with self.client() as client:
            for record in [one async for one in client.replicas.all()]:
                await client.replicas.delete(record.id)

    @contextlib.asynccontextmanager
    async def cockpit(
        self,
        size: tuple[int, int] = (100, 30),
        drafts: Path | None = None,
        options: Options | None = None,
    ) -> AsyncIterator["Desk"]:
        """Opens a cockpit; no worker of it may fail."""
        self.cockpits += 1
        app = Cockpit(
            self.client,
            endpoint="local",
            drafts=drafts or self.home / f"client-{self.cockpits}",
            revive=None,
            directory=self.repository,
            options=options,
        )
        async with app.run_test(size=size, notifications=True) as pilot:
            yield Desk(app, pilot)
        assert not app.failures.path.exists(), app.failures.path.read_text()


@dataclass
class Desk:
    """Where a test sits: keys in, screen out."""

    app: Cockpit
    pilot: Pilot[Any]

    @property
    def text(self) -> str:
        return screen_text(self.app)

    async def see(self, *texts: str) -> None:
        """Waits until all of them are on the screen."""
        try:
            await until(lambda: all(text in self.text for text in texts))
        except AssertionError:
            raise AssertionError(f"not seen: {texts}\n{self.text}") from None
        await self.pilot.pause()

    async def miss(self, text: str) -> None:
        """Waits until it is on the screen no longer."""
        try:
            await until(lambda: text not in self.text)
        except AssertionError:
            raise AssertionError(f"still seen: {text}\n{self.text}") from None
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def write(self, text: str) -> None:
        """Types a text; newlines are ctrl+j."""
        await self.pilot.press(*("ctrl+j" if c == "\n" else c for c in text))

    def replica(self, name: str) -> ReplicaState:
        return next(one for one in self.app.deck.replicas.values() if one.name == name)

    @property
    def focus(self) -> str:
        """The kind of what has the focus."""
        return type(self.app.focused).__name__
