"""`qd auth login`."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.kept_keys import keep_key
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.target import Target, find_target
from quarterdeck.cli.tokens import run_with_token

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.api_keys import ApiKey


@click.command(name="login")
@click.option("--name", metavar="TEXT", help="What to call the key; by default after this host.")
@common_options
def command(common: Common, name: str | None) -> None:
    """Get a personal key of the profile's service, and keep it for this profile.

    The service's owner lets this device in. The key stays good until it is taken away, with qd
    auth logout or qd keys rm.
    """
    target = find_target(common.profile)
    path = kept_path(target)

    async def login(client: "Client") -> "ApiKey":
        made = await client.api_keys.create(name or f"qd on {socket.gethostname()}")
        keep_key(path, made.key)
        return made.api_key

    made = run_with_token(target, login)
    if common.json:
        put_json({"api_key": made.model_dump(mode="json")})
    say(f"Logged in: profile {target.name} keeps the key {made.key_prefix}... now.")


def kept_path(target: Target) -> Path:
    """Where the key of a service is kept.

    Raises:
        UsageFault: nowhere, as it comes from somewhere else.
    """
    if target.kept is None:
        raise UsageFault(
            "Only a profile that does not say where its key is keeps one.",
            "Add a profile with an address and no key to the configuration file, and name it with "
            "--profile. The embedded service needs no login.",
        )
    return target.kept
