"""`qd agents`: the coding agents of this machine and of the service, and their installation."""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quarterdeck.cli.background import answers
from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import print_json, print_message, print_table
from quarterdeck.cli.program import LazyGroup, Verb
from quarterdeck.cli.target import Target, config_path, find_target, own_home
from quarterdeck.local.files import make_private_directory
from quarterdeck.local.home import Home
from quarterdeck.local.programs import find_program, person_path

if TYPE_CHECKING:
    from quarterdeck.agents.port import AgentStatus
    from quarterdeck.agents.presets import Preset
    from quarterdeck.sandboxes.bubblewrap import Wanted
    from quarterdeck.wire.agents import Agent, OwnAgent


def own_agents() -> "Mapping[str, OwnAgent]":
    """Return the agents that a person added.

    Raises:
        ConfigError: the file is wrong.
    """
    path = config_path()
    if not path.exists():
        return {}
    from quarterdeck.cli.schema import read_config

    return read_config(path).agents


def local_agents(home: Home, own: "Mapping[str, OwnAgent]") -> "list[Agent]":
    """Return the agents of this machine. Reads the disk, so call it in a thread."""
    from quarterdeck.agents.catalog import default_catalog

    environment = {**os.environ, "PATH": person_path(home)}
    return [
        agent_record(status) for status in default_catalog(environment, own, host=True).statuses()
    ]


def sandbox_programs(own: "Mapping[str, OwnAgent]") -> "Wanted":
    """Return the programs and paths of this machine that sandboxes need to run the agents."""
    from quarterdeck.agents.catalog import programs_of
    from quarterdeck.sandboxes.bubblewrap import Wanted

    paths = [Path(path) for agent in own.values() for path in agent.shown]
    return Wanted(programs_of(own), tuple(paths))


def agent_record(status: "AgentStatus") -> "Agent":
    """Return the interface's record of an agent."""
    from quarterdeck.wire.agents import Agent, AgentModel

    return Agent(
        id=status.id,
        name=status.name,
        available=status.available,
        auth_method=status.auth_method,
        supports_goal=status.supports_goal,
        supports_plan=status.supports_plan,
        supports_steer=status.supports_steer,
        configured=status.configured,
        reason=status.reason,
        installed=status.installed,
        version=status.version,
        install=status.install,
        login_found=status.login_found,
        models=[AgentModel(id=id, display_name=name) for id, name in status.models],
        default_model=status.default_model,
        missing_keys=list(status.missing_keys),
        logins=list(status.logins),
        own_key=status.own_key,
    )


async def _find_agents(profile: str | None) -> "list[Agent]":
    """Return the agents of the service, or, with a message, those of this machine.

    Raises:
        ConfigError: the configuration file is wrong.
        ClientError: a service did not answer or refused.
    """
    target = find_target(profile)
    if not target.embedded or await _is_available(target):
        async with target.client() as client:
            return await client.agents.list()
    print_message("No service is running here; these are this machine's agents.")
    return await asyncio.to_thread(local_agents, target.home, own_agents())


async def _is_available(target: Target) -> bool:
    return target.current_key() is not None and await answers(target.home)


VERBS = {
    "install": Verb(__name__, "Install an agent from npm.", "install"),
    "search": Verb("quarterdeck.cli.agent_search", "Search the registry of agents.", "search"),
}
_ACCESS = {"api_key": "key", "login": "login", None: "-"}


@click.group(name="agents", cls=LazyGroup, verbs=VERBS, invoke_without_command=True)
@common_options
@click.pass_context
def agents(ctx: click.Context, common: Common) -> None:
    """List the coding agents: version, access to a model, and what is missing.

    The service answers. If none is running, this machine is checked; keys stored in the service
    are not seen then.
    """
    if ctx.invoked_subcommand is not None:
        return
    agents = asyncio.run(_find_agents(common.profile))
    if common.json:
        print_json({"agents": agents})
        return
    print_table(["AGENT", "NAME", "VERSION", "ACCESS", "STATE"], map(_row, agents))


def _row(agent: "Agent") -> list[str]:
    return [
        agent.id,
        agent.name,
        agent.version or "-",
        _ACCESS.get(agent.auth_method, agent.auth_method or "-"),
        "ready" if agent.available else agent.reason or "not available",
    ]


_NPM_TIMEOUT = 30.0
_ROOM_BYTES = 200 << 20
"""An agent may need more than this."""
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]*")
"""A version or a tag of npm."""


@dataclass(frozen=True)
class _NpmInstall:
    """The command of npm, without the package, and where it puts programs.

    `note` explains another directory than usual.
    """

    command: tuple[str, ...]
    programs: Path
    note: str | None = None


def find_npm() -> Path:
    """Return the person's npm.

    Raises:
        FailedError: there is none.
    """
    npm = find_program("npm", os.environ.get("PATH", os.defpath))
    if npm is None:
        raise FailedError(
            "npm is not installed, and this agent is an npm package.",
            "Install Node.js with npm (Debian, Ubuntu: apt install npm), and try again.",
        )
    return npm


