"""`qd mcp`: serve operations on replicas to an agent, by the Model Context Protocol."""

import asyncio
import os

import click

from quarterdeck.cli.clients import inside_client, opened_client
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.repositories import find_repository_url
from quarterdeck.cli.target import PROFILE_VARIABLE, find_target
from quarterdeck.wire.inside import WAY_OUT


@click.command(name="mcp")
@common_options
def mcp(common: Common) -> None:
    """Serve operations on replicas as tools, by the Model Context Protocol on stdin and stdout.

    An agent that starts it can create replicas, send messages, answer questions and read what was
    done, with the rights of the key that qd uses. Inside a replica it has the replica's rights only.
    """
    from quarterdeck.cli.mcp_tools import inside_server, replica_server

    if is_inside(common):
        server = inside_server(inside_client)
    else:
        target = find_target(common.profile)
        server = replica_server(
            lambda: opened_client(target),
            lambda repository: find_repository_url(repository, target),
        )
    asyncio.run(server.run_stdio_async())


def is_inside(common: Common) -> bool:
    """Return whether this is a program inside a replica, for which no other service was chosen."""
    chosen = common.profile or os.environ.get(PROFILE_VARIABLE)
    return not chosen and all(os.environ.get(name) for name in WAY_OUT)
