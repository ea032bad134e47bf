"""Environments that stand still, behind a client that asks nobody."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from quarterdeck.wire.environment_parts import (
    EnvironmentFile,
    EnvironmentHook,
    EnvironmentMcp,
    EnvironmentSkill,
    EnvironmentVariable,
    WarmHookState,
)
from quarterdeck.wire.environments import Environment, WarmPool
from quarterdeck.wire.repositories import Repository

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GLOBAL, SHOP, MINE = (UUID(int=number) for number in (1, 2, 3))
REPOSITORY = UUID(int=10)


def _record(number: int, of: UUID, **fields: Any) -> dict[str, Any]:
    stamps = {"created_at": AT, "updated_at": AT}
    return {
        "id": UUID(int=number),
        "organization_id": UUID(int=99),
        "environment_id": of,
        **stamps,
        **fields,
    }


def _environment(id: UUID, name: str, **fields: Any) -> Environment:
    return Environment.model_validate({**_record(0, id, name=name), "id": id, **fields})


ENVIRONMENTS = [
    _environment(GLOBAL, "global", is_global=True, variable_count=1),
    _environment(
        SHOP,
        "shop",
        description="The shop and its tests",
        repository_id=REPOSITORY,
        system_prompt="Write tests first.\nSay what you changed.",
        variable_count=2,
        file_count=1,
        skill_count=1,
        mcp_count=2,
    ),
    _environment(MINE, "mine", user_id=UUID(int=50), source_environment_id=SHOP),
]


def _variable(number: int, of: UUID, key: str, *, free: bool = False) -> EnvironmentVariable:
    fields = {"key": key, "value": "s3cret", "personal_override_allowed": free}
    return EnvironmentVariable.model_validate(_record(number, of, **fields))


def _mcp(number: int, name: str, transport: str, config: dict[str, Any]) -> EnvironmentMcp:
    fields = {"name": name, "transport": transport, "config": config}
    return EnvironmentMcp.model_validate(_record(number, SHOP, **fields))


VARIABLES = {
    GLOBAL: [_variable(20, GLOBAL, "LOG_LEVEL", free=True), _variable(21, GLOBAL, "REGION")],
    SHOP: [_variable(22, SHOP, "LOG_LEVEL"), _variable(23, SHOP, "SHOP_DATABASE_URL")],
}
FILES = {
    SHOP: [
        EnvironmentFile.model_validate(
            _record(30, SHOP, name="pip.conf", path="~/.config/pip/pip.conf", content="[global]\n")
        )
    ]
}
SKILLS = {
    SHOP: [
        EnvironmentSkill.model_validate(
            _record(40, SHOP, name="Review", slug="review", source="https://host/skills#review")
        )
    ]
}
MCPS = {
    SHOP: [
        _mcp(
            41, "docs", "stdio", {"command": "npx", "args": ["-y", "d"], "env": {"KEY": "s3cret"}}
        ),
        _mcp(42, "tickets", "http", {"url": "https://host/mcp", "headers": {"Auth": "s3cret"}}),
    ]
}
HOOK = EnvironmentHook.model_validate(
    _record(60, SHOP, version=3, is_active=True, content="set -e\nmake deps\n")
)
POOL = WarmPool.model_validate(
    _record(
        70,
        SHOP,
        enabled=True,
        target_size=2,
        generation=3,
        last_failure_at=AT,
        last_failure_reason="The warm hook of shop failed (exit code 2).",
    )
)


def _listing(of: dict[UUID, Any]) -> Any:
    async def read(environment: UUID) -> Any:
        return of.get(environment, [])

    return SimpleNamespace(list=read)


def still_client() -> Any:
    """What the store asks of a client, answered at once and always the same."""

    async def environments(*, scope: str) -> list[Environment]:
        return ENVIRONMENTS

    async def repositories() -> list[Repository]:
        url = "/srv/shop"
        return [Repository(id=REPOSITORY, name="shop", url=url, default_branch="main")]

    async def nothing(*_: object) -> list[Any]:
        return []

    async def warm(environment: UUID) -> WarmHookState:
        there = environment == SHOP
        return WarmHookState(warm_hook=HOOK if there else None, warm_pool=POOL if there else None)

    async def start(environment: UUID) -> None:
        return None

    return SimpleNamespace(
        connection=SimpleNamespace(endpoint="https://deck.example"),
        environments=SimpleNamespace(list=environments),
        repositories=SimpleNamespace(list=repositories),
        repository_sets=SimpleNamespace(list=nothing),
        environment_hooks=SimpleNamespace(warm=warm, start=start),
        warm_pools=SimpleNamespace(workspaces=nothing),
        variables=_listing(VARIABLES),
        environment_files=_listing(FILES),
        skills=_listing(SKILLS),
        mcps=_listing(MCPS),
    )
