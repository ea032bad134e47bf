"""Replicas on the nodes of a Docker Swarm, by one service for each.

A start is one task, which Swarm never restarts: a container's configuration is given out once, so this
service starts the next task. It runs on the node with the volume if that node is ready, otherwise
wherever Swarm chooses. Without a save, as after a takeover, it runs on the node with the newest files
alone. A volume is reached from its own node, so commands run inside the engine, and files of a
sleeping replica are read from its save.
"""

import asyncio
import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any, cast

from aiodocker import DockerError

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.cgroups import BOUNDS
from quarterdeck.sandboxes.container_engine import Container, Launch
from quarterdeck.sandboxes.container_limits import LOG, ULIMITS
from quarterdeck.sandboxes.docker import (
    DEFAULT_ADDRESS,
    DIGEST_LABEL,
    ENGINE,
    HOME_LABEL,
    STOP_SECONDS,
    WORKSPACE_LABEL,
    DockerContainers,
)
from quarterdeck.sandboxes.docker_client import read_log
from quarterdeck.sandboxes.docker_commands import unless_gone
from quarterdeck.sandboxes.docker_volumes import volume_mount, volume_name
from quarterdeck.sandboxes.errors import EngineAwayError, SandboxError
from quarterdeck.sandboxes.image import check_version
from quarterdeck.sandboxes.port import Gap, Progress

NODE_LABEL = "quarterdeck.node"
"""Of a service: the node with the volume that was used last."""
FILES_LABEL = "quarterdeck.files"
"""Of a service: the node whose volume has the newest files; absent: unknown."""
WATCH_SECONDS = 1.0
_STEP = 0.1
END_SECONDS = 30.0
"""How long the tasks of a service that ends may take."""
PENDING_SECONDS = 15.0
"""How long a task may wait for a node before other replicas are started first."""
_LOG_SECONDS = 5.0
_ENDED = ("complete", "failed", "rejected", "shutdown", "remove", "orphaned")
_WAITING = ("new", "pending", "allocated")
_NO_LEADER = 503
_NANO = 1_000_000_000
_PRIVILEGES_API = (1, 44)
"""Since which a service can keep programs from gaining privileges."""


