"""Automations over doubled sandboxes, with source hosts, and verdicts from within workspaces."""

import re
from datetime import UTC, datetime
from typing import Any

import httpx
from sqlalchemy import select

from quarterdeck.service.automations.run_rows import find_execution
from quarterdeck.service.checks.sync_worker import CheckSender, CheckSettings
from quarterdeck.service.db.tables import messages
from quarterdeck.service.hosts.settings import HostSettings, HostsSettings
from quarterdeck.service.replicas.rows import find_workspace
from tests.automations.conftest import Clock, Office
from tests.checks.source_host import TOKEN_A, TOKEN_B, SourceHost
from tests.fleet.conftest import World

SHA, SHA_2 = "a" * 40, "b" * 40
SHOP = "sea/shop"
WAIT = "wait until you are let go"
"""A prompt whose turn goes on until the test ends it."""

BEGIN = datetime(2040, 1, 2, 8, 0, tzinfo=UTC)
"""Later than the true time, by which the ends of turns are noted."""

Begun = dict[str, Any]


def pull_request(number: int = 7, sha: str | None = SHA, repository: str = SHOP) -> dict[str, Any]:
    return {"repository": repository, "number": number, "head_sha": sha, "title": "Sails"}


class Desk(Office):
    """An office whose organization has connected a repository of the scripted host."""

    def __init__(self, world: World, source_host: SourceHost) -> None:
        super().__init__(world, Clock(BEGIN))
        self.source_host = source_host

    @property
    def sender(self) -> CheckSender:
        return self.world.service.checks

    async def open(self) -> None:
        self.begin()
        self.use("host_a")
        self.set_limits()
        await self.connect(f"{self.source_host.url}/{SHOP}.git")

    async def close(self) -> None:
        await self.sender.close()
        await self.runner.close()

    def use(self, *hosts: str) -> None:
        """Sets up these hosts, and no other."""
        settings = {
            "host_a": HostSettings(api_url=self.source_host.api_a, token=TOKEN_A),
            "host_b": HostSettings(api_url=self.source_host.api_b, token=TOKEN_B),
        }
        self.world.context.hosts = HostsSettings(**{name: settings[name] for name in hosts})

    def set_limits(self, **limits: float) -> None:
        """Gives the sender other limits, those of `CheckSettings`."""
        self.sender.settings = CheckSettings(**limits)

    async def connect(self, url: str) -> None:
        name = url.rpartition("/")[2].removesuffix(".git")
        body = {"url": url, "name": name}
        answer = await self.world.client.post("/v1/replica/repositories", json=body)
        assert answer.status_code == 201, answer.text

    async def waiting(self, **body: Any) -> str:
        """An automation whose runs go on until they are let go; its id."""
        return (await self.create(prompt=WAIT, **body))["id"]

    async def trigger(self, automation: str, **pr: Any) -> Begun:
        """Starts a run by hand for a pull request."""
        body = {"pr": pull_request(**pr)}
        answer = await self.world.client.post(f"/v1/automations/{automation}/trigger", json=body)
        assert answer.status_code == 200, answer.text
        return {"automation": automation, **answer.json()}

    async def run_of(self, begun: Begun) -> dict[str, Any]:
        path = f"{begun['automation']}/executions/{begun['execution_id']}"
        return (await self.get(path))["execution"]

    async def check_of(self, begun: Begun) -> dict[str, Any]:
        return (await self.run_of(begun))["check"]

    async def ended(self, begun: Begun, status: str) -> dict[str, Any]:
        return await self.reach(begun["automation"], begun["execution_id"], status)

    async def let_go(self, begun: Begun) -> None:
        """Ends a run's turn."""
        await self.ended(begun, "running")
        self.world.driver.let_go(begun["workspace_id"])
        await self.ended(begun, "completed")

    async def prompt(self, begun: Begun) -> str:
        """The message that a run has for its agent."""
        database = self.world.context.database
        execution = await database.read(lambda c: find_execution(c, begun["execution_id"]))
        assert execution is not None
        statement = select(messages.c.text).where(messages.c.id == execution["message_id"])
        return await database.read(lambda c: c.execute(statement).scalar_one())

    async def ticket(self, begun: Begun) -> tuple[str, str]:
        """The check's id and token, as the agent reads them."""
        text = await self.prompt(begun)
        found = re.search(r"- id: (\S+)\n- token: (\S+)\n", text)
        assert found is not None, text
        return found[1], found[2]

    async def headers(self, workspace_id: str) -> dict[str, str]:
        """What a program in a workspace shows."""
        row = await self.world.context.database.read(lambda c: find_workspace(c, workspace_id))
        assert row is not None
        secret = self.world.context.vault.unseal(row.id, row.engine_secret_sealed)
        return {"Authorization": f"Bearer {secret}", "X-Workspace-Id": workspace_id}

    async def say(
        self, workspace_id: str, check_run_id: str, token: str, **body: Any
    ) -> httpx.Response:
        """A verdict from within a workspace."""
        said = {"token": token, "conclusion": "success", "title": "Fine", **body}
        path = f"/v1/automations/checks/{check_run_id}"
        headers = await self.headers(workspace_id)
        return await self.world.client.post(path, json=said, headers=headers)

    async def report(self, begun: Begun, **body: Any) -> bool:
        """A run's own verdict; whether it counts."""
        answer = await self.say(begun["workspace_id"], *await self.ticket(begun), **body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["name"] == "nightly"
        return answer.json()["reported"]

    async def told(self, **later: float) -> None:
        """Hosts are told of all that is due, now or after some time."""
        self.clock.pass_by(**later)
        await self.sender.turn()
