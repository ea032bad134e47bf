"""`qd image`: the image of replicas in containers, and the agents in it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import click

from quarterdeck.cli.agents import find_npm, installable, run_npm
from quarterdeck.cli.containers import opened_docker, sandboxes_table
from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import print_json, print_message
from quarterdeck.cli.program import LazyGroup, Verb
from quarterdeck.cli.target import own_home

NODE = "22.23.3"
"""Node.js for the agents that need it: that of Debian is too old for some."""
PROCESSORS = {"amd64": "x64", "arm64": "arm64"}
"""npm's names of what container engines call their processor."""

IMAGE_VERBS = {
    "build": Verb(__name__, "Build the image of replicas in containers.", "build"),
}


@click.group(name="image", cls=LazyGroup, verbs=IMAGE_VERBS)
def image() -> None:
    """Manage the image of replicas in containers."""


@click.command(name="build")
@click.option(
    "--agents",
    metavar="NAME[@VERSION],...",
    help="Agents to install from npm, in the versions that were tested unless one is given.",
)
@click.option(
    "--base",
    metavar="IMAGE",
    help="Image of Debian or Ubuntu to build on; by default debian:trixie-slim.",
)
@click.option("--tag", metavar="NAME", help="Its name; by default that of [sandboxes].")
@click.option(
    "--wheels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory of packages to install instead of those of the index.",
)
@common_options
def build(
    common: Common, agents: str | None, base: str | None, tag: str | None, wheels: Path | None
) -> None:
    """Build the image of replicas in containers from this program.

    Agents are downloaded by this machine's npm. Use the result as it is, or build your own FROM it with
    other agents and tools.
    """
    wanted = [name.strip() for name in (agents or "").split(",") if name.strip()]
    name = asyncio.run(_build(wanted, base, tag, wheels, quiet=common.json))
    if common.json:
        print_json({"image": name})
    print_message(f"Built {name}.")


async def _build(
    agents: Sequence[str], base: str | None, tag: str | None, wheels: Path | None, quiet: bool
) -> str:
    from quarterdeck.cli.schema import SandboxesTable
    from quarterdeck.sandboxes.errors import SandboxError
    from quarterdeck.sandboxes.image import AGENTS_LABEL, DEFAULT_IMAGE, write_context

    table = sandboxes_table() or SandboxesTable(driver="docker")
    name = tag or table.image or DEFAULT_IMAGE
    packages = [_package(agent) for agent in agents]
    try:
        async with opened_docker(own_home(), table) as containers:
            with TemporaryDirectory(prefix="qd-agents-") as place, TemporaryFile() as context:
                if packages:
                    await asyncio.to_thread(_install, Path(place), packages, containers.processor)
                await asyncio.to_thread(write_context, context, wheels, Path(place))
                context.seek(0)
                labels = {
                    AGENTS_LABEL: ",".join(f"{id}@{version}" for id, _, version, _ in packages)
                }
                async for line in containers.build(name, context, base, labels):
                    if not quiet:
                        print_message(line)
    except SandboxError as e:
        raise FailedError(str(e), e.details) from e
    return name


_Package = tuple[str, str, str, bool]
"""An agent's id, its package, its version, and whether it needs the scripts of packages."""


def _package(agent: str) -> _Package:
    id, preset, version = installable(agent)
    return id, preset.npm or "", version, preset.install_scripts


def _install(place: Path, packages: Sequence[_Package], processor: str) -> None:
    """Install packages for the container engine's machine into a directory.

    Raises:
        FailedError: npm failed, or that machine is not supported.
    """
    if (cpu := PROCESSORS.get(processor)) is None:
        raise FailedError(f"Agents cannot be installed for {processor}.", "Leave --agents out.")
    npm = (
        str(find_npm()),
        "install",
        "--global",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(place),
    )
    target = ("--os=linux", f"--cpu={cpu}", "--libc=glibc")
    node = f"node-linux-{cpu}@{NODE}"
    plain = [f"{package}@{version}" for _, package, version, scripts in packages if not scripts]
    run_npm([*npm, *target, "--ignore-scripts", node, *plain], place)
    others = [f"{package}@{version}" for _, package, version, scripts in packages if scripts]
    if others:
        run_npm([*npm, *target, *others], place)
