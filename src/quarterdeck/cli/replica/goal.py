"""`qd replica goal`."""

from typing import TYPE_CHECKING, Literal

import click

from quarterdeck.cli.errors import NotDone, UsageFault
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put, put_json
from quarterdeck.cli.replica.find import find_chat, find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.wire.goals import TOKEN_BUDGET_LIMIT, ChatGoal, UpdateGoal

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="goal")
@click.option("--chat", metavar="CHAT", help="Another chat than the first: its id or title.")
@click.option("--set", "objective", metavar="OBJECTIVE", help="Set a new goal.")
@click.option("--pause", "status", flag_value="paused", help="Begin no further turn.")
@click.option("--resume", "status", flag_value="active", help="Go on.")
@click.option(
    "--budget",
    metavar="TOKENS",
    type=click.IntRange(1, TOKEN_BUDGET_LIMIT),
    help="Stop after so many tokens.",
)
@replica_argument
@common_options
def command(
    common: Common,
    replica: str,
    chat: str | None,
    objective: str | None,
    status: Literal["active", "paused"] | None,
    budget: int | None,
) -> None:
    """Show the goal that an agent works towards by itself, or set, pause or resume it."""
    if objective is not None and not objective.strip():
        raise UsageFault("The objective is empty.")
    change = UpdateGoal(objective=objective, status=status, token_budget=budget)
    asked = bool(change.model_dump(exclude_none=True))

    async def work(client: "Client") -> ChatGoal | None:
        replica_id = await find_replica(client, replica)
        found = find_chat(await client.replicas.get(replica_id), chat)
        if not asked:
            return found.goal
        goal = await client.chats.update_goal(replica_id, found.id, change)
        if goal is None:
            raise NotDone(f"{found.provider} has no goals.", "See the agents with: qd doctor.")
        return goal

    goal = with_client(common, work)
    if common.json:
        put_json({"goal": goal and goal.model_dump(mode="json")})
    elif goal is None:
        put("No goal.")
    else:
        _show(goal)


def _show(goal: ChatGoal) -> None:
    put(f"goal     {goal.objective}")
    put(f"status   {goal.status}")
    budget = "" if goal.token_budget is None else f" of {goal.token_budget}"
    put(f"tokens   {goal.tokens_used}{budget}")
    put(f"time     {goal.time_used_seconds} s")
