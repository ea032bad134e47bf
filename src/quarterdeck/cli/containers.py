"""Replicas in containers: the driver that the configuration file chooses."""

import asyncio
import json
import logging
import os
import shlex
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any

from quarterdeck import __version__
from quarterdeck.cli.agents import agent_record, local_agents
from quarterdeck.cli.errors import ConfigError
from quarterdeck.cli.target import config_path
from quarterdeck.cli.way_home import WayHome
from quarterdeck.local.files import read_file, write_file
from quarterdeck.local.home import Home

if TYPE_CHECKING:
    from quarterdeck.cli.schema import SandboxesTable
    from quarterdeck.sandboxes.docker import DockerContainers
    from quarterdeck.sandboxes.kubernetes.containers import KubernetesContainers
    from quarterdeck.sandboxes.port import SandboxDriver
    from quarterdeck.sandboxes.process import ProcessDriver
    from quarterdeck.sandboxes.switchboard import Switchboard
    from quarterdeck.service.listeners import Listener
    from quarterdeck.wire.agents import Agent, OwnAgent

log = logging.getLogger(__name__)

ASK_SECONDS = 150.0
"""How long an image may take to say which agents it has."""


def sandboxes_table() -> "SandboxesTable | None":
    """Return the table [sandboxes] if it chooses containers, else None.

    Raises:
        ConfigError: the file is wrong.
    """
    path = config_path()
    if not path.exists():
        return None
    from quarterdeck.cli.schema import read_config  # pydantic is only needed for a file

    table = read_config(path).sandboxes
    return None if table.driver == "process" else table


@dataclass(frozen=True)
class Placement:
    """What a service needs for replicas elsewhere than in processes of its machine."""

    agents: "Callable[[], list[Agent]]"
    others: "Mapping[str, SandboxDriver]" = field(default_factory=dict[str, "SandboxDriver"])
    switchboard: "Switchboard | None" = None
    inside: "asyncio.Queue[Listener] | None" = None
    """Where the service listens for containers, as soon as that is known."""


@asynccontextmanager
async def placement(
    home: Home, local: "ProcessDriver", own: "Mapping[str, OwnAgent]"
) -> AsyncGenerator[Placement]:
    """Connect to what the configuration file chooses for new replicas, also when it is away now.

    Raises:
        ConfigError: the file is wrong, or the libraries for it are not installed.
        SandboxError: the container engine refuses what is needed.
    """
    table = sandboxes_table()
    if table is None:
        yield Placement(lambda: local_agents(home, own))
        return
    from quarterdeck.sandboxes.containers import ContainerDriver
    from quarterdeck.sandboxes.errors import EngineAwayError

    watch = None
    if table.driver == "kubernetes":
        containers = kubernetes(home, table)
        from quarterdeck.sandboxes.kubernetes.driver import KubernetesDriver

        way = WayHome(home, None, table)
        driver = KubernetesDriver(home, local.mirrors, containers, lambda: way.address)
    else:
        containers = _docker(home, table)
        way = WayHome(home, containers, table)
        driver = ContainerDriver(home, local.mirrors, containers, lambda: way.address)
        watch = containers.watch
    keeping: list[asyncio.Task[None]] = []
    try:
        with suppress(EngineAwayError):  # it is in the log, and connected to when it answers
            await containers.open()
            await way.connected()
        ways = {"connecting to": containers.keep_connected(way.connected)}
        if watch is not None:
            ways["watching"] = watch(driver.switchboard.end)
        for name, running in ways.items():
            task = asyncio.create_task(running, name=f"{name} the container engine")
            task.add_done_callback(_report_failure)
            keeping.append(task)
        yield Placement(
            _ImageAgents(containers, home, own, asyncio.get_running_loop()),
            {table.driver: driver},
            driver.switchboard,
            way.listeners,
        )
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
        await containers.close()


def _report_failure(keeping: asyncio.Task[None]) -> None:
    if not keeping.cancelled() and (failure := keeping.exception()) is not None:
        name = keeping.get_name()
        log.error("%s has ended: %r", name, failure, exc_info=failure)


@asynccontextmanager
async def opened_docker(home: Home, table: "SandboxesTable") -> "AsyncGenerator[DockerContainers]":
    """Connect to the container engine.

    Raises:
        ConfigError: the libraries for it are not installed.
        SandboxError: it does not answer.
    """
    containers = _docker(home, table)
    try:
        await containers.open()
        yield containers
    finally:
        await containers.close()


