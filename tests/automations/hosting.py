"""An office whose service knows both source hosts, and ways to call as these do."""

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from quarterdeck.service.formats import now_text
from quarterdeck.service.hosts.settings import HostSettings, HostsSettings
from quarterdeck.service.identity.rows import only_organization
from quarterdeck.service.repositories.rows import add_repository
from quarterdeck.wire.repositories import Repository
from tests.automations.conftest import Office

SECRET_A, SECRET_B = "It's a Secret to Everybody", "t0ken of host b"
HOSTS = HostsSettings(HostSettings(SECRET_A), HostSettings(SECRET_B))
URL_A, URL_B = "https://host-a.example/harbor/pier", "git@host-b.example:harbor/yard/pier.git"
A, B = "/v1/host-a/webhook", "/v1/host-b/webhook"


def trigger(event: str, **config: Any) -> dict[str, Any]:
    host = "host-a" if event.startswith("pull_request") else "host-b"
    return {"type": host, "config": {"event": event, **config}}


OPENED = trigger("pull_request.opened")


def signed(body: bytes, secret: str = SECRET_A, event: str = "pull_request") -> dict[str, str]:
    """The headers with which host A sends a body."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": str(uuid4()),
        "X-Hub-Signature-256": f"sha256={digest}",
    }


@dataclass
class Hosting:
    """An office that hosts call."""

    office: Office

    def __post_init__(self) -> None:
        self.office.world.context.hosts = HOSTS

    @property
    def client(self) -> httpx.AsyncClient:
        return self.office.world.client

    async def connect(self, url: str = URL_A, organization: str | None = None) -> str:
        """A connected repository, as if there were one."""
        made = Repository(id=uuid4(), name="pier", url=url, default_branch="main")
        database = self.office.world.context.database
        where = organization or await database.read(only_organization)
        assert where is not None
        await database.write(lambda c: add_repository(c, where, made, now_text()))
        return str(made.id)

    async def call(self, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        """As somebody who has no key."""
        return await self.client.post(path, content=body, headers={"Authorization": "", **headers})

    async def host_a(self, payload: Any, event: str = "pull_request") -> httpx.Response:
        body = json.dumps(payload).encode()
        return await self.call(A, body, signed(body, event=event))

    async def host_b(self, payload: Any, event: str = "Merge Request Hook") -> httpx.Response:
        body = json.dumps(payload).encode()
        return await self.call(B, body, {"X-Gitlab-Event": event, "X-Gitlab-Token": SECRET_B})

    async def begun(self, automation: dict[str, Any]) -> int:
        """How many runs an automation has."""
        return len(await self.office.runs(automation["id"]))
