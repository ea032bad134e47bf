"""What the info panel needs beside a replica's record: read once, when it is looked at."""

import asyncio
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from quarterdeck.store.changes import Change, ReplicaChanged
from quarterdeck.store.replicas import ReplicaState

if TYPE_CHECKING:
    from quarterdeck.client.client import Client


class InfoOwner(Protocol):
    """What reading needs of the deck."""

    environment_names: dict[UUID, str]

    @property
    def client(self) -> "Client": ...

    def publish(self, change: Change) -> None: ...


def is_missing(owner: InfoOwner, state: ReplicaState) -> bool:
    """Whether anything is to be read yet."""
    return state.previews is None or _needs_name(owner, state)


def _needs_name(owner: InfoOwner, state: ReplicaState) -> bool:
    environment_id = state.record.environment_id
    return environment_id is not None and environment_id not in owner.environment_names


async def read_info(owner: InfoOwner, state: ReplicaState) -> None:
    """Reads previews and the environment's name, as far as they are not known.

    Raises:
        ClientError: refused or unreachable.
    """
    async with asyncio.TaskGroup() as group:
        if state.previews is None:
            group.create_task(_read_previews(owner, state))
        if _needs_name(owner, state):
            group.create_task(_read_name(owner, state))
    owner.publish(ReplicaChanged(state.id))


async def _read_previews(owner: InfoOwner, state: ReplicaState) -> None:
    previews = await owner.client.previews.list(state.id)
    if state.previews is None:
        # An event that came meanwhile is newer.
        state.previews = previews


async def _read_name(owner: InfoOwner, state: ReplicaState) -> None:
    environment_id = state.record.environment_id
    if environment_id is not None:
        found = await owner.client.environments.get(environment_id)
        owner.environment_names[environment_id] = found.name