def _npm_install(npm: Path, home: Home) -> _NpmInstall:
    """Return the npm command: into the person's global prefix if usable, else into our own directory.

    Raises:
        FailedError: npm does not print its prefix, or our directory cannot be created.
    """
    install = (str(npm), "install", "--global", "--no-audit", "--no-fund")
    prefix = _npm_prefix(npm)
    if str(prefix / "bin") not in person_path(home).split(os.pathsep):
        why = f"{prefix}/bin, where npm installs programs, is not on the PATH"
    elif not all(_is_writable(prefix / part) for part in ("lib/node_modules", "bin")):
        why = f"{prefix}, where npm installs programs, is not writable"
    else:
        return _NpmInstall(install, prefix / "bin")
    try:
        make_private_directory(home.root)
        home.agents.mkdir(exist_ok=True)
        home.agents.chmod(0o755)
    except OSError as e:
        raise FailedError(f"{why}, and {home.agents} cannot be created: {e.strerror}.") from e
    return _NpmInstall(
        (*install, "--prefix", str(home.agents)),
        home.agents / "bin",
        f"{why}; so it goes to {home.agents}.",
    )


def _npm_prefix(npm: Path) -> Path:
    try:
        process = subprocess.run(
            [str(npm), "prefix", "--global"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_NPM_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise FailedError(f"npm could not be run: {e}.") from e
    output = process.stdout.strip()
    if process.returncode != 0 or not output.startswith("/"):
        last = (process.stderr.strip() or output).splitlines()[-1:]
        raise FailedError("npm did not report its install directory.", "".join(last) or None)
    return Path(output)


def _is_writable(path: Path) -> bool:
    return os.access(_existing(path), os.W_OK | os.X_OK)


def _existing(path: Path) -> Path:
    """Return a path, or the nearest above it that exists."""
    return next(parent for parent in (path, *path.parents) if parent.exists())


@click.command(name="install")
@click.argument("name", metavar="NAME[@VERSION]")
@common_options
def install(common: Common, name: str) -> None:
    """Install an agent from npm on this machine: the version that was tested, unless one is given.

    npm installs into its global prefix; if that is not writable, into a directory of
    quarterdeck's. Replicas see the agent from their next start.
    """
    agent_id, preset, version = installable(name)
    home = own_home()
    place = _npm_install(find_npm(), home)
    scripts = () if preset.install_scripts else ("--ignore-scripts",)
    # Programs in our own directory are for every replica, and for nobody else to write.
    mask = -1 if place.note is None else 0o022
    run_npm([*place.command, *scripts, f"{preset.npm}@{version}"], place.programs, place.note, mask)
    agent = _installed_agent(agent_id, home)
    _report_version(agent, preset, place.programs, home)
    if not agent.available and agent.reason:
        print_message(agent.reason)
    if common.json:
        print_json(agent)


def _report_version(agent: "Agent", preset: "Preset", programs: Path, home: Home) -> None:
    """Say which version was installed where, and which one the PATH leads to."""
    from quarterdeck.agents.availability import packaged_version

    installed = programs / preset.command[0]
    version = packaged_version(installed) or "another version"
    print_message(f"{agent.name} {version} is installed: {installed}.")
    used = find_program(preset.command[0], person_path(home))
    if used is None or used.resolve() == installed.resolve():
        print_message("Replicas see it from their next start.")
        return
    print_message(
        f"Replicas use {agent.name} {agent.version or 'of unknown version'}, {used}, because "
        f"{used.parent} comes before {programs} on the PATH. Remove that one, or change the order."
    )


def installable(name: str) -> "tuple[str, Preset, str]":
    """Return the id, the preset and the version of `NAME[@VERSION]`, an agent that is on npm.

    Raises:
        UsageError: the agent is unknown or not on npm, or the version is invalid.
    """
    from quarterdeck.agents.catalog import all_presets

    agent_id, _, version = name.partition("@")
    # npm would take a path, an address or another package in its place.
    if version and not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is not a version, such as 1.2.3 or latest.")
    known = all_presets(own_agents())
    if agent_id not in known:
        raise UsageError(f"There is no agent {agent_id!r}.", f"There is: {', '.join(known)}.")
    preset = known[agent_id]
    if preset.ships_with_us:
        raise UsageError(f"{preset.name} is built in; there is nothing to install.")
    if preset.npm is None:
        step = (
            preset.install or "Install it as its documentation says, into a directory of the PATH."
        )
        raise UsageError(f"quarterdeck does not know how to install {preset.name}.", step)
    return agent_id, preset, version or preset.tested or "latest"


def run_npm(arguments: list[str], place: Path, note: str | None = None, mask: int = -1) -> None:
    """Run npm, which installs at `place`, with its output on stderr, where the person sees it.

    `mask` is its umask; -1 leaves that of this process.

    Raises:
        FailedError: it failed.
    """
    if note:
        print_message(note)
    print_message(f"$ {shlex.join(arguments)}")
    sys.stdout.flush()
    try:
        code = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, stdout=sys.stderr, umask=mask
        ).returncode
    except OSError as e:
        raise FailedError(f"npm could not be run: {e.strerror}.") from e
    if code == 0:
        return
    for path in (_existing(place), _existing(Path.home())):  # npm's cache is in the home
        if (free := shutil.disk_usage(path).free) < _ROOM_BYTES:
            raise FailedError(
                f"npm: exit status {code}. Only {free >> 20} MB are free at {path}.",
                "Make room there, and try again. npm's output is above.",
            )
    raise FailedError(f"npm: exit status {code}.", "See its output above.")


def _installed_agent(agent_id: str, home: Home) -> "Agent":
    """Return the agent that was installed.

    Raises:
        FailedError: npm succeeded, but the program is missing.
    """
    installed = {agent.id: agent for agent in local_agents(home, {})}[agent_id]
    if not installed.installed:
        raise FailedError(
            f"npm is done, and {installed.name} is not found.",
            f"Is the directory of npm's programs in the PATH? It is {os.environ.get('PATH', '')}.",
        )
    return installed
