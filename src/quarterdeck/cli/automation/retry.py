"""`qd automation retry`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.automation.find import (
    automation_argument,
    find_automation,
    find_run,
    newest_failed,
)
from quarterdeck.cli.automation.follow import Run, follow_run
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="retry")
@click.option("--follow", is_flag=True, help="Tell how it goes, and wait for its end.")
@automation_argument
@click.argument("run", metavar="[RUN]", required=False)
@common_options
def command(common: Common, automation: str, run: str | None, follow: bool) -> None:
    """Run a failed run again, in a new replica: RUN, or the newest that failed.

    The automation's present settings count. Prints the new run's id.
    """

    async def work(client: "Client") -> None:
        found = await find_automation(client, automation)
        failed = (
            await find_run(client, found, run)
            if run is not None
            else await newest_failed(client, found)
        )
        begun = await client.automations.retry(found.id, failed)
        if common.json:
            put_json(begun)
        else:
            put(str(begun.execution_id))
        if follow:
            await follow_run(client, Run(found.id, begun.execution_id), common)

    with_client(common, work)
