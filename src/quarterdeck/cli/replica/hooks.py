"""`qd replica hooks`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put, put_json, say
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.setup import HookLog, HookLogs


@click.command(name="hooks")
@replica_argument
@common_options
def command(common: Common, replica: str) -> None:
    """Print what a replica's hooks did, each with its output."""

    async def read(client: "Client") -> "HookLogs":
        return await client.hook_logs.read(await find_replica(client, replica))

    logs = with_client(common, read)
    if common.json:
        put_json(logs)
        return
    every = [*logs.warm_hooks.logs, *logs.start_hooks.logs]
    if not every:
        say("No hook has run in it.")
    for log in sorted(every, key=lambda one: one.executed_at):
        say(f"{log.executed_at:%Y-%m-%d %H:%M:%S} {log.hook_type} {log.hook_name}: {_ended(log)}")
        put(log.output, end="" if log.output.endswith("\n") or not log.output else "\n")


def _ended(log: "HookLog") -> str:
    how = "took too long" if log.timed_out else f"ended with {log.exit_code}"
    cut = f", the last of {log.output_total_chars} characters" if log.output_truncated else ""
    return how + cut
