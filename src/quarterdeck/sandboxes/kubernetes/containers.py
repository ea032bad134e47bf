"""Replicas as pods of a Kubernetes cluster: a `ContainerEngine` over its API server.

A replica is a Deployment of one pod. Each start makes a new Deployment: a pod that the cluster makes by
itself, in place of a lost one, has no configuration and is replaced by the next start. A volume is
reached from its pod alone, so commands run inside the engine.
"""

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from quarterdeck.sandboxes.answers import understood
from quarterdeck.sandboxes.container_engine import Container, Launch
from quarterdeck.sandboxes.errors import EngineAwayError, ProcessError, SandboxError
from quarterdeck.sandboxes.kubernetes.api import (
    ApiRefusedError,
    ClusterUnreachableError,
    KubernetesApi,
)
from quarterdeck.sandboxes.kubernetes.judging import containers, is_lost, judge, wanted_pod
from quarterdeck.sandboxes.kubernetes.objects import (
    COMMAND,
    DIGEST_NOTE,
    ENGINE,
    HOME_LABEL,
    LAUNCH_LABEL,
    OWNER_LABEL,
    POD_NOTE,
    ROLE_LABEL,
    RUN_DIR,
    WORKSPACE_LABEL,
    Cluster,
    Object,
    claim,
    deployment,
    secret,
)
from quarterdeck.sandboxes.port import Absence, Isolation, Layout, Progress
from quarterdeck.wire.base import utc_now

AGAIN_SECONDS = 2.0
"""Pause between two attempts to reach an API server that does not answer."""
LOOK_SECONDS = 0.5
"""Pause between two looks at a pod that is being started or ended."""
ROOM_SECONDS = 120.0
"""How long a pod may wait for a node with room, which the cluster may have to add."""
START_SECONDS = 900.0
"""The same for all of its start: images of replicas are large."""
REMOVAL_SECONDS = 30.0
"""How long pods may take to end."""
_LOG_LINES, _LOG_BYTES = 20, 64 << 10
_LABEL_LENGTH = 40
_SENDER = "The cluster"
_ENDED = "quarterdeck-ended"
_ASK = (
    'printf %s "$COMMAND_INPUT" | "$@" >/run/replica/out 2>/run/replica/err; code=$?\n'
    "[ $code = 0 ] && cat /run/replica/out || cat /run/replica/err\n"
    f'printf "\\n{_ENDED} %s\\n" $code; exec sleep 86400'
)
"""Prints the output of a command once: what ends is started again by the cluster."""
_DEPLOYMENTS = ("/apis/apps/v1", "deployments")
_SECRETS = ("/api/v1", "secrets")
_CLAIMS = ("/api/v1", "persistentvolumeclaims")
_PODS = ("/api/v1", "pods")

log = logging.getLogger(__name__)


