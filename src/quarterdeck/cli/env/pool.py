"""`qd env pool`: replicas that are prepared before anybody asks for them."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.env.find import environment_argument, find_environment
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.warm_pools import WarmPool

SWITCHES = {"on": True, "off": False}


@click.command(name="pool")
@environment_argument
@click.argument("switch", type=click.Choice(list(SWITCHES)), required=False)
@common_options
def command(common: Common, environment: str, switch: str | None) -> None:
    """Show an environment's warm pool, or switch it on or off."""

    async def run(client: "Client") -> "WarmPool | None":
        of = (await find_environment(client, environment)).id
        if switch is None:
            return (await client.environment_hooks.warm(of)).warm_pool
        return await client.warm_pools.switch(of, SWITCHES[switch])

    pool = with_client(common, run)
    if common.json:
        put_json({"warm_pool": pool and pool.model_dump(mode="json")})
    elif pool is None:
        say("It has no warm pool.")
    else:
        _tell(pool)


def _tell(pool: "WarmPool") -> None:
    say(f"The warm pool is {'on' if pool.enabled else 'off'}.")
    say(
        f"{pool.ready_count} of {pool.target_size} replicas are ready, {pool.warming_count} are "
        f"being prepared, {pool.stale_count} are being replaced."
    )
    if pool.last_failure_reason:
        say(f"It failed at {pool.last_failure_at}: {pool.last_failure_reason}")
