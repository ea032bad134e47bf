"""`kill -9` of the service between the steps of a check: the host is left with none open."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from quarterdeck.local.home import Home
from tests.checks.desk import SHOP, WAIT, pull_request
from tests.checks.source_host import SourceHost
from tests.fleet.test_service_killed import Killable
from tests.support.waiting import eventually


class Checked(Killable):
    """A service with host A that tests kill."""

    def __init__(self, home: Home, source_host: SourceHost) -> None:
        super().__init__(home)
        self.source_host = source_host

    async def start(self) -> None:
        words = (str(self.home.root), self.source_host.api_a)
        await self.run_module("tests.checks.serve_checked", *words)

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        async with self.client() as client:
            answer = await client.request(method, path, json=body)
            assert answer.is_success, answer.text
            return answer.json()

    async def automation(self) -> str:
        url = f"{self.source_host.url}/{SHOP}.git"
        await self.ask("POST", "/v1/replica/repositories", {"url": url})
        found = await self.ask("GET", "/v1/environments/global")
        body = {"name": "nightly", "prompt": WAIT, "environment_id": found["environment"]["id"]}
        return (await self.ask("POST", "/v1/automations", body))["automation"]["id"]

    async def trigger(self, automation: str) -> Any:
        path = f"/v1/automations/{automation}/trigger"
        return await self.ask("POST", path, {"pr": pull_request()})

    async def runs(self, automation: str) -> list[dict[str, Any]]:
        return (await self.ask("GET", f"/v1/automations/{automation}/executions"))["executions"]

    async def asked(self, count: int) -> None:
        """Waits until the host was asked so often."""

        async def there() -> bool:
            return len(self.source_host.asked) >= count

        await eventually(there, f"{count} requests")

    async def concluded(self, conclusion: str | None) -> None:
        """Waits until the host's only check run has a conclusion."""

        async def there() -> bool:
            return self.source_host.only_run().get("conclusion") == conclusion

        await eventually(there, f"the conclusion {conclusion}")


@pytest.fixture
async def service(home: Home, source_host: SourceHost) -> AsyncIterator[Checked]:
    made = Checked(home, source_host)
    await made.start()
    yield made
    source_host.gate.set()
    await made.kill()
    made.driver.kill_all()


@pytest.mark.long
async def test_killed_between_opening_the_check_and_the_start_of_its_run(
    service: Checked, source_host: SourceHost
) -> None:
    automation = await service.automation()
    source_host.gate.clear()
    asking = asyncio.create_task(service.trigger(automation))
    await service.asked(1)
    await service.kill()
    await asyncio.gather(asking, return_exceptions=True)
    assert isinstance(asking.exception(), httpx.HTTPError)
    source_host.gate.set()
    await eventually(
        lambda: _true(source_host.runs), "the check run that the killed service asked for"
    )
    await service.start()

    async def started() -> dict[str, Any] | None:
        [run] = await service.runs(automation)
        return run if run["status"] == "running" else None

    run = await eventually(started, "the run")
    assert run["check"]["id"] == str(source_host.only_run()["id"])
    service.driver.let_go(run["workspace_id"])
    await service.concluded("neutral")


async def test_killed_before_the_host_has_heard_of_the_end(
    service: Checked, source_host: SourceHost
) -> None:
    automation = await service.automation()
    begun = await service.trigger(automation)
    await service.reach(begun["workspace_id"], "active")
    source_host.gate.clear()
    service.driver.let_go(begun["workspace_id"])
    await service.asked(2)
    await service.kill()
    source_host.down = True
    source_host.gate.set()
    assert "conclusion" not in source_host.only_run()
    source_host.down = False
    await service.start()
    await service.concluded("neutral")


async def test_killed_after_its_automation_was_deleted(
    service: Checked, source_host: SourceHost
) -> None:
    automation = await service.automation()
    await service.trigger(automation)
    source_host.gate.clear()
    await service.ask("DELETE", f"/v1/automations/{automation}")
    await service.asked(2)
    await service.kill()
    source_host.down = True
    source_host.gate.set()
    source_host.down = False
    await service.start()
    await service.concluded("cancelled")


async def _true(found: Any) -> bool:
    return bool(found)
