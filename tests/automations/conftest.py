"""A service with automations over doubled sandboxes, and a clock that tests turn."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from quarterdeck.service.app import build_app
from quarterdeck.service.automations.runner import AutomationRunner
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.identity.rows import only_organization
from tests.fleet.conftest import World, home, scripted, settings, world
from tests.support.waiting import eventually

__all__ = ["home", "scripted", "settings", "world"]

BEGIN = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
SCHEDULE: dict[str, Any] = {"type": "cron", "config": {"schedule": "0 9 * * *"}}


@dataclass
class Clock:
    """A clock that stands still until it is turned."""

    now: datetime = BEGIN

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **time: float) -> None:
        self.now += timedelta(**time)


@dataclass
class Office:
    """A world with a runner that works when it is told to."""

    world: World
    clock: Clock

    def begin(self) -> None:
        self.world.context.clock = self.clock

    @property
    def runner(self) -> AutomationRunner:
        return self.world.service.automations

    @property
    def app(self) -> FastAPI:
        """A second application over the same service."""
        return build_app(self.world.service)

    async def create(self, **body: Any) -> dict[str, Any]:
        answer = await self.post(body)
        assert answer.status_code == 201, answer.text
        return answer.json()["automation"]

    async def post(self, body: dict[str, Any]) -> httpx.Response:
        """Asks for an automation, most of which is given."""
        asked = {
            "name": "nightly",
            "prompt": "Run the tests.",
            "environment_id": self.world.environment,
            **body,
        }
        return await self.world.client.post("/v1/automations", json=asked)

    async def change(self, automation_id: str, **body: Any) -> dict[str, Any]:
        path = f"/v1/automations/{automation_id}"
        answer = await self.world.client.patch(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["automation"]

    async def trigger(self, automation_id: str, **body: Any) -> dict[str, Any]:
        path = f"/v1/automations/{automation_id}/trigger"
        answer = await self.world.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def said(self, workspace_id: str) -> str:
        """The first message of a replica."""

        async def first() -> list[str]:
            told = await self.world.events(workspace_id, "chat.turn.delta")
            events = [one["event"] for one in told]
            return [one["payload"]["text"] for one in events if one["type"] == "user-message"]

        return (await eventually(first, "a message"))[0]

    async def told(self, after: int) -> list[dict[str, Any]]:
        """What watchers have heard of since, with the index of each."""
        organization = await self.world.context.database.read(only_organization)
        assert organization is not None
        frames = await self.runner.watch.read((organization, None), after)
        return [
            {"index": index, **json.loads(frame.split(b"data: ", 1)[1])} for index, frame in frames
        ]

    def limited_to(self, most: int) -> FleetSettings:
        """The settings, with so many active replicas at most."""
        return replace(self.world.settings, active_limit=most)

    async def restart(self) -> None:
        """The service ends and another begins over the same home."""
        await self.runner.close()
        await self.world.stop()
        await self.world.start()
        self.begin()

    async def get(self, path: str) -> dict[str, Any]:
        answer = await self.world.client.get(f"/v1/automations/{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def runs(self, automation_id: str) -> list[dict[str, Any]]:
        """Newest first."""
        return (await self.get(f"{automation_id}/executions?limit=100"))["executions"]

    async def reach(self, automation_id: str, execution_id: str, status: str) -> dict[str, Any]:
        """Waits until a run is in a state."""

        async def there() -> dict[str, Any] | None:
            run = (await self.get(f"{automation_id}/executions/{execution_id}"))["execution"]
            return run if run["status"] == status else None

        return await eventually(there, status)


@pytest.fixture
async def office(world: World) -> AsyncIterator[Office]:
    made = Office(world, Clock())
    made.begin()
    try:
        yield made
    finally:
        await made.runner.close()
