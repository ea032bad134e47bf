"""`qd replica exec`."""

import shlex
from typing import TYPE_CHECKING

import click

from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json, put_safe, say
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.wire.exec import DEFAULT_TIMEOUT_SECONDS, ExecResponse

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="exec")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.IntRange(1, 50),
    default=DEFAULT_TIMEOUT_SECONDS,
    show_default=True,
    help="Stop the command after so long.",
)
@replica_argument
@click.argument("command_line", metavar="-- COMMAND...", nargs=-1, required=True)
@common_options
def command(common: Common, replica: str, command_line: tuple[str, ...], timeout: int) -> None:
    """Run a command in the workspace root and print what it prints.

    One word is a line for the shell; several are a command and its arguments. Exit code 0 when the
    command ended with 0, else 1; --json tells its own status. What it prints comes without control
    sequences; --json has it as it was, at most the last 64 KB.
    """
    if command_line[0] == "--":  # it stands behind REPLICA, where click takes it for a word
        command_line = command_line[1:]
    if not command_line:
        raise click.UsageError("Missing argument '-- COMMAND...'.")
    line = command_line[0] if len(command_line) == 1 else shlex.join(command_line)

    async def run(client: "Client") -> ExecResponse:
        return await client.exec.run(await find_replica(client, replica), line, timeout)

    result = with_client(common, run)
    if common.json:
        put_json(result)
    else:
        _print(result)
    _judge(result, timeout)


def _print(result: ExecResponse) -> None:
    if result.truncated:
        say("Only the last 64 KB are shown.")
    from quarterdeck.transcript.clean import clean_output  # slow to import

    put_safe(clean_output(result.output), end="")


def _judge(result: ExecResponse, timeout: int) -> None:
    if result.timed_out:
        raise NotDone(f"The command was stopped after {timeout} seconds.")
    if result.exit_code:
        raise NotDone(f"The command ended with status {result.exit_code}.")
