"""Containers of a Docker Engine or of podman, through the API of Docker (`aiodocker`).

A workspace has a volume and, while it runs, a container, both named after it. Commands for its files
run in containers of their own. Labels say what each is for. What an engine does not do is found out
from what it answers, never from its name.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from dataclasses import replace
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from uuid import uuid4

import aiohttp
from aiodocker import Docker, DockerError
from aiodocker.containers import DockerContainer

from quarterdeck import __version__
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.answers import ANSWER_BYTES, REASON_CHARACTERS, understood
from quarterdeck.sandboxes.container_engine import Container, Launch, output_of
from quarterdeck.sandboxes.container_limits import host_limits
from quarterdeck.sandboxes.docker_client import ANSWER_SECONDS, DockerClient, read_log
from quarterdeck.sandboxes.docker_commands import (
    InputError,
    remove_container,
    run_command,
    unless_gone,
)
from quarterdeck.sandboxes.docker_tls import DockerTls
from quarterdeck.sandboxes.docker_volumes import (
    require_quotas,
    volume_driver,
    volume_mount,
    volume_name,
)
from quarterdeck.sandboxes.errors import EngineAwayError, SandboxError
from quarterdeck.sandboxes.image import VERSION_LABEL, check_version
from quarterdeck.sandboxes.interpreter import SYSTEM_PATH
from quarterdeck.sandboxes.port import Absence, Gap, Isolation, Layout, Progress, Size
from quarterdeck.wire.base import utc_now

if TYPE_CHECKING:
    from quarterdeck.sandboxes.ssh_tunnel import SshTunnel

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"
NETWORK = "quarterdeck"
"""The bridge of all replicas, which does not lead from one to another where the engine can do that."""
_APART = "com.docker.network.bridge.enable_icc"
_LIMITS = {"CpuCfsQuota": "processor time", "MemoryLimit": "memory", "PidsLimit": "processes"}
"""What a container engine says that it can limit, and of what."""
HOME_LABEL = "quarterdeck.home"
ROLE_LABEL = "quarterdeck.role"
WORKSPACE_LABEL = "quarterdeck.workspace"
DIGEST_LABEL = "quarterdeck.token-digest"
OWNER_LABEL = "quarterdeck.owner"
"""Which service runs a command: others may remove its container."""
ENGINE, COMMAND = "engine", "command"

OPEN_SECONDS = 60.0
"""How long a container engine may take to say what it is."""
BUILD_SECONDS = 3600.0
AGAIN_SECONDS = 1.0
"""Pause between two attempts to connect to a container engine that does not answer."""
UNUSABLE_SECONDS = 5.0
"""The same for one that answers and refuses."""
STOP_SECONDS = 3
_NOT_CONNECTED = 900
"""The library's status of a failed connection."""
_ALIVE = ("running", "paused", "restarting")
_INTERPRETER = ("/opt/quarterdeck/bin/python", "-I")
_IGNORES_LIMITS = "io.containerd.snapshotter.v1"
"""Docker with the images of containerd accepts the limit of a container's layer, and ignores it."""

log = logging.getLogger(__name__)


