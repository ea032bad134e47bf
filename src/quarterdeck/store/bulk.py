"""One command on several replicas at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from quarterdeck.client.errors import ClientError
from quarterdeck.store.replicas import ReplicaState

AT_ONCE = 6
"""Packing and stopping are work for the service's machine."""


@dataclass
class Outcome:
    """What became of it: nothing of it is lost in a count."""

    done: list[ReplicaState] = field(default_factory=list[ReplicaState])
    refused: list[tuple[ReplicaState, ClientError]] = field(
        default_factory=list[tuple[ReplicaState, ClientError]]
    )


async def on_each(
    states: Iterable[ReplicaState], command: Callable[[UUID], Awaitable[object]]
) -> Outcome:
    """Carries a command out on every replica, a few at a time; one refusal stops no other."""
    outcome = Outcome()
    room = asyncio.Semaphore(AT_ONCE)

    async def carry_out(state: ReplicaState) -> None:
        async with room:
            try:
                await command(state.id)
            except ClientError as error:
                outcome.refused.append((state, error))
            else:
                outcome.done.append(state)

    async with asyncio.TaskGroup() as group:
        for state in states:
            group.create_task(carry_out(state))
    return outcome
