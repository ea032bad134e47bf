"""User tokens for verbs that need one: at once on the own socket, by approval elsewhere."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from quarterdeck.cli.output import say
from quarterdeck.cli.running import run_with
from quarterdeck.cli.target import Target

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.auth import AccessToken, DeviceCode

Result = TypeVar("Result")


async def fresh_token(client: "Client") -> "AccessToken":
    """A new user token; says what a person has to do when it must be approved."""
    return await client.auth.login(_tell)


def run_with_token(target: Target, work: Callable[["Client"], Awaitable[Result]]) -> Result:
    """As `run_with`, with a client that shows a new user token instead of the key."""

    async def run(client: "Client") -> Result:
        token = await fresh_token(client)
        async with replace(target, key=token.access_token).client() as own:
            return await work(own)

    return run_with(target, run)


def _tell(device: "DeviceCode") -> None:
    say(f"The code of this device is {device.user_code}.")
    say("Where the service runs, as the user who runs it, let it in with:")
    say(f"    qd auth approve {device.user_code}")
    say(f"Waiting, {device.expires_in // 60} minutes at most.")
