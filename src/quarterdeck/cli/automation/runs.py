"""`qd automation runs`."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.automation.find import automation_argument, find_automation
from quarterdeck.cli.automation.words import duration, run_trigger, verdict
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say, table
from quarterdeck.cli.running import with_client
from quarterdeck.cli.words import ago

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Execution

Named = dict[UUID, str]
HEADER = ["STATUS", "TRIGGER", "BEGAN", "TOOK", "REPLICA", "CHECK", "ID", "WHY"]


@click.command(name="runs")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    help="The newest so many.",
)
@automation_argument
@common_options
def command(common: Common, automation: str, limit: int) -> None:
    """List the runs of an automation, newest first, with the verdicts of their checks."""

    async def read(client: "Client") -> "tuple[list[Execution], Named]":
        found = await find_automation(client, automation)
        runs = (await client.automations.executions(found.id, limit=limit)).executions
        return runs, await _names(client, {one.workspace_id for one in runs if one.workspace_id})

    runs, names = with_client(common, read)
    if common.json:
        put_json({"executions": [_plain(one, names) for one in runs]})
    elif not runs:
        say("It has not run.")
    else:
        table(HEADER, (_row(one, names) for one in runs))


async def _names(client: "Client", wanted: set[UUID]) -> Named:
    """The names of replicas; those that are gone have none."""
    found: Named = {}
    async for replica in client.replicas.all():
        if len(found) == len(wanted):
            break
        if replica.id in wanted:
            found[replica.id] = replica.name
    return found


def _name(run: "Execution", names: Named) -> str | None:
    return names.get(run.workspace_id) if run.workspace_id else None


def _plain(run: "Execution", names: Named) -> dict[str, object]:
    return {**run.model_dump(mode="json"), "workspace_name": _name(run, names)}


def _row(run: "Execution", names: Named) -> list[str]:
    from quarterdeck.wire.base import utc_now

    return [
        run.status,
        run_trigger(run),
        f"{ago(run.triggered_at)} ago",
        duration((run.completed_at or utc_now()) - run.triggered_at),
        _name(run, names) or ("gone" if run.workspace_id else "-"),
        verdict(run),
        str(run.id)[:8],
        run.error or (run.check.title if run.check else None) or "",
    ]
