"""`qd replica wait`: wait for a state of a replica, so that a script can go on."""

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.lookup import with_replica
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import print_json, print_text
from quarterdeck.wire.replicas import ReplicaDetail, WorkspaceStatus

if TYPE_CHECKING:
    from quarterdeck.client import Client

GOALS = ("asking", "plan", "done", "failed", "idle")
NEEDS_PERSON = GOALS[:4]
FIRST_POLL, LONGEST_POLL = 0.1, 1.0
"""Seconds between two requests."""


@click.command(name="wait")
@click.option(
    "--for",
    "goals",
    type=click.Choice(GOALS),
    multiple=True,
    help="State to wait for (repeatable); default: all but idle.",
)
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(0), help="Wait no longer.")
@replica_argument
@common_options
def wait(common: Common, replica: str, goals: tuple[str, ...], timeout: float | None) -> None:
    """Wait until a replica needs you, and print its state.

    It is asking when the agent waits for an answer, plan when a plan waits for review, done or
    failed by its last turn, and idle when no turn runs or waits, whatever the last one's end.
    Messages that wait in a queue run first. The exit code is 1 when the time is over, and when the
    replica has come to rest in another state than these.
    """

    async def work(client: "Client", replica_id: UUID) -> str:
        try:
            async with asyncio.timeout(timeout):
                return await wait_for_state(client, replica_id, frozenset(goals or NEEDS_PERSON))
        except TimeoutError:
            raise FailedError(f"{replica} was in none of these states in time.") from None

    reached = with_replica(common, replica, work)
    if common.json:
        print_json({"state": reached})
    else:
        print_text(reached)


async def wait_for_state(client: "Client", replica_id: UUID, goals: frozenset[str]) -> str:
    """Wait until a replica is in one of the states; return the first of `GOALS` that it is in.

    Raises:
        FailedError: it has come to rest in another state.
    """
    pause = FIRST_POLL
    while True:
        detail = await client.replicas.get(replica_id)
        states = await _states(client, detail)
        if reached := next((goal for goal in GOALS if goal in goals and goal in states), None):
            return reached
        if "idle" in states:
            raise FailedError(
                f"The replica is {' and '.join(states)}, and nothing runs in it.",
                "Send it a message, or wait for another state with --for.",
            )
        await asyncio.sleep(pause)
        pause = min(LONGEST_POLL, pause * 1.5)


async def _states(client: "Client", detail: ReplicaDetail) -> list[str]:
    """Return the states of a replica that one can wait for, by what a person has to do first."""
    if detail.status == WorkspaceStatus.ERROR:
        return ["failed", "idle"]
    if detail.asking:
        return ["asking"]
    if detail.working or detail.status == WorkspaceStatus.PREPARING:
        return []
    for chat in detail.chats:
        if (await client.messages.queue(detail.id, chat.id)).queue:
            return []
    # A message may have left the queue, and its turn begun, since the record was read.
    if (await client.replicas.get(detail.id)).log_index != detail.log_index:
        return []
    found = ["plan"] if detail.plan_ready else []
    if detail.turn_failed is not None:
        found.append("failed" if detail.turn_failed else "done")
    return [*found, "idle"]
