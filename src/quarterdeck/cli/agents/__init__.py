"""`qd agents`: which coding agents there are, and what is missing."""

import asyncio

import click

from quarterdeck.cli.agents.looking import find_agents
from quarterdeck.cli.lazy import LazyGroup, Verb
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, table
from quarterdeck.wire.agents import Agent

VERBS = {
    "install": Verb("quarterdeck.cli.agents.install", "Install one that is on npm."),
}
_ACCESS = {"api_key": "key", "login": "login", None: "-"}


@click.group(name="agents", cls=LazyGroup, verbs=VERBS, invoke_without_command=True)
@common_options
@click.pass_context
def command(ctx: click.Context, common: Common) -> None:
    """List the coding agents: version, access to a model, and what is missing.

    The service is asked. Where none runs, this machine is looked at; keys that the service holds
    are not seen then.
    """
    if ctx.invoked_subcommand is not None:
        return
    agents = asyncio.run(find_agents(common.profile))
    if common.json:
        put_json({"agents": agents})
        return
    table(["AGENT", "NAME", "VERSION", "ACCESS", "STATE"], map(_row, agents))


def _row(agent: Agent) -> list[str]:
    return [
        agent.id,
        agent.name,
        agent.version or "-",
        _ACCESS.get(agent.auth_method, agent.auth_method or "-"),
        "ready" if agent.available else agent.reason or "not available",
    ]
