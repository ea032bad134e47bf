"""`qd agents install`."""

import os
import shlex
import subprocess
import sys

import click

from quarterdeck.cli.agents.npm import find_npm, place_for
from quarterdeck.cli.agents_here import agents_here, own_agents
from quarterdeck.cli.errors import NotDone, UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.local.home import Home, find_home
from quarterdeck.wire.agents import Agent


@click.command(name="install")
@click.argument("name", metavar="NAME[@VERSION]")
@common_options
def command(common: Common, name: str) -> None:
    """Install an agent that is on npm, on this machine.

    npm is run as it would be by hand, into its own global prefix; where that cannot be written,
    into a directory of quarterdeck's. Replicas see the agent from their next start.
    """
    agent_id, _, version = name.partition("@")
    package = _package(agent_id)
    home = find_home()
    place = place_for(find_npm(), home)
    wanted = f"{package}@{version}" if version else package
    _run([*place.command, wanted], place.note)
    agent = _installed(agent_id, home)
    say(f"{agent.name} {agent.version or ''} is installed.".replace("  ", " "))
    say("Replicas see it from their next start.")
    if not agent.available and agent.reason:
        say(agent.reason)
    if common.json:
        put_json(agent)


def _package(agent_id: str) -> str:
    """The package of an agent.

    Raises:
        UsageFault: there is no such agent, or it is not on npm.
    """
    from quarterdeck.agents.known import all_presets

    known = all_presets(own_agents())
    if agent_id not in known:
        raise UsageFault(f"There is no agent {agent_id!r}.", f"There is: {', '.join(known)}.")
    preset = known[agent_id]
    if preset.ships_with_us:
        raise UsageFault(f"{preset.name} comes with quarterdeck; there is nothing to install.")
    if preset.npm is None:
        step = preset.install or "Install it as its makers say, into a directory of the PATH."
        raise UsageFault(f"quarterdeck does not know how to install {preset.name}.", step)
    return preset.npm


def _run(arguments: list[str], note: str | None) -> None:
    """Runs npm where the person sees it; what it prints is narration, so it goes to stderr.

    Raises:
        NotDone: it failed.
    """
    if note:
        say(note)
    say(f"$ {shlex.join(arguments)}")
    sys.stdout.flush()
    try:
        code = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode
    except OSError as e:
        raise NotDone(f"npm could not be run: {e.strerror}.") from e
    if code != 0:
        raise NotDone(f"npm ended with code {code}.", "Its lines above say why.")


def _installed(agent_id: str, home: Home) -> Agent:
    """The agent as it is found now.

    Raises:
        NotDone: npm was content, and there is still no such program.
    """
    found = {agent.id: agent for agent in agents_here(home, {})}[agent_id]
    if not found.installed:
        raise NotDone(
            f"npm is done, and {found.name} is not found.",
            f"Is the directory of npm's programs in the PATH? It is {os.environ.get('PATH', '')}.",
        )
    return found
