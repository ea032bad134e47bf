"""Create a replica from a repository, environment, agent and first message.

In the contract a replica is created from an environment, which names the repository. So a repository
is connected first, and gets an environment of the same name when it has none.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from uuid import UUID, uuid4

from quarterdeck.client.errors import ConflictError
from quarterdeck.store.git import RequestedRepository, binding, connected
from quarterdeck.wire.agents import BUILTIN, Agent
from quarterdeck.wire.chats import Image, ThinkingLevel
from quarterdeck.wire.environments import GLOBAL, CreateEnvironment, Environment
from quarterdeck.wire.replicas import (
    CreateReplica,
    LifecyclePolicy,
    ReplicaConfig,
    ReplicaDetail,
    as_replica_name,
)
from quarterdeck.wire.repositories import Repository

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

NAME_WORDS = 4
LONGEST_NAME = 60
"""Characters of a name that is composed of names of repositories."""
Size = Literal["small", "large"]
_FENCE = re.compile(r"```.*?(```|\Z)", re.DOTALL)
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class CreationRequest:
    """A replica to create.

    Without `environment_id` the repository's own environment is used, or created; without either, the
    global one: a workspace without a repository.
    """

    repository_url: str | None = None
    environment_id: UUID | None = None
    agent: str | None = None
    """None for the usual one."""
    model: str | None = None
    name: str | None = None
    message: str = ""
    images: tuple[Image, ...] = ()
    """Sent with the message."""
    plan_mode: bool = False
    lifecycle_policy: LifecyclePolicy | None = None
    auto_stop_minutes: int | None = None
    webhook_url: str | None = None
    base: str | None = None
    """Branch, tag or commit that the first repository starts from; None for the default branch."""
    pull_request: int | None = None
    """A pull request that it starts from instead."""
    uncommitted: bytes | None = None
    """Uncommitted changes that it starts with, as a bundle."""
    repository_id: UUID | None = None
    """The repository of the uncommitted changes; None for the first of the environment."""
    others: tuple[RequestedRepository, ...] = ()
    """Further repositories of the workspace."""
    goal_mode: bool = False
    fast_mode: bool = False
    thinking_level: ThinkingLevel | None = None
    size: Size | None = None


@dataclass(frozen=True)
class CreationChoices:
    """The choices of the dialog."""

    repositories: list[Repository]
    environments: list[Environment]
    agents: list[Agent]

    def repository(self, url: str) -> Repository | None:
        """Return the connected repository with a URL."""
        return next((entry for entry in self.repositories if entry.url == url), None)

    def known_url(self, url: str) -> str:
        """Return a URL as it was connected: the web address of a repository has no `.git` at its end."""
        return next((known for known in (url, f"{url}.git") if self.repository(known)), url)

    def of_repository(self, url: str) -> list[Environment]:
        """Return the environments that put a repository into the workspace."""
        ids = {entry.id for entry in self.repositories if entry.url == url}
        return [entry for entry in self.environments if entry.repository_id in ids]

    @property
    def unbound(self) -> list[Environment]:
        """The environments without a repository."""
        return [
            entry
            for entry in self.environments
            if entry.repository_id is None and entry.repository_set_id is None
        ]


def repository_options(repositories: Sequence[Repository]) -> list[tuple[str, str]]:
    """Return a label and an id for each repository; the label has the URL where several have the same name."""
    names = Counter(repository.name for repository in repositories)
    return [
        (one.name if names[one.name] == 1 else f"{one.name} ({one.url})", str(one.id))
        for one in repositories
    ]


async def choices(client: "Client") -> CreationChoices:
    """Read the choices of the dialog.

    Raises:
        ClientError: the service refuses or cannot be reached.
    """
    return CreationChoices(
        repositories=await client.repositories.list(),
        environments=await client.environments.list(scope="all"),
        agents=await client.agents.list(),
    )


def usual_agent(agents: Iterable[Agent]) -> str | None:
    """Return the default agent: the first that can be used; `builtin` comes last."""
    usable = [agent.id for agent in agents if agent.available]
    return next((id for id in usable if id != BUILTIN), next(iter(usable), None))


async def models_of(client: "Client", agent_id: str) -> list[str]:
    """Return the known models of an agent; it may accept others.

    Raises:
        ClientError: the service refuses or cannot be reached.
    """
    return [model.id for model in (await client.agents.models(agent_id)).models]


async def branches_of(client: "Client", repository_id: UUID) -> list[str]:
    """Return the branches of a connected repository.

    Raises:
        ClientError: the service refuses or cannot be reached.
    """
    return (await client.repositories.branches(repository_id)).branches


def suggest_name(message: str, fallback: str, taken: Iterable[str]) -> str:
    """Return a free name without white space, from the start of a message, else the fallback."""
    words = _WORD.findall(_FENCE.sub(" ", message).lower())[:NAME_WORDS]
    base = as_replica_name("-".join(words)[:40] or fallback)
    used = set(taken)
    if base not in used:
        return base
    number = 2
    while f"{base}-{number}" in used:
        number += 1
    return f"{base}-{number}"


async def create(client: "Client", request: CreationRequest, taken: Iterable[str]) -> ReplicaDetail:
    """Connect, find or make the environment, and create the replica.

    Raises:
        InvalidRequestError: it is not a repository, or a field is wrong; `details` names the field.
        ConflictError: the requested name is taken.
        ClientError: refused or unreachable.
    """
    if request.agent is None:
        request = replace(request, agent=usual_agent(await client.agents.list()))
    environment_id, fallback = await environment_for(client, request)
    names = set(taken)
    name = request.name or suggest_name(request.message, fallback, names)
    config = await _config(client, request)
    try:
        return await client.replicas.create(_body(request, name, environment_id, config))
    except ConflictError:
        if request.name:
            raise
    name = f"{name}-{uuid4().hex[:4]}"
    return await client.replicas.create(_body(request, name, environment_id, config))


def _body(
    request: CreationRequest, name: str, environment_id: UUID, config: ReplicaConfig | None
) -> CreateReplica:
    return CreateReplica(
        name=name,
        environment_id=environment_id,
        message=request.message or None,
        images=list(request.images) or None,
        coding_agent=request.agent,
        model=request.model,
        plan_mode=request.plan_mode or None,
        goal_mode=request.goal_mode or None,
        fast_mode=request.fast_mode or None,
        thinking_level=request.thinking_level,
        size=request.size,
        lifecycle_policy=request.lifecycle_policy,
        config=config,
        webhook_url=request.webhook_url,
    )


async def _config(client: "Client", request: CreationRequest) -> ReplicaConfig | None:
    """Return the configuration of a request, after uploading its uncommitted changes."""
    uploaded = None
    if request.uncommitted is not None:
        uploaded = await client.replicas.upload_uncommitted(request.uncommitted)
    config = ReplicaConfig(
        auto_stop_minutes=request.auto_stop_minutes,
        base=request.base,
        pull_request=request.pull_request,
        uncommitted=uploaded and uploaded.id,
        repository=request.repository_id,
    )
    return config if config.model_dump(exclude_none=True) else None


async def environment_for(client: "Client", request: CreationRequest) -> tuple[UUID, str]:
    """Return the environment of a request, created if necessary, and a name for a replica.

    Raises:
        InvalidRequestError: it is not a repository.
        ClientError: refused or unreachable.
    """
    if request.environment_id is not None:
        chosen = await client.environments.get(request.environment_id)
        return chosen.id, chosen.name
    if request.repository_url is None:
        return (await client.environments.get(GLOBAL)).id, "replica"
    first = RequestedRepository(request.repository_url)
    repositories = await connected(client, first, request.others)
    known = await client.environments.list(scope="all")
    name = "-".join(repository.name for repository in repositories)[:LONGEST_NAME]
    bound = await binding(client, repositories)
    for entry in known:
        if bound.fits(entry):
            return entry.id, name
    free = suggest_name("", name, (entry.name for entry in known))
    environment = await client.environments.create(
        CreateEnvironment(
            name=free, repository_id=bound.repository_id, repository_set_id=bound.repository_set_id
        )
    )
    return environment.id, name
