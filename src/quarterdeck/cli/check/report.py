"""`qd check report`."""

from typing import Literal

import click

from quarterdeck.cli.env.inputs import read_text
from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.inside import with_inside_client
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.wire.automations import ReportCheck

STDIN = "-"


@click.command(name="report")
@click.option(
    "--id",
    "check_run_id",
    metavar="ID",
    envvar="QD_CHECK_ID",
    required=True,
    help="From the run's prompt.",
)
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="QD_CHECK_TOKEN",
    required=True,
    help="From the run's prompt.",
)
@click.option(
    "--conclusion",
    type=click.Choice(["success", "failure"]),
    required=True,
    help="Whether it passes.",
)
@click.option("--title", metavar="LINE", required=True, help="The verdict in one line.")
@click.option("--summary", metavar="TEXT", help="What was checked and why; - reads it from stdin.")
@common_options
def command(
    common: Common,
    check_run_id: str,
    token: str,
    conclusion: Literal["success", "failure"],
    title: str,
    summary: str | None,
) -> None:
    """Report the verdict of this run.

    The built-in agent sets QD_CHECK_ID and QD_CHECK_TOKEN for its blocks, which may leave both out.
    A second report replaces the first. The exit code is 1 when a later run for the same pull
    request has taken this one's place: then the verdict does not count.
    """
    text = read_text(STDIN) if summary == STDIN else summary
    body = ReportCheck(token=token, conclusion=conclusion, title=title, summary=text or None)

    answer = with_inside_client(lambda client: client.automations.report_check(check_run_id, body))
    if common.json:
        put_json(answer)
    if not answer.reported:
        raise NotDone(f"A later run has taken the place of this one; {answer.name} is its.")
    say(f"Reported {conclusion} for {answer.name}.")
