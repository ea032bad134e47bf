"""A service over a real database, with a sandbox driver that only knows repositories."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import insert

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.errors import (
    CloneError,
    NotARepositoryError,
    SandboxError,
    UnknownBranchError,
)
from quarterdeck.sandboxes.port import RepositorySource, SandboxDriver
from quarterdeck.sandboxes.source_port import MirrorInfo
from quarterdeck.service.app import build_app
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import chats, environments, workspaces
from quarterdeck.service.formats import now_text
from quarterdeck.service.identity.rows import only_organization
from quarterdeck.service.start import build_service, open_service
from quarterdeck.wire.agents import Agent, AgentModel
from quarterdeck.wire.git_state import EngineRepository
from tests.conftest import DATABASES
from tests.service.callers import Callers, calling


class Mirrors:
    """The part of a sandbox driver that connecting repositories and enabling skills uses."""

    def __init__(self) -> None:
        self.connected: list[str] = []

    def absence(self, workspace_id: str) -> None:
        """It is never away."""

    async def connect_repository(
        self, repository_id: str, url: str, branch: str | None = None, private: bool = True
    ) -> MirrorInfo:
        if branch not in (None, "main", "dev"):
            raise UnknownBranchError(f"{url} has no branch {branch}.")
        if "broken" in url:
            raise CloneError("The repository could not be cloned.", "fatal: early EOF")
        if "full" in url:
            raise SandboxError("The disk is full.", "No space left on device")
        if "nothing" in url:
            raise NotARepositoryError(f"{url} is not a git repository.")
        self.connected.append(url)
        return MirrorInfo("main", url.rstrip("/").rsplit("/", 1)[-1])

    async def repositories(
        self, workspace_id: str, sources: Sequence[RepositorySource]
    ) -> list[EngineRepository]:
        return []

    async def is_local(self, url: str) -> bool:
        return url.startswith("/")

    async def require_source(self, url: str, private: bool = True, login: bool = True) -> None:
        if "nothing" in url:
            raise NotARepositoryError(f"There is nothing at {url}.")


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    """Everything here runs on both."""
    return request.param


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(database_url)
    yield opened
    await opened.close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def mirrors() -> Mirrors:
    return Mirrors()


@pytest.fixture
async def context(home: Home, mirrors: Mirrors, database_url: str) -> AsyncIterator[ServiceContext]:
    models = [AgentModel(id="one", display_name="One"), AgentModel(id="two", display_name="Two")]
    builtin = Agent(id="builtin", name="Built-in", available=True)
    agents = [builtin.model_copy(update={"models": models, "default_model": "one"})]
    driver = cast("SandboxDriver", mirrors)
    async with open_service(home, driver, lambda: agents, database_url) as opened:
        yield opened


@pytest.fixture
def app(context: ServiceContext) -> FastAPI:
    return build_app(build_service(context))


@pytest.fixture
async def client(app: FastAPI, home: Home, database_kind: str) -> AsyncIterator[httpx.AsyncClient]:
    """With the installation's key."""
    # `database_kind` is named because what a module's own `app` builds on is not looked through.
    headers = {"Authorization": f"Bearer {home.key.read_text().strip()}"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers=headers
    ) as opened:
        yield opened


@pytest.fixture
async def callers(app: FastAPI, context: ServiceContext) -> AsyncIterator[Callers]:
    """A client for every kind of person."""
    async with calling(app, context) as opened:
        yield opened


NewWorkspace = Callable[..., Awaitable[str]]


@pytest.fixture
def new_workspace() -> NewWorkspace:
    """Stores a workspace with what it needs, and returns its id."""

    async def make(database: Database, **values: Any) -> str:
        workspace_id = values.pop("id", None) or str(uuid4())
        await database.write(lambda c: _insert_workspace(c, workspace_id, values))
        return workspace_id

    return make


def _insert_workspace(connection: Any, workspace_id: str, values: dict[str, Any]) -> None:
    organization = only_organization(connection)
    if organization is None:
        from quarterdeck.service.identity.rows import add_organization

        organization = add_organization(connection, "Test", now_text())
    environment = str(uuid4())
    connection.execute(
        insert(environments).values(
            id=environment,
            organization_id=organization,
            name=f"env-{environment}",
            is_global=False,
            created_at=now_text(),
            updated_at=now_text(),
        )
    )
    row: dict[str, Any] = {
        "organization_id": organization,
        "environment_id": environment,
        "name": f"ws-{workspace_id}",
        "status": "sleeping",
        "source": "api",
        "lifecycle_policy": "default",
        "size": "small",
        "repositories_json": "[]",
        "repository_statuses_json": "[]",
        "engine_secret_sealed": "secret",
        "wake_wanted": False,
        "created_at": now_text(),
    }
    connection.execute(insert(workspaces).values(id=workspace_id, **(row | values)))


@pytest.fixture
def new_chat() -> NewWorkspace:
    """Stores a chat of a workspace, and returns its id."""

    async def make(database: Database, workspace_id: str, provider: str = "builtin") -> str:
        chat_id = str(uuid4())
        statement = insert(chats).values(
            id=chat_id,
            workspace_id=workspace_id,
            provider=provider,
            processing=False,
            awaiting_input=False,
            next_history_index=0,
            created_at=now_text(),
            updated_at=now_text(),
        )
        await database.write(lambda c: c.execute(statement))
        return chat_id

    return make
