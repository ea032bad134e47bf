"""The real service in a process of its own, and a cockpit in this one over its socket."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual import _wait, events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from quarterdeck.client.client import Client
from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.errors import ClientError
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.service_choice import ServiceChoice
from quarterdeck.tui.app import Cockpit
from quarterdeck.tui.known_services import Surroundings
from quarterdeck.tui.options import Options
from quarterdeck.wire.environments import GLOBAL, CreateEnvironment
from quarterdeck.wire.replicas import CreateReplica, ReplicaDetail
from quarterdeck.wire.repositories import ConnectRepository
from tests.support import forked
from tests.support.waiting import eventually, pauses
from tests.tui_shell.frozen import screen_text, shows

WAIT_SECONDS = 60.0


@contextlib.contextmanager
def short_samples() -> Iterator[None]:
    """Let the pilot sample for 5 ms in place of 20 whether the process is idle, twice for each key.

    It was half the time of these tests. They wait for what they look at, so it need not be long.
    """
    usual = _wait.SLEEP_GRANULARITY, _wait.SLEEP_IDLE
    _wait.SLEEP_GRANULARITY, _wait.SLEEP_IDLE = 0.005, 0.0025
    try:
        yield
    finally:
        _wait.SLEEP_GRANULARITY, _wait.SLEEP_IDLE = usual


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
            self.process.wait(60)

    def client(self) -> Client:
        from quarterdeck.local.home import Home

        home = Home(self.home)
        key = home.key.read_text().strip()
        return Client(HttpConnection("http://local", key, socket=home.socket))

    async def ready(self) -> None:
        """Waits until the service answers."""
        async with asyncio.timeout(WAIT_SECONDS):
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

    async def create_with_repository(self, name: str, message: str | None = None) -> None:
        """A replica of an environment that is bound to the repository."""
        async with self.client() as client:
            known = await client.repositories.list()
            body = ConnectRepository(url=str(self.repository))
            repository = known[0] if known else await client.repositories.connect(body)
            bound = [e for e in await client.environments.list() if e.repository_id]
            binding = CreateEnvironment(name="shop", repository_id=repository.id)
            environment = bound[0] if bound else await client.environments.create(binding)
            await client.replicas.create(
                CreateReplica(name=name, environment_id=environment.id, message=message)
            )

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
        surroundings: Surroundings | None = None,
    ) -> AsyncIterator["Desk"]:
        """Opens a cockpit; no worker of it may fail."""
        self.cockpits += 1
        app = Cockpit(
            ServiceChoice(self.client, "local", None, "local"),
            drafts=drafts or self.home / f"client-{self.cockpits}",
            directory=self.repository,
            options=options,
            surroundings=surroundings,
        )
        with short_samples():
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
            await eventually(lambda: shows(self.app, texts))
        except AssertionError:
            raise AssertionError(f"not seen: {texts}\n{self.text}") from None
        await self.pilot.pause()

    async def miss(self, text: str) -> None:
        """Waits until it is on the screen no longer."""
        try:
            await eventually(lambda: text not in self.text)
        except AssertionError:
            raise AssertionError(f"still seen: {text}\n{self.text}") from None
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def tab_to(self, field: str) -> None:
        """Goes from field to field, to the one with this id."""
        for _ in range(30):
            await self.pilot.press("tab")
            if self.app.focused is not None and self.app.focused.id == field:
                return
        raise AssertionError(f"tab never comes to {field}")

    async def write(self, text: str) -> None:
        """Types a text in one burst and waits until it is taken; newlines are ctrl+j."""
        self.burst("ctrl+j" if c == "\n" else c for c in text)
        await self.pilot.pause()  # it is queued
        await eventually(lambda: not self.app.keys_waiting, f"the keys of {text!r}")
        await self.pilot.pause()

    def burst(self, keys: Iterable[str]) -> None:
        """Posts keys as a terminal does with what comes in one read."""
        for key in keys:
            character = key if len(key) == 1 else None
            name = _character_to_key(key) if character else key
            event = events.Key(name, character)
            event.set_sender(self.app)
            self.app.post_message(event)

    def replica(self, name: str) -> ReplicaState:
        return next(one for one in self.app.services.all() if one.full_name == name)

    @property
    def focus(self) -> str:
        """The kind of what has the focus."""
        return type(self.app.focused).__name__