class SwarmContainers(DockerContainers):
    """A `ContainerEngine` on the nodes of a Swarm, through one of its managers.

    Args:
        constraints: of every replica's service, such as `node.labels.zone==b`.
    """

    def __init__(
        self,
        home: Home,
        image: str,
        address: str = DEFAULT_ADDRESS,
        certificates: Path | None = None,
        constraints: Sequence[str] = (),
    ) -> None:
        super().__init__(home, image, address, certificates)
        self.constraints = list(constraints)
        self._node_address = ""
        self._keeps_privileges = True
        self._limits_layers = False  # no service can
        self.moves = True

    async def _look_at(self, info: Mapping[str, Any]) -> None:
        swarm = cast("Mapping[str, Any]", info.get("Swarm") or {})
        if not swarm.get("ControlAvailable"):
            worker = swarm.get("LocalNodeState") == "active"
            what = "is a worker of a Swarm" if worker else "is not part of a Swarm"
            raise SandboxError(
                f"sandboxes.swarm: the container engine at {self._address} {what}. Give the address of "
                "a Docker Engine that is a manager (docker swarm init); podman cannot be one."
            )
        self._node_address = str(swarm.get("NodeAddr", ""))
        version = await self._api.version()
        api = tuple(int(part) for part in str(version["ApiVersion"]).split("."))
        self._keeps_privileges = api >= _PRIVILEGES_API

    async def _network(self) -> dict[str, Any]:
        """Return the bridge that Docker has on every node, as it is on this one."""
        bridge = await (await self._api.networks.get("bridge")).show()
        return {**bridge, "IPAM": {"Config": [{"Gateway": self._node_address}]}}

    def _gaps(self) -> Generator[Gap]:
        for gap in super()._gaps():
            if "network" in gap.message:
                step = 'Set "icc": false in /etc/docker/daemon.json of each node.'
                gap = Gap(f"{gap.message} of one node", step)
            yield gap
        if not self._keeps_privileges:
            yield Gap(
                "before Docker 25 a service cannot keep programs from gaining privileges",
                'Set "no-new-privileges": true in /etc/docker/daemon.json of each node.',
            )

    @contextmanager
    def _failures(self, connected: bool = True) -> Generator[None]:
        with super()._failures(connected):
            try:
                yield
            except DockerError as e:
                if e.status != _NO_LEADER:
                    raise
                raise EngineAwayError("The Swarm has no leader now.", e.message) from e

    # What there is

    async def summary(self) -> str:
        with self._failures():
            nodes = await self._nodes()
            ready = sum(_is_ready(node) for node in nodes)
        return f"{self.engine}, a Swarm with {ready} of {len(nodes)} nodes ready"

    async def find(self, workspace_id: str) -> Container:
        with self._failures():
            service = await self._service(workspace_id)
            if service is None or not _replicas(service):
                return Container("gone")
            digest = _digest(service["Spec"]["TaskTemplate"])
            task = await self._task(workspace_id, digest)
            if task is None:
                return Container("starting", digest)  # Swarm has not come to it yet
            if lost := await self._loss(task):
                return Container("lost", reason=lost)
            state = str(task["Status"]["State"])
            if state in _ENDED or task["DesiredState"] in _ENDED:
                return Container("gone", reason=str(task["Status"].get("Err") or state))
            return Container("running" if state == "running" else "starting", digest)

    async def has_volume(self, workspace_id: str) -> bool:
        with self._failures():
            service = await self._service(workspace_id)
            if service is None or not (id := service["Spec"]["Labels"].get(FILES_LABEL)):
                return False
            node = await self._node(id)
            return node is not None and _is_ready(node)

    async def note_files(self, workspace_id: str) -> None:
        with self._failures():
            if (service := await self._service(workspace_id)) is None:
                return
            spec = service["Spec"]
            task = await self._task(workspace_id, _digest(spec["TaskTemplate"]))
            if task is not None and spec["Labels"].get(FILES_LABEL) != task["NodeID"]:
                spec["Labels"][FILES_LABEL] = task["NodeID"]
                await self._update(service, spec)

    async def ended(self, workspace_id: str) -> str:
        waiting_since = monotonic()
        while True:
            with self._failures():
                service = await self._service(workspace_id)
                if service is None or not _replicas(service):
                    return "Its service was ended."
                task = await self._task(workspace_id, _digest(service["Spec"]["TaskTemplate"]))
                if task is None:
                    await asyncio.sleep(_STEP)
                    continue
                if lost := await self._loss(task):
                    return lost
                status = task["Status"]
                if status["State"] in _ENDED:
                    lines = await self._log(workspace_id)
                    return "\n".join(filter(None, (status.get("Err"), lines)))
            if status["State"] not in _WAITING:
                waiting_since = monotonic()
            elif monotonic() - waiting_since > PENDING_SECONDS:
                await self.stop(workspace_id)
                said = status.get("Err") or status.get("Message")
                raise EngineAwayError(f"No node of the Swarm can run the replica: {said}.")
            await asyncio.sleep(_STEP)

    async def watch(self, lost: Callable[[str], None]) -> None:
        """Report each workspace whose node is lost, as soon as Swarm knows; never return."""
        known: set[str] = set()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self.absence is not None:
                continue  # it is connected to again elsewhere
            try:
                with self._failures():
                    down = {str(node["ID"]) for node in await self._nodes() if _is_down(node)}
                    new = sorted(down - known)
                    tasks = await self._tasks(node=new) if new else []
                    labels = [_labels(task["Spec"]) for task in tasks]
                    # Of every service: one may have been taken over. Others may have labels of ours.
                    ours = {
                        one[WORKSPACE_LABEL]
                        for one in labels
                        if {HOME_LABEL, WORKSPACE_LABEL} <= one.keys()
                    }
                for workspace_id in ours:
                    if (await self.find(workspace_id)).state == "lost":
                        lost(workspace_id)
                known = down
            except SandboxError:
                continue  # it is asked again

    async def _service(self, workspace_id: str) -> dict[str, Any] | None:
        return await self._ask(f"services/{volume_name(workspace_id)}")

    async def _tasks(self, **filters: list[str]) -> list[dict[str, Any]]:
        return await self._ask("tasks", {"filters": json.dumps(filters)}) or []

    async def _nodes(self) -> list[dict[str, Any]]:
        return await self._ask("nodes")

    async def _task(self, workspace_id: str, digest: str) -> Mapping[str, Any] | None:
        """Return the task of a start, which Swarm makes a moment after it."""
        tasks = await self._tasks(service=[volume_name(workspace_id)])
        started = (one for one in tasks if _labels(one["Spec"]).get(DIGEST_LABEL) == digest)
        return next(started, None)

    async def _node(self, id: str) -> Mapping[str, Any] | None:
        return await self._ask(f"nodes/{id}")

    async def _loss(self, task: Mapping[str, Any]) -> str | None:
        """Return why a task that is meant to run, or was, is lost with its node."""
        if not (id := task.get("NodeID")) or task["Status"]["State"] in _ENDED:
            return None
        node = await self._node(id)
        if node is None:
            return "Its node was removed from the Swarm."
        return f"Its node {_hostname(node)} is down." if _is_down(node) else None

    async def _log(self, workspace_id: str) -> str:
        name = volume_name(workspace_id)
        with suppress(DockerError, TimeoutError):
            async with asyncio.timeout(_LOG_SECONDS):
                return await read_log(self._api, f"services/{name}")
        return ""

    # Starting and ending

    async def start(self, launch: Launch, report: Progress) -> None:
        check_version(self.image_name, (await self.image())[1])
        with self._failures():
            await self._end(launch.workspace_id)
            await super().stop(launch.workspace_id)  # one from before the Swarm was chosen
            report("Starting the container")
            service = await self._service(launch.workspace_id)
            labels: dict[str, str] = (
                service["Spec"]["Labels"] if service else self._service_labels(launch)
            )
            spec = await self._spec(launch, labels)
            if service is None:
                await self._ask("services/create", spec=spec)
            else:
                await self._update(service, spec)

    async def stop(self, workspace_id: str) -> None:
        with self._failures():
            await self._end(workspace_id)

    async def destroy(self, workspace_id: str) -> None:
        with self._failures():
            await self._end(workspace_id)
            with unless_gone():
                await self._api.services.delete(volume_name(workspace_id))
        # Of other nodes the volumes cannot be removed from here.
        await super().destroy(workspace_id)

    async def _end(self, workspace_id: str) -> None:
        """End the tasks of a service, and note where its volume is."""
        service = await self._service(workspace_id)
        if service is None:
            return
        spec = service["Spec"]
        if _replicas(service):
            if (task := await self._task(workspace_id, _digest(spec["TaskTemplate"]))) is not None:
                # Where it could not run, or found no node, it is not tried first again.
                tried = task.get("NodeID") and task["Status"]["State"] != "rejected"
                spec["Labels"][NODE_LABEL] = task["NodeID"] if tried else ""
            spec["Mode"]["Replicated"]["Replicas"] = 0
            await self._update(service, spec)
        deadline = monotonic() + END_SECONDS
        while await self._has_running(workspace_id):
            if monotonic() > deadline:
                raise SandboxError("The replica's container does not end.")
            await asyncio.sleep(_STEP)

    async def _has_running(self, workspace_id: str) -> bool:
        """Return whether a container may run on a node that answers."""
        for task in await self._tasks(service=[volume_name(workspace_id)]):
            if task["Status"]["State"] not in _ENDED and (id := task.get("NodeID")):
                node = await self._node(id)
                if node is not None and not _is_down(node):
                    return True
        return False

    async def _update(self, service: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        version = {"version": service["Version"]["Index"]}
        await self._ask(f"services/{service['ID']}/update", version, spec)

    async def _ask(
        self, path: str, params: Mapping[str, str | int] | None = None, spec: Any = None
    ) -> Any:
        """Return what there is, or None; or send a specification.

        The library neither takes all fields of a service nor changes one.
        """
        query = self._api._query_json  # pyright: ignore[reportPrivateUsage]
        try:
            return await query(path, "GET" if spec is None else "POST", params=params, data=spec)
        except DockerError as e:
            if e.status == 404 and spec is None:
                return None
            raise

    def _service_labels(self, launch: Launch) -> dict[str, str]:
        return {HOME_LABEL: self._mark, WORKSPACE_LABEL: launch.workspace_id}

    async def _spec(self, launch: Launch, labels: Mapping[str, str]) -> dict[str, Any]:
        nodes = [node for node in await self._nodes() if _is_ready(node)]
        ready = [node["ID"] for node in nodes]
        files, last = labels.get(FILES_LABEL), labels.get(NODE_LABEL)
        node = files if launch.needs_files else last if last in ready else None
        if launch.needs_files and node not in ready:
            raise SandboxError("The node of the Swarm with the replica's files is not ready.")
        places = [*self.constraints, *([f"node.id=={node}"] if node else [])]
        if node != files:  # `note_files` says where they are as soon as it runs
            labels = {name: text for name, text in labels.items() if name != FILES_LABEL}
        bounds = BOUNDS[launch.size]
        # A node refuses a container that may use more processors than it has.
        machines: list[int] = [node["Description"]["Resources"]["NanoCPUs"] for node in nodes]
        own = {**self._labels(launch.workspace_id, ENGINE), DIGEST_LABEL: launch.digest}
        mount = volume_mount(launch.workspace_id, "/replica")
        volume: dict[str, Any] = {"Labels": self._service_labels(launch)}
        if limited := self._volume:
            volume["DriverConfig"] = {"Name": limited["Driver"], "Options": limited["DriverOpts"]}
        run = {"Type": "tmpfs", "Target": "/run/replica"}
        container = {
            "Image": await self._exact_image(),
            "Labels": own,
            "Env": [f"{name}={text}" for name, text in launch.environment.items()],
            "Mounts": [
                {**mount, "VolumeOptions": volume},
                {**run, "TmpfsOptions": {"SizeBytes": 64 << 20, "Mode": 0o1777}},
            ],
            "CapabilityDrop": ["ALL"],
            "Privileges": {"NoNewPrivileges": True},
            "Ulimits": ULIMITS,
            "StopGracePeriod": STOP_SECONDS * _NANO,
        }
        limits = {
            "NanoCPUs": min([bounds.processors * _NANO, *machines]),
            "MemoryBytes": bounds.memory,
            "Pids": bounds.processes,
        }
        return {
            "Name": volume_name(launch.workspace_id),
            "Labels": labels,
            "TaskTemplate": {
                "ContainerSpec": container,
                "Resources": {"Limits": limits},
                "RestartPolicy": {"Condition": "none"},
                "Placement": {"Constraints": places},
                "LogDriver": {"Name": LOG["Type"], "Options": LOG["Config"]},
            },
            "Mode": {"Replicated": {"Replicas": 1}},
            "EndpointSpec": {"Mode": "dnsrr"},
        }

    async def _exact_image(self) -> str:
        """Return the image by what it is: nodes do not ask a registry for it if they have it."""
        found = await self._api.images.inspect(self.image_name)
        repository, colon, tag = self.image_name.rpartition(":")
        prefix = f"{repository if colon and '/' not in tag else self.image_name}@"
        digests: list[str] = found.get("RepoDigests") or []
        return next((one for one in digests if one.startswith(prefix)), str(found["Id"]))

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
        raise SandboxError(
            "The replica's files are on a node of the Swarm, out of reach from here."
        )
        yield b""


def _replicas(service: Mapping[str, Any]) -> int:
    return int(service["Spec"]["Mode"]["Replicated"].get("Replicas", 0))


def _digest(template: Mapping[str, Any]) -> str:
    """Return the digest of a start's token, which distinguishes its task from earlier ones."""
    return str(_labels(template)[DIGEST_LABEL])


def _labels(template: Mapping[str, Any]) -> dict[str, str]:
    return template["ContainerSpec"].get("Labels") or {}


def _is_ready(node: Mapping[str, Any]) -> bool:
    return node["Status"]["State"] == "ready" and node["Spec"]["Availability"] == "active"


def _is_down(node: Mapping[str, Any]) -> bool:
    return node["Status"]["State"] == "down"


def _hostname(node: Mapping[str, Any]) -> str:
    return str(node.get("Description", {}).get("Hostname") or node["ID"])