class KubernetesContainers:
    """Pods in one namespace. `open` before use, `close` at the end.

    Args:
        mark: of the installation that they belong to, as a label.
        cluster: what the configuration file says.
    """

    def __init__(self, mark: str, cluster: Cluster) -> None:
        self._mark = mark
        self._cluster = cluster
        self._api = KubernetesApi(cluster.context)
        self._owner = uuid4().hex
        self._launches: set[str] = set()
        self._reports: dict[str, Progress] = {}
        self._image_id = ""
        self._lost = asyncio.Event()
        self.absence: Absence | None = None
        """Since when and why it does not answer; None while it does, as far as known."""
        self.version = ""

    async def open(self) -> None:
        """Find out whether the API server answers and may be used. Safe to call again.

        Raises:
            EngineAwayError: it does not answer, or refuses.
        """
        try:
            with understood(_SENDER):
                self.version = str((await self._request("GET", "/version"))["gitVersion"])
            await self._list(_DEPLOYMENTS, limit="1")
        except SandboxError as e:
            raise self._away(str(e), e) from e
        self._lost.clear()
        if self.absence is not None:
            self.absence = None
            log.warning("The cluster answers again")

    async def keep_connected(self, connected: Callable[[], Awaitable[None]]) -> None:
        """Look again, with pauses, whenever the API server was away; never return.

        Args:
            connected: called after each time.
        """
        while True:
            await self._lost.wait()
            try:
                await self.open()
                await connected()
            except EngineAwayError:
                await asyncio.sleep(AGAIN_SECONDS)

    async def require(self) -> None:
        await self._list(_DEPLOYMENTS, limit="1")

    async def close(self) -> None:
        """Disconnect; pods continue to run."""
        await self._api.close()

    # Requests

    async def _request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        try:
            return await self._api.request(method, path, body, query)
        except ClusterUnreachableError as e:
            raise self._away(str(e), e) from e
        except ApiRefusedError as e:
            if e.status != 403:
                raise
            raise SandboxError(
                f"The cluster refuses: {e}. If the right is missing, give the service the Role of "
                "docs/placement.md."
            ) from e

    def _away(self, text: str, error: Exception) -> EngineAwayError:
        if self.absence is None:
            self.absence = Absence(utc_now(), text)
            log.warning("%s Replicas in the cluster wait until it answers again.", text)
        self._lost.set()
        return EngineAwayError(text, str(error.__cause__ or error))

    def _path(self, kind: tuple[str, str], name: str = "") -> str:
        group, plural = kind
        path = f"{group}/namespaces/{self._cluster.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    async def _list(self, kind: tuple[str, str], limit: str = "", **labels: str) -> list[Object]:
        query = {"limit": limit} if limit else {}
        if labels:
            wanted = {f"quarterdeck.{name}": value for name, value in labels.items()}
            query["labelSelector"] = ",".join(f"{name}={value}" for name, value in wanted.items())
        with _refusals():
            return list((await self._request("GET", self._path(kind), query=query))["items"])

    async def _get(self, kind: tuple[str, str], name: str) -> Object | None:
        with _refusals(), _ignoring(404):
            return await self._request("GET", self._path(kind, name))
        return None

    async def _create(self, kind: tuple[str, str], body: Object) -> bool:
        """Create an object; return whether there was none of its name."""
        with _refusals(), _ignoring(409):
            await self._request("POST", self._path(kind), body)
            return True
        return False

    async def _delete(self, kind: tuple[str, str], name: str) -> bool:
        """Delete an object; return whether it was there."""
        options = {"propagationPolicy": "Background"}
        with _refusals(), _ignoring(404):
            await self._request("DELETE", self._path(kind, name), options)
            return True
        return False

    # What there is

    @property
    def moves(self) -> bool:
        return False  # a start without its volume has an empty one

    def layout(self, workspace_id: str) -> Layout:
        return Layout(
            workspace_dir="/replica/workspace",
            home_dir="/replica/home",
            state_dir="/replica/state",
            run_dir=RUN_DIR,
            interpreter=("/opt/quarterdeck/bin/python", "-I"),
        )

    async def isolation(self) -> Isolation:
        return Isolation(
            "container",
            "uid 1000 of the image",
            f"Kubernetes {self.version}",
            limits=("the network policies of the cluster say what replicas reach",),
            size_limited=True,
        )

    async def image(self) -> tuple[str, str | None]:
        """Return what identifies the image: its digest, as soon as a pod has run.

        Its engine's version is not known before it connects.
        """
        return self._image_id or self._cluster.image, None

    async def find(self, workspace_id: str) -> Container:
        with understood(_SENDER):
            found = await self._get(_DEPLOYMENTS, _name(workspace_id))
            pods = await self._pods(workspace_id) if found else []
            container = judge(found, pods)
            if found is None:
                return container
            if container.state == "starting" and _launch_of(found) not in self._launches:
                return Container("gone", reason="the service that started it has ended")
            pod = wanted_pod(found, pods)
            if container.state == "running" and pod is not None:
                self._note_image(pod)
            return container

    def _note_image(self, pod: Object) -> None:
        for container in containers(pod):
            self._image_id = str(container.get("imageID") or self._image_id)

    async def _pods(self, workspace_id: str) -> list[Object]:
        return await self._list(_PODS, workspace=workspace_id)

    async def has_volume(self, workspace_id: str) -> bool:
        if self._cluster.storage_class:
            return await self._get(_CLAIMS, _name(workspace_id)) is not None
        return (await self.find(workspace_id)).state == "running"

    async def note_files(self, workspace_id: str) -> None:
        """Part of `ContainerEngine`: a workspace has one volume, or none."""

    async def ended(self, workspace_id: str) -> str:
        """Wait for the end of a container that was started.

        Raises:
            SandboxError: always: the reason, for a person.
        """
        report, told = self._reports.pop(workspace_id, _ignore), ""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (found := await self.find(workspace_id)).is_wanted:
            reason = found.reason or ""
            if found.state == "starting" and reason != told:
                report(f"Waiting for the cluster: {reason}")
                told = reason
            most = ROOM_SECONDS if "no node has room" in reason else START_SECONDS
            if found.state == "starting" and loop.time() - began > most:
                raise SandboxError(f"The replica's pod does not start: {reason}.")
            await asyncio.sleep(LOOK_SECONDS)
        reason = found.reason or "its Deployment is gone"
        said = await self._log(workspace_id)
        raise SandboxError(f"The replica's pod does not run: {reason}.", said)

    async def _log(self, workspace_id: str) -> str:
        with understood(_SENDER):
            found = await self._get(_DEPLOYMENTS, _name(workspace_id))
            pod = found and wanted_pod(found, await self._pods(workspace_id))
            if not pod:
                return ""
            query = {"tailLines": str(_LOG_LINES), "limitBytes": str(_LOG_BYTES)}
            if any(one.get("restartCount") for one in containers(pod)):
                query["previous"] = "true"
            return (await self._read_log(pod["metadata"]["name"], query)).strip()

    async def _read_log(self, pod: str, query: Mapping[str, str]) -> str:
        with _refusals(), _ignoring(400, 404):  # it has not begun
            return await self._request("GET", f"{self._path(_PODS, pod)}/log", query=query)
        return ""

    # Starting and ending

    async def start(self, launch: Launch, report: Progress) -> None:
        id = launch.workspace_id
        report("Starting the pod")
        if await self._delete(_DEPLOYMENTS, _name(id)) and self._cluster.storage_class:
            await self._until_removed(id)  # they have the volume
        labels = self._labels(id, ENGINE, launch.digest[:_LABEL_LENGTH])
        if self._cluster.storage_class:
            kept = {name: labels[name] for name in (HOME_LABEL, WORKSPACE_LABEL)}
            await self._create(_CLAIMS, claim(self._cluster, _name(id), kept))
        await self._delete(_SECRETS, _name(id))
        await self._create(_SECRETS, secret(_name(id), labels, launch.environment))
        self._launches.add(labels[LAUNCH_LABEL])
        notes = {DIGEST_NOTE: launch.digest}
        await self._replace(deployment(self._cluster, _name(id), labels, launch.size, notes))
        self._reports[id] = report
        await self._note_pod(id)

    async def _replace(self, made: Object) -> None:
        """Create a Deployment, in place of one that is still being removed."""
        async with _limit(REMOVAL_SECONDS, "The earlier Deployment of the replica is not removed."):
            while not await self._create(_DEPLOYMENTS, made):
                await self._delete(_DEPLOYMENTS, made["metadata"]["name"])
                await asyncio.sleep(LOOK_SECONDS)

    async def _note_pod(self, workspace_id: str) -> None:
        """Note which pod is the first one of a Deployment; others are made in its place."""
        with understood(_SENDER):
            name = _name(workspace_id)
            while (found := await self._get(_DEPLOYMENTS, name)) is not None:
                pods = await self._pods(workspace_id)
                if (pod := wanted_pod(found, pods)) is not None:
                    noted = {"metadata": {"annotations": {POD_NOTE: pod["metadata"]["uid"]}}}
                    with _refusals():
                        await self._request("PATCH", self._path(_DEPLOYMENTS, name), noted)
                    return
                if not judge(found, pods).is_wanted:
                    return  # `ended` says why
                await asyncio.sleep(LOOK_SECONDS / 5)

    async def _until_removed(self, workspace_id: str) -> None:
        """Wait for the end of pods, but not of those on a node that does not answer."""
        with understood(_SENDER):
            async with _limit(REMOVAL_SECONDS, "The replica's pod does not end."):
                while True:
                    if all(is_lost(pod) for pod in await self._pods(workspace_id)):
                        return
                    await asyncio.sleep(LOOK_SECONDS / 5)

    async def stop(self, workspace_id: str) -> None:
        """Have the pod ended, which takes seconds; the next start waits for that."""
        with _refusals(), _ignoring(404):
            path = self._path(_DEPLOYMENTS, _name(workspace_id))
            await self._request("PATCH", path, {"spec": {"replicas": 0}})

    async def destroy(self, workspace_id: str) -> None:
        for kind in (_DEPLOYMENTS, _SECRETS, _CLAIMS):
            await self._delete(kind, _name(workspace_id))

    async def tidy(self) -> None:
        with understood(_SENDER):
            for found in await self._list(_DEPLOYMENTS, home=self._mark, role=COMMAND):
                if found["metadata"]["labels"].get(OWNER_LABEL) != self._owner:
                    await self._remove_command(found["metadata"]["name"])

    def _labels(self, workspace_id: str, role: str, launch: str) -> dict[str, str]:
        labels = {HOME_LABEL: self._mark, ROLE_LABEL: role, LAUNCH_LABEL: launch}
        return {**labels, WORKSPACE_LABEL: workspace_id, OWNER_LABEL: self._owner}

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
        raise SandboxError("The replica's files are in its pod. Wake it first.")
        yield b""

    async def in_image(self, command: Sequence[str], data: bytes = b"") -> bytes:
        """Run a command in a pod of its own, without a volume; return its output.

        Raises:
            ProcessError: its exit status was not 0.
            SandboxError: it cannot be run.
        """
        name = f"qd-command-{uuid4().hex[:12]}"
        labels = self._labels("", COMMAND, name)
        words = ("/bin/sh", "-c", _ASK, "sh", *command)
        try:
            await self._create(_SECRETS, secret(name, labels, {"COMMAND_INPUT": data.decode()}))
            await self._create(
                _DEPLOYMENTS, deployment(self._cluster, name, labels, "small", command=words)
            )
            async with _limit(ROOM_SECONDS, "The pod of a command does not end."):
                output, _, status = (await self._command_log(name)).rpartition(f"\n{_ENDED} ")
        finally:
            await self._remove_command(name)
        if status.strip() != "0":
            raise ProcessError(output.encode())
        return output.encode()

    async def _command_log(self, name: str) -> str:
        with understood(_SENDER):
            while (found := await self._get(_DEPLOYMENTS, name)) is not None:
                pods = await self._list(_PODS, launch=name)
                container = judge(found, pods)
                pod = wanted_pod(found, pods)
                if not container.is_wanted:
                    raise SandboxError(f"No pod runs with the image: {container.reason}.")
                if container.state == "running" and pod is not None:
                    text = await self._read_log(pod["metadata"]["name"], {})
                    if f"\n{_ENDED} " in text:
                        self._note_image(pod)
                        return text
                await asyncio.sleep(LOOK_SECONDS)
            raise SandboxError("A command ended with its pod.")

    async def _remove_command(self, name: str) -> None:
        await self._delete(_DEPLOYMENTS, name)
        await self._delete(_SECRETS, name)


def _name(workspace_id: str) -> str:
    return f"qd-{workspace_id.lower()}"


def _launch_of(found: Object) -> str:
    return found["metadata"]["labels"][LAUNCH_LABEL]


def _ignore(line: str) -> None:
    """Drop a line of progress."""


@contextmanager
def _refusals() -> Generator[None]:
    try:
        with understood(_SENDER):
            yield
    except ApiRefusedError as e:
        raise SandboxError(f"The cluster refused: {e}") from e


@contextmanager
def _ignoring(*statuses: int) -> Generator[None]:
    try:
        yield
    except ApiRefusedError as e:
        if e.status not in statuses:
            raise


@asynccontextmanager
async def _limit(seconds: float, text: str) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as e:
        raise SandboxError(text) from e
