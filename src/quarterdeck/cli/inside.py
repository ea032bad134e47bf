"""`qd check` and `qd preview`: verbs for programs inside a replica."""

from typing import Literal

import click

from quarterdeck.cli.clients import with_inside_client
from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.options import Common, common_options, text_or_stdin
from quarterdeck.cli.output import print_json, print_message, print_text
from quarterdeck.cli.program import LazyGroup, Verb
from quarterdeck.wire.automation_runs import ReportCheck
from quarterdeck.wire.previews import LAST_PORT, PreviewAnswer, PreviewClosed

CHECK_VERBS = {
    "report": Verb(__name__, "Report the verdict of this run.", "report"),
}


@click.group(name="check", cls=LazyGroup, verbs=CHECK_VERBS)
def check() -> None:
    """Report checks of pull requests (inside a replica)."""


PREVIEW_VERBS = {
    "open": Verb(__name__, "Open a preview of a port.", "open_preview"),
    "close": Verb(__name__, "Close a preview.", "close_preview"),
}


@click.group(name="preview", cls=LazyGroup, verbs=PREVIEW_VERBS)
def preview() -> None:
    """Manage previews of ports (inside a replica)."""


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
    help="The check's result.",
)
@click.option("--title", metavar="LINE", required=True, help="The verdict in one line.")
@click.option("--summary", metavar="TEXT", help="What was checked and why; - reads it from stdin.")
@common_options
def report(
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
    text = text_or_stdin(summary)
    body = ReportCheck(token=token, conclusion=conclusion, title=title, summary=text or None)

    answer = with_inside_client(lambda client: client.automations.report_check(check_run_id, body))
    if common.json:
        print_json(answer)
    if not answer.reported:
        raise FailedError(f"A later run has replaced this one; {answer.name} is its.")
    print_message(f"Reported {conclusion} for {answer.name}.")


@click.command(name="open")
@click.argument("port", metavar="PORT", type=click.IntRange(1, LAST_PORT))
@common_options
def open_preview(common: Common, port: int) -> None:
    """Open a preview of a port and print its URL."""
    preview = with_inside_client(lambda client: client.previews.open_own(port))
    if common.json:
        print_json(PreviewAnswer(preview=preview))
    else:
        print_text(preview.public_url)


@click.command(name="close")
@click.argument("port", metavar="PORT", type=click.IntRange(1, LAST_PORT))
@common_options
def close_preview(common: Common, port: int) -> None:
    """Close the preview of a port."""
    with_inside_client(lambda client: client.previews.close_own(port))
    if common.json:
        print_json(PreviewClosed(port=port))
    print_message(f"Port {port} is closed.")
