"""`qd automation run`."""

import json
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.automation.find import automation_argument, find_automation
from quarterdeck.cli.automation.follow import Run, follow_run
from quarterdeck.cli.env.inputs import read_text
from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automations import PullRequestRef, Triggered


@click.command(name="run")
@click.option("--payload", metavar="JSON|@FILE", help="What the agent is told; @- reads stdin.")
@click.option("--pr", metavar="REPO#N", help="The pull request that the run is about.")
@click.option("--follow", is_flag=True, help="Tell how it goes, and wait for its end.")
@automation_argument
@common_options
def command(
    common: Common, automation: str, payload: str | None, pr: str | None, follow: bool
) -> None:
    """Begin a run by hand, also of an automation that is switched off. Prints the run's id.

    With --follow the exit code is 1 when the run fails; with --json the first line is the answer,
    each state follows as a line.
    """
    from quarterdeck.wire.automations import TriggerAutomation

    body = TriggerAutomation(payload=_payload(payload), pr=_pull_request(pr))

    async def work(client: "Client") -> None:
        found = await find_automation(client, automation)
        begun = await client.automations.trigger(found.id, body)
        _tell(common, begun)
        if follow:
            await follow_run(client, Run(found.id, begun.execution_id), common)

    with_client(common, work)


def _tell(common: Common, begun: "Triggered") -> None:
    if common.json:
        put_json(begun)
        return
    put(str(begun.execution_id))
    if begun.workspace_id is None:
        say("It waits for a place: as many replicas are active as are allowed.")


def _payload(given: str | None) -> Any:
    if given is None:
        return None
    text = read_text(given[1:]) if given.startswith("@") else given
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        raise UsageFault(f"The payload is no JSON: {e}.", "Quote a text as JSON does.") from e


def _pull_request(given: str | None) -> "PullRequestRef | None":
    from quarterdeck.wire.automations import PullRequestRef

    if given is None:
        return None
    repository, _, number = given.rpartition("#")
    if not repository or not (number.isascii() and number.isdecimal()):
        raise UsageFault(f"{given!r} is no pull request.", "Write REPO#N, such as shop#12.")
    return PullRequestRef(repository=repository, number=int(number))
