"""`qd env test`: testing a hook before, or after, it is saved."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.env.find import environment_argument, find_environment
from quarterdeck.cli.env.hooks import WARM, kind_argument
from quarterdeck.cli.env.inputs import read_text
from quarterdeck.cli.exits import Exit
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.hook_tests import HookTest


@click.command(name="test")
@environment_argument
@kind_argument
@click.option("--from", "source", metavar="FILE", help="Test this; - is stdin.")
@click.option("--save", is_flag=True, help="Save a warm hook; in force only when it ends with 0.")
@common_options
def command(common: Common, environment: str, kind: str, source: str | None, save: bool) -> None:
    """Run a hook in a replica of its own, which is removed then.

    Without --from the hook in force is tested. Exits with 1 when the hook did not end with 0.
    """
    if save and (kind != WARM or source is None):
        raise click.UsageError("--save goes with a warm hook and --from.")
    content = None if source is None else read_text(None if source == "-" else source)
    say("Running it in a new replica ...")

    async def run(client: "Client") -> "HookTest":
        of = (await find_environment(client, environment)).id
        if save:
            saved = await client.hook_tests.save_warm(of, content or "")
            state = "in force" if saved.warm_hook.is_active else "saved, not in force"
            say(f"Version {saved.warm_hook.version} is {state}.")
            return saved.test
        if kind == WARM:
            return await client.hook_tests.warm(of, content)
        return await client.hook_tests.start(of, content)

    test = with_client(common, run)
    if common.json:
        put_json({"test": test.model_dump(mode="json")})
    else:
        put(test.output, end="" if test.output.endswith("\n") or not test.output else "\n")
        say("It took too long." if test.timed_out else f"It ended with {test.exit_code}.")
    if test.exit_code != 0:
        raise SystemExit(Exit.REFUSED)
