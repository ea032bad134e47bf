"""`qd env hooks`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.env.find import environment_argument, find_environment
from quarterdeck.cli.env.inputs import read_text
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environment_hooks import EnvironmentHook

WARM = "warm"
kind_argument = click.argument("kind", type=click.Choice([WARM, "start"]))


@click.group(name="hooks")
def command() -> None:
    """Scripts of an environment: warm ones prepare a replica once, start ones run at each boot."""


@command.command(name="show")
@environment_argument
@kind_argument
@common_options
def show(common: Common, environment: str, kind: str) -> None:
    """Print the script that is in force."""

    async def read(client: "Client") -> "EnvironmentHook | None":
        of = (await find_environment(client, environment)).id
        if kind == WARM:
            return (await client.environment_hooks.warm(of)).warm_hook
        return await client.environment_hooks.start(of)

    hook = with_client(common, read)
    if common.json:
        put_json({f"{kind}_hook": hook and hook.model_dump(mode="json")})
    elif hook is None:
        say(f"There is no {kind} hook.")
    else:
        put(hook.content, end="" if hook.content.endswith("\n") else "\n")


@command.command(name="save")
@environment_argument
@kind_argument
@click.option("--from", "source", metavar="FILE", help="Read it from here, not from stdin.")
@common_options
def save(common: Common, environment: str, kind: str, source: str | None) -> None:
    """Save a script and put it in force. An empty start hook takes the one in force away."""
    content = read_text(source)

    async def write(client: "Client") -> "EnvironmentHook | None":
        of = (await find_environment(client, environment)).id
        if kind == WARM:
            return await client.environment_hooks.save_warm(of, content)
        return await client.environment_hooks.save_start(of, content)

    hook = with_client(common, write)
    if common.json:
        put_json({f"{kind}_hook": hook and hook.model_dump(mode="json")})
    elif hook is None:
        say(f"There is no {kind} hook any more.")
    else:
        say(f"Version {hook.version} of the {kind} hook is in force.")