class DockerContainers:
    """A `ContainerEngine` on a Docker Engine or podman. `open` before use, `close` at the end.

    Args:
        home: the installation that the containers belong to.
        image: of the containers.
        address: `unix://` and a path, `ssh://` (`ssh_tunnel`), or `tcp://` with `certificates`.
        certificates: the directory of those of `docker_tls`.
    """

    def __init__(
        self,
        home: Home,
        image: str,
        address: str = DEFAULT_ADDRESS,
        certificates: Path | None = None,
    ) -> None:
        self._home = home
        self.image_name = image
        self._address = address
        self._tls = DockerTls(address, certificates) if certificates else None
        self._docker: Docker | None = None
        self._context: ssl.SSLContext | None = None
        self._opened: list[Docker] = []
        """The one in use, and those of earlier certificates, whose calls may still run."""
        self._tunnel: SshTunnel | None = None
        self._owner = uuid4().hex
        self._processors = 0
        self._unlimited: list[str] = []
        self._apart = True
        self._lost = asyncio.Event()
        self._volume: dict[str, Any] = {}
        self.moves = False
        self.storage: int | None = None
        """The most bytes of a volume, and of what a container writes elsewhere where that can be limited;
        needs a file system with project quotas."""
        self._limits_layers = True
        self.absence: Absence | None = None
        """Since when and why it does not answer; None while it does, as far as known."""
        self.gateway = ""
        """The address of this machine on the bridge of replicas."""
        self.engine = ""
        """Its name and version."""
        self.processor = ""
        """What it calls its machine's processor."""
        self.rootless = False
        """Whether it runs without root, with its bridge in a network of its own."""

    @property
    def _mark(self) -> str:
        """The name of the installation, by its id: several may have the same path on their machines."""
        id = self._home.id  # made at its first start
        name = id.read_bytes() if id.exists() else bytes(self._home.root.resolve())
        return sha256(name).hexdigest()[:32]

    async def open(self) -> None:
        """Connect, and make the network unless it is there.

        Safe to call again, also after a failure. Close it in every case.

        Raises:
            EngineAwayError: nothing answers.
            SandboxError: it refuses the network, or the line to it cannot be used.
        """
        with self._failures(connected=False):
            await self._connect()
            async with asyncio.timeout(OPEN_SECONDS):
                await self._inspect_engine()
        self._lost.clear()
        if self.absence is not None:
            self.absence = None
            log.warning("The container engine answers again at %s", self._address)

    async def _inspect_engine(self) -> None:
        info = cast("dict[str, Any]", await self._api.system.info())
        version = await self._api.version()
        await self._look_at(info)
        self._processors = int(info["NCPU"])
        self.engine = _engine(version)
        self.processor = str(version.get("Arch", ""))
        self.rootless = _is_rootless(info)
        # Without root, control groups of version 1 cannot be delegated, whatever the engine reports.
        none = self.rootless and info.get("CgroupVersion") == "1"
        self._unlimited = [what for flag, what in _LIMITS.items() if none or not info.get(flag)]
        if _IGNORES_LIMITS in str(info.get("DriverStatus")):
            self._limits_layers = False
        self._volume = volume_driver(self.engine, self.storage)
        await require_quotas(self._api, self._volume)
        network = await self._network()
        self._apart = (network["Options"] or {}).get(_APART) == "false"
        self.gateway = _gateway(network)

    async def _connect(self) -> None:
        url, tls = self._address, None
        if url.startswith("ssh://"):
            if self._tunnel is None:
                from quarterdeck.sandboxes.ssh_tunnel import SshTunnel  # of another extra

                self._tunnel = SshTunnel(url)
            await self._tunnel.open()
            url = f"unix://{self._tunnel.path}"
        elif url.startswith("tcp://"):
            assert self._tls is not None  # the configuration file is refused without certificates
            url = f"https://{url.removeprefix('tcp://')}"
            tls = self._tls.context()
        if self._docker is None or tls is not self._context:
            self._docker, self._context = DockerClient(url, tls), tls
            self._opened.append(self._docker)

    async def keep_connected(self, connected: Callable[[], Awaitable[None]]) -> None:
        """Connect again, with pauses, whenever the container engine was away; never return.

        Args:
            connected: called after each time.
        """
        reported = ""
        while True:
            await self._lost.wait()
            try:
                await self.open()
                await connected()
                reported = ""
            except EngineAwayError:
                await asyncio.sleep(AGAIN_SECONDS)
            except (SandboxError, OSError) as e:
                details = e.details if isinstance(e, SandboxError) else None
                if str(e) != reported:
                    log.error("The container engine cannot be used: %s %s", e, details or "")
                reported = str(e)
                if self.absence is not None:
                    self.absence = replace(self.absence, reason=reported)
                self._lost.set()
                await asyncio.sleep(UNUSABLE_SECONDS)

    async def watch(self, lost: Callable[[str], None]) -> None:
        """Report workspaces whose machine is lost while this one is not; there are none."""

    async def require(self) -> None:
        with self._failures():
            await self._api.version()

    async def close(self) -> None:
        """Disconnect; containers continue to run."""
        self._docker = None
        while self._opened:
            await self._opened.pop().close()
        if self._tunnel is not None:
            await self._tunnel.close()
            self._tunnel = None

    async def _look_at(self, info: Mapping[str, Any]) -> None:
        """Check what the container engine says about itself.

        Raises:
            SandboxError: it cannot be used.
        """

    async def _network(self) -> dict[str, Any]:
        try:
            network = await self._api.networks.get(NETWORK)
        except DockerError as e:
            if e.status != 404:
                raise
            network = await self._api.networks.create(
                {
                    "Name": NETWORK,
                    "Driver": "bridge",
                    "CheckDuplicate": True,
                    "Options": {_APART: "false"},
                }
            )
        return await network.show()

    @property
    def _api(self) -> Docker:
        assert self._docker is not None  # it was opened
        return self._docker

    @contextmanager
    def _failures(self, connected: bool = True) -> Generator[None]:
        if connected and not self.gateway:
            raise EngineAwayError(
                self.absence.reason
                if self.absence
                else "The container engine has not answered yet."
            )
        try:
            with understood("The container engine"):
                yield
        except InputError as e:
            raise e.failure from e
        except EngineAwayError as e:  # the line to it
            raise self._away(e, str(e)) from e
        except DockerError as e:
            said = str(e.message)[:REASON_CHARACTERS]
            if e.status == 404 and "image" in said.lower():
                raise SandboxError(
                    f"The image {self.image_name} does not exist. Build it with: qd image build.",
                    said,
                ) from e
            if e.status == _NOT_CONNECTED:
                raise self._unreached(e, e.__context__, connected) from e
            raise SandboxError(f"The container engine refused: {said}") from e
        except (aiohttp.ClientError, OSError, TimeoutError) as e:
            raise self._unreached(e, e, connected) from e

    def _unreached(
        self, error: Exception, cause: BaseException | None, connected: bool
    ) -> SandboxError:
        refusal = self._tls and self._tls.refusal(cause)
        if refusal is None:
            return self._away(error)
        # Replicas wait for an engine whose certificate is another one now.
        return self._away(error, str(refusal)) if connected else refusal

    def _away(self, error: Exception, text: str = "") -> EngineAwayError:
        text = text or (
            f"The container engine does not answer at {self._address}. Start it, or change "
            "[sandboxes] in the configuration file."
        )
        if self.absence is None:
            self.absence = Absence(utc_now(), text)
            log.warning("%s Its replicas wait until it answers again. (%s)", text, error)
        self._lost.set()
        return EngineAwayError(text, str(error))

    # What there is

    def layout(self, workspace_id: str) -> Layout:
        return Layout(
            workspace_dir="/replica/workspace",
            home_dir="/replica/home",
            state_dir="/replica/state",
            run_dir="/run/replica",
            interpreter=_INTERPRETER,
        )

    async def isolation(self) -> Isolation:
        return Isolation(
            "container",
            "uid 1000 of the image",
            self.engine,
            size_limited=not self._unlimited,
            gaps=tuple(self._gaps()),
        )

    def _gaps(self) -> Generator[Gap]:
        if self._unlimited:
            yield Gap(
                f"a replica's {', '.join(self._unlimited)} cannot be limited by its size",
                "Run the engine as root, or on control groups of version 2; see docs/placement.md.",
            )
        if self.storage is None:
            yield Gap(
                "the disk space of a replica is not limited",
                "Set sandboxes.storage, where the engine has project quotas; see docs/placement.md.",
            )
        elif not self._limits_layers:
            yield Gap(
                "what a replica writes outside its volume, such as in /tmp, is not limited",
                "Docker and podman limit it with overlay on XFS with project quotas.",
            )
        if not self._apart:
            yield Gap(
                "replicas reach each other's ports on the network",
                "Of an engine that runs as root, a firewall closes it; see docs/placement.md.",
            )

    async def summary(self) -> str:
        """Return what answers, for a person."""
        return f"{self.engine}, bridge {self.gateway}"

    async def image(self) -> tuple[str, str | None]:
        """Return the id of the image, and the version of the engine in it.

        Raises:
            SandboxError: there is no such image.
        """
        with self._failures():
            try:
                found = await self._api.images.inspect(self.image_name)
            except DockerError as e:
                raise DockerError(e.status, f"image: {e.message}") from e
            labels: dict[str, str] = found["Config"].get("Labels") or {}
            version = labels.get(VERSION_LABEL)
            return str(found["Id"]), None if version is None else str(version)

    async def find(self, workspace_id: str) -> Container:
        with self._failures():
            try:
                found = await self._api.containers.get(volume_name(workspace_id))
            except DockerError as e:
                if e.status == 404:
                    return Container("gone")
                raise
            shown: dict[str, Any] = found._container  # pyright: ignore[reportPrivateUsage]
            state = shown["State"]
            if state["Status"] in _ALIVE:
                digest = shown["Config"]["Labels"].get(DIGEST_LABEL)
                return Container("running", digest and str(digest))
            code = state.get("ExitCode")
            return Container(
                "gone", reason="out of memory" if state.get("OOMKilled") else f"exit code {code}"
            )

    async def has_volume(self, workspace_id: str) -> bool:
        with self._failures():
            try:
                await self._api.volumes.get(volume_name(workspace_id))
            except DockerError as e:
                if e.status == 404:
                    return False
                raise
        return True

    async def note_files(self, workspace_id: str) -> None:
        """Part of `ContainerEngine`: a workspace has one volume."""

    async def ended(self, workspace_id: str) -> str:
        with self._failures():
            container = self._api.containers.container(volume_name(workspace_id))
            await container.wait()
            return await read_log(self._api, f"containers/{container.id}")

    async def build(
        self, name: str, context: BinaryIO, base: str | None, labels: Mapping[str, str]
    ) -> AsyncGenerator[str]:
        """Build an image; yield lines of progress.

        Raises:
            SandboxError: it failed; `details` is the last line.
        """
        with self._failures():
            building = self._api.images.build(
                fileobj=context,
                encoding="identity",
                tag=name,
                buildargs={"BASE": base} if base else None,
                labels={VERSION_LABEL: __version__, **labels},
                stream=True,
                timeout=BUILD_SECONDS,
            )
            async for part in building:
                if "error" in part:
                    raise SandboxError("The image could not be built.", str(part["error"]))
                if text := str(part.get("stream") or "").strip():
                    yield text

    # Starting and ending

    async def start(self, launch: Launch, report: Progress) -> None:
        name = volume_name(launch.workspace_id)
        check_version(self.image_name, (await self.image())[1])
        with self._failures():
            await remove_container(self._api, name)
            await self._make_volume(launch.workspace_id)
            report("Starting the container")
            labels = {**self._labels(launch.workspace_id, ENGINE), DIGEST_LABEL: launch.digest}
            host = {
                **self._host(launch.size, [volume_mount(launch.workspace_id, "/replica")]),
                "NetworkMode": NETWORK,
                "Tmpfs": {"/run/replica": "rw,nosuid,nodev,mode=1777,size=64m"},
            }
            config = self._config(labels, host, launch.environment)
            container = await self._create(config, name)
            await container.start()

    async def stop(self, workspace_id: str) -> None:
        with self._failures():
            for container in await self._labelled(f"{WORKSPACE_LABEL}={workspace_id}"):
                with unless_gone():
                    await container.stop(t=STOP_SECONDS, timeout=ANSWER_SECONDS)
                await remove_container(self._api, container.id)

    async def destroy(self, workspace_id: str) -> None:
        with self._failures():
            for container in await self._labelled(f"{WORKSPACE_LABEL}={workspace_id}"):
                await remove_container(self._api, container.id)
            with unless_gone():
                await (await self._api.volumes.get(volume_name(workspace_id))).delete()

    async def tidy(self) -> None:
        with self._failures():
            commands = f"{HOME_LABEL}={self._mark}", f"{ROLE_LABEL}={COMMAND}"
            for container in await self._labelled(*commands):
                if container["Labels"].get(OWNER_LABEL) != self._owner:
                    await remove_container(self._api, container.id)

    async def _labelled(self, *labels: str) -> list[DockerContainer]:  # of any installation
        return await self._api.containers.list(all="true", filters=json.dumps({"label": labels}))

    async def _make_volume(self, workspace_id: str) -> None:
        labels = {HOME_LABEL: self._mark, WORKSPACE_LABEL: workspace_id}
        name = volume_name(workspace_id)
        await self._api.volumes.create({"Name": name, "Labels": labels, **self._volume})

    async def _create(self, config: dict[str, Any], name: str) -> DockerContainer:
        """Create a container; limit what it writes outside of volumes if the engine can do that."""
        if self.storage is not None and self._limits_layers:
            limit = {"StorageOpt": {"size": str(self.storage)}}
            limited = {**config, "HostConfig": {**config["HostConfig"], **limit}}
            try:
                return await self._api.containers.create(limited, name=name)
            except DockerError as e:
                # Docker: "--storage-opt is supported only for overlay over xfs"; podman: "Storage option overlay.size".
                said = str(e.message)[:REASON_CHARACTERS]
                if not any(name in said.lower() for name in ("storage-opt", "storage option")):
                    raise
                log.warning("What containers write outside their volume is not limited: %s", said)
                self._limits_layers = False
        return await self._api.containers.create(config, name=name)

    def _labels(self, workspace_id: str, role: str) -> dict[str, str]:
        labels = {HOME_LABEL: self._mark, WORKSPACE_LABEL: workspace_id, ROLE_LABEL: role}
        return {**labels, OWNER_LABEL: self._owner}

    def _host(self, size: Size, mounts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return what bounds a container, and its volumes."""
        limits = host_limits(size, self._processors, self.engine, self.rootless)
        return {"Mounts": list(mounts), **limits}

    def _config(
        self, labels: Mapping[str, str], host: Mapping[str, Any], environment: Mapping[str, str]
    ) -> dict[str, Any]:
        return {
            "Image": self.image_name,
            "Labels": labels,
            "Env": [f"{name}={text}" for name, text in environment.items()],
            "HostConfig": host,
        }

    # Commands

    async def run(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        directory: str = "/",
        data: bytes | AsyncIterator[bytes] = b"",
        environment: Mapping[str, str] = MappingProxyType({}),
        source_id: str | None = None,
    ) -> AsyncGenerator[bytes]:
        mounts = [volume_mount(workspace_id, "/replica")]
        if source_id is not None:
            mounts.append(volume_mount(source_id, "/source", read_only=True))
        labels = self._labels(workspace_id, COMMAND)
        with self._failures():
            await self._make_volume(workspace_id)
            config = self._config(labels, self._host("small", mounts), environment)
            config["WorkingDir"] = directory
            # The image's begins with a directory of the volume, where programs inside leave any `head` or `tar`.
            config["Env"] = [f"PATH={':'.join(SYSTEM_PATH)}", *config["Env"]]
            async with aclosing(
                run_command(self._api, self._create, config, command, data)
            ) as parts:
                async for part in parts:
                    yield part

    async def in_image(self, command: Sequence[str], data: bytes = b"") -> bytes:
        """Run a command in a new container without a volume; return its output.

        Raises:
            ProcessError, SandboxError: as `run`.
        """
        config = self._config(self._labels("", COMMAND), self._host("small", []), {})
        with self._failures():
            return await output_of(
                run_command(self._api, self._create, config, command, data), ANSWER_BYTES
            )


def _engine(version: Mapping[str, Any]) -> str:
    # Docker calls itself an engine only.
    name = str(version["Components"][0]["Name"])
    return f"{'Docker Engine' if name == 'Engine' else name} {version['Version']}"


def _gateway(network: Mapping[str, Any]) -> str:
    address = ip_address(network["IPAM"]["Config"][0]["Gateway"])
    if address.is_unspecified or address.is_multicast:  # the service listens there
        raise ValueError(f"The gateway of the network is {address}.")
    return str(address)


def _is_rootless(info: Mapping[str, Any]) -> bool:
    return bool(info.get("Rootless")) or "name=rootless" in (info.get("SecurityOptions") or ())