def _docker(home: Home, table: "SandboxesTable") -> "DockerContainers":
    from quarterdeck.sandboxes.image import DEFAULT_IMAGE

    try:
        from quarterdeck.sandboxes.docker import DEFAULT_ADDRESS, DockerContainers
        from quarterdeck.sandboxes.docker_tls import CERTIFICATES
    except ModuleNotFoundError as e:
        raise _not_installed("The driver docker", e.name, "docker") from e
    address = table.address or DEFAULT_ADDRESS
    if address.startswith("ssh://") and find_spec("asyncssh") is None:
        raise _not_installed(address, "asyncssh", "ssh")
    path = table.certificates and config_path().parent / Path(table.certificates).expanduser()
    if path and (missing := [name for name in CERTIFICATES if not (path / name).is_file()]):
        raise ConfigError(f"sandboxes.certificates: {path} lacks {', '.join(missing)}.")
    image = table.image or DEFAULT_IMAGE
    if table.swarm:
        from quarterdeck.sandboxes.swarm import SwarmContainers

        containers = SwarmContainers(home, image, address, path or None, table.constraints)
    else:
        containers = DockerContainers(home, image, address, path or None)
    containers.storage = table.storage_bytes
    return containers


def kubernetes(home: Home, table: "SandboxesTable") -> "KubernetesContainers":
    """Return the cluster of the configuration file, to be opened.

    Raises:
        ConfigError: the libraries for it are not installed.
    """
    try:
        from quarterdeck.sandboxes.kubernetes.containers import KubernetesContainers
        from quarterdeck.sandboxes.kubernetes.objects import Cluster
    except ModuleNotFoundError as e:
        raise _not_installed("The driver kubernetes", e.name, "kubernetes") from e
    mark = sha256(f"{gethostname()} {home.root.resolve()}".encode()).hexdigest()[:32]
    cluster = Cluster(table.image or "", **table.kubernetes.model_dump())
    return KubernetesContainers(mark, cluster)


def _not_installed(what: str, missing: str | None, extra: str) -> ConfigError:
    return ConfigError(
        f"{what} needs {missing}, which is not installed.", f"Install it: {install_command(extra)}"
    )


def install_command(extra: str) -> str:
    """Return the command that installs an extra for this interpreter, also in a checkout."""
    checkout = Path(__file__).parents[3]
    if (checkout / "pyproject.toml").exists():
        what = ("-e", f"{checkout}[{extra}]")
    else:
        what = (f"quarterdeck[{extra}]",)
    return shlex.join((sys.executable, "-m", "pip", "install", *what))


class _ImageAgents:
    """The agents of the image, which is asked once, also over restarts. Called in a thread."""

    def __init__(
        self,
        containers: "DockerContainers | KubernetesContainers",
        home: Home,
        own: "Mapping[str, OwnAgent]",
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._containers = containers
        self._home = home
        self._own = own
        self._loop = loop
        self._image = ""
        self._found: list[Agent] = []

    def __call__(self) -> "list[Agent]":
        from quarterdeck.sandboxes.errors import EngineAwayError, ProcessError, SandboxError

        asking = asyncio.run_coroutine_threadsafe(self._ask(), self._loop)
        try:
            return asking.result(ASK_SECONDS)
        except EngineAwayError:
            # Replicas that run as processes still work; creating one in a container is refused.
            return self._found or local_agents(self._home, self._own)
        except (SandboxError, ProcessError, TimeoutError) as e:
            known = local_agents(self._home, self._own)
            reason = str(e) or "The image does not answer."
            return [
                agent.model_copy(update={"available": False, "reason": reason}) for agent in known
            ]

    async def _ask(self) -> "list[Agent]":
        from pydantic import TypeAdapter

        from quarterdeck.agents.port import AgentStatus
        from quarterdeck.wire.agents import OwnAgent

        image, _ = await self._containers.image()
        if image != self._image:
            own = TypeAdapter(dict[str, OwnAgent]).dump_json(dict(self._own))
            known = self._home.service / "image-agents.json"
            question = sha256(f"{__version__} {image} ".encode() + own).hexdigest()
            output = await asyncio.to_thread(_answer, known, question)
            if output is None:
                command = ("/opt/quarterdeck/bin/python", "-I", "-m", "quarterdeck.agents")
                output = await self._containers.in_image(command, own)
                answer = {"question": question, "agents": json.loads(output)}
                await asyncio.to_thread(write_file, known, json.dumps(answer), durable=False)
            statuses = TypeAdapter(list[AgentStatus]).validate_json(output)
            self._found = [agent_record(_with_key(status)) for status in statuses]
            self._image = image
        return self._found


def _answer(path: Path, question: str) -> bytes | None:
    """Return the answer that an image gave to an earlier service; None when it was not asked this."""
    try:
        kept = json.loads(read_file(path))
        return json.dumps(kept["agents"]).encode() if kept["question"] == question else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _with_key(status: Any) -> Any:
    """Return the status with the variable of the service's environment that has a key for it."""
    own = next((name for name in status.missing_keys if os.environ.get(name)), None)
    return replace(status, own_key=own)
