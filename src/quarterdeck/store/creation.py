"""Making a replica from what a person says: repository, environment, agent, first message.

The contract makes a replica from an environment; an environment names the repository. So a
repository is connected first, and gets an environment of its own name when it has none.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from uuid import UUID, uuid4

from quarterdeck.client.errors import Conflict
from quarterdeck.store.repositories import RepositoryWish, binding, connected
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.environments import GLOBAL, CreateEnvironment, Environment
from quarterdeck.wire.messages import Image, ThinkingLevel
from quarterdeck.wire.replicas import (
    CreateReplica,
    LifecyclePolicy,
    ReplicaConfig,
    ReplicaDetail,
)
from quarterdeck.wire.repositories import Repository

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

NAME_WORDS = 4
LONGEST_NAME = 60
"""Characters of a name that is made from those of repositories."""
Size = Literal["small", "large"]
_FENCE = re.compile(r"```.*?(```|\Z)", re.DOTALL)
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Wish:
    """What should be made. Without `environment_id` the repository's own environment is used, or
    made; without either, the global one: a workspace with no repository."""

    repository_url: str | None = None
    environment_id: UUID | None = None
    agent: str | None = None
    model: str | None = None
    name: str | None = None
    message: str = ""
    images: tuple[Image, ...] = ()
    """They go with the message."""
    plan_mode: bool = False
    lifecycle_policy: LifecyclePolicy | None = None
    auto_stop_minutes: int | None = None
    webhook_url: str | None = None
    branch: str | None = None
    """The branch that work on the repository begins from; None for the repository's own."""
    others: tuple[RepositoryWish, ...] = ()
    """Repositories that stand beside the first one in the workspace."""
    goal_mode: bool = False
    fast_mode: bool = False
    thinking_level: ThinkingLevel | None = None
    size: Size | None = None


@dataclass(frozen=True)
class Choices:
    """What can be chosen from."""

    repositories: list[Repository]
    environments: list[Environment]
    agents: list[Agent]

    def of_repository(self, url: str) -> list[Environment]:
        """Environments that put a repository into the workspace."""
        ids = {entry.id for entry in self.repositories if entry.url == url}
        return [entry for entry in self.environments if entry.repository_id in ids]


async def choices(client: "Client") -> Choices:
    """Reads what the dialog offers.

    Raises:
        ClientError: the service refuses or cannot be reached.
    """
    return Choices(
        repositories=await client.repositories.list(),
        environments=await client.environments.list(scope="all"),
        agents=await client.agents.list(),
    )


async def models_of(client: "Client", agent_id: str) -> list[str]:
    """The models that an agent is known to offer; it may take others.

    Raises:
        ClientError: the service refuses or cannot be reached.
    """
    return [model.id for model in (await client.agents.models(agent_id)).models]


def suggest_name(message: str, fallback: str, taken: Iterable[str]) -> str:
    """A free name without white space, from the first words of a message, else the fallback."""
    words = _WORD.findall(_FENCE.sub(" ", message).lower())[:NAME_WORDS]
    base = "-".join(words)[:40].strip("-") or re.sub(r"\s+", "-", fallback.strip()) or "replica"
    used = set(taken)
    if base not in used:
        return base
    number = 2
    while f"{base}-{number}" in used:
        number += 1
    return f"{base}-{number}"


async def create(client: "Client", wish: Wish, taken: Iterable[str]) -> ReplicaDetail:
    """Connects, finds or makes the environment, and creates the replica.

    Raises:
        InvalidRequest: the repository is none, or a field is wrong; `details` names the field.
        Conflict: the name that was asked for is taken.
        ClientError: refused or unreachable.
    """
    environment_id, fallback = await environment_for(client, wish)
    names = set(taken)
    name = wish.name or suggest_name(wish.message, fallback, names)
    try:
        return await client.replicas.create(_body(wish, name, environment_id))
    except Conflict:
        if wish.name:
            raise
    name = f"{name}-{uuid4().hex[:4]}"
    return await client.replicas.create(_body(wish, name, environment_id))


def _body(wish: Wish, name: str, environment_id: UUID) -> CreateReplica:
    return CreateReplica(
        name=name,
        environment_id=environment_id,
        message=wish.message or None,
        images=list(wish.images) or None,
        coding_agent=wish.agent,
        model=wish.model,
        plan_mode=wish.plan_mode or None,
        goal_mode=wish.goal_mode or None,
        fast_mode=wish.fast_mode or None,
        thinking_level=wish.thinking_level,
        size=wish.size,
        lifecycle_policy=wish.lifecycle_policy,
        config=_config(wish),
        webhook_url=wish.webhook_url,
    )


def _config(wish: Wish) -> ReplicaConfig | None:
    minutes = wish.auto_stop_minutes
    return None if minutes is None else ReplicaConfig(auto_stop_minutes=minutes)


async def environment_for(client: "Client", wish: Wish) -> tuple[UUID, str]:
    """The environment of a wish, made if need be, and what a replica may be named after.

    Raises:
        InvalidRequest: the repository is none.
        ClientError: refused or unreachable.
    """
    if wish.environment_id is not None:
        chosen = await client.environments.get(wish.environment_id)
        return chosen.id, chosen.name
    if wish.repository_url is None:
        return (await client.environments.get(GLOBAL)).id, "replica"
    first = RepositoryWish(wish.repository_url, wish.branch)
    repositories = await connected(client, first, wish.others)
    known = await client.environments.list(scope="all")
    name = "-".join(one.name for one in repositories)[:LONGEST_NAME]
    bound = await binding(client, repositories)
    for entry in known:
        if bound.fits(entry):
            return entry.id, name
    free = suggest_name("", name, (entry.name for entry in known))
    made = await client.environments.create(
        CreateEnvironment(
            name=free, repository_id=bound.repository_id, repository_set_id=bound.repository_set_id
        )
    )
    return made.id, name
