"""An API server of Kubernetes on loopback, and a node that runs pods as processes of this machine."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp.web
import kmock

from quarterdeck.sandboxes.container_engine import Launch
from quarterdeck.sandboxes.kubernetes.containers import KubernetesContainers
from quarterdeck.sandboxes.kubernetes.objects import Cluster
from quarterdeck.sandboxes.port import Layout
from tests.containers.processes import ProcessContainers

NAMESPACE = "decks"
DEPLOYMENTS = kmock.resource("apps", "v1", "deployments")
SECRETS = kmock.resource("", "v1", "secrets")
CLAIMS = kmock.resource("", "v1", "persistentvolumeclaims")
PODS = kmock.resource("", "v1", "pods")


class ClusterApi(kmock.KubernetesEmulator):
    """`refusals` are given for a verb and a resource instead of an answer; both may be `*`."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: dict[tuple[str, str], tuple[int, str]] = {}
        self.logs: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        self.node: Node | None = None
        for resource in (DEPLOYMENTS, SECRETS, CLAIMS, PODS):
            self.resources[resource] = {}

    async def _handle(self, request: kmock.Request) -> aiohttp.web.StreamResponse:
        verb = (request.action or request.method).value.lower()
        plural = request.resource.plural if request.resource else ""
        self.asked.append((verb, plural))
        for asked in ((verb, plural), ("*", "*")):
            if asked in self.refusals:
                status, message = self.refusals[asked]
                return aiohttp.web.json_response({"message": message}, status=status)
        if request.subresource == "log":
            return aiohttp.web.Response(text=self.logs.get(request.name or "", ""))
        response = await super()._handle(request)
        if self.node is not None and plural == "deployments" and verb != "list":
            await self.node.reconcile()
        return response

    async def _serve_list(self, request: kmock.Request) -> Any:
        listed: Any = await super()._serve_list(request)
        selector = request.params.get("labelSelector", "")
        wanted = dict(one.split("=", 1) for one in selector.split(",") if one)
        items = [
            one for one in listed["items"] if wanted.items() <= one["metadata"]["labels"].items()
        ]
        return {**listed, "items": items}

    def names(self, resource: Any) -> list[str]:
        return [
            str(key[2])
            for key, one in self.objects.items()
            if key[0] == resource and not one.deleted
        ]

    def put(self, resource: Any, made: Mapping[str, Any]) -> None:
        self.objects[resource, NAMESPACE, made["metadata"]["name"]] = made  # type: ignore[index]

    def get(self, resource: Any, name: str) -> Any:
        return self.objects[resource, NAMESPACE, name]


@asynccontextmanager
async def serving(directory: Path) -> AsyncGenerator[tuple[ClusterApi, Path]]:
    """An API server, and the kubeconfig for it."""
    async with ClusterApi() as api, kmock.Server(api, host="127.0.0.1") as server:
        url = str(server.url).rstrip("/")
        config = directory / "kubeconfig"
        config.write_text(json.dumps(kubeconfig(url)))
        yield api, config


def kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "deck", "user": {"token": "a-token"}}],
        "contexts": [{"name": "team", "context": {"cluster": "test", "user": "deck"}}],
        "current-context": "team",
    }


class Node:
    """Makes pods for Deployments, and runs their engines."""

    def __init__(self, api: ClusterApi, processes: ProcessContainers) -> None:
        self.api = api
        self.processes = processes
        self._changing = asyncio.Lock()
        api.node = self

    async def reconcile(self) -> None:
        async with self._changing:
            wanted = {
                one["metadata"]["labels"]["quarterdeck.launch"]: one
                for key, one in list(self.api.objects.items())
                if key[0] == DEPLOYMENTS and not one.deleted and one["spec"]["replicas"]
            }
            for name in self.api.names(PODS):
                pod = self.api.get(PODS, name)
                if pod["metadata"]["labels"]["quarterdeck.launch"] in wanted:
                    del wanted[pod["metadata"]["labels"]["quarterdeck.launch"]]
                else:
                    await self.end(name)
            for launch, one in wanted.items():
                await self._run(launch, one)

    async def end(self, name: str) -> None:
        """Remove a pod with its processes."""
        pod = self.api.get(PODS, name)
        await self.processes.stop(pod["metadata"]["labels"]["quarterdeck.workspace"])
        pod.delete()

    async def _run(self, launch: str, deployment: Any) -> None:
        labels = {**deployment["metadata"]["labels"]}
        values = self.api.get(SECRETS, deployment["metadata"]["name"])["stringData"]
        started = Launch(labels["quarterdeck.workspace"], "", dict(values), "small")
        await self.processes.start(started, lambda _: None)
        self.api.put(PODS, pod(labels=labels, state={"running": {}}))


def pod(
    uid: str | None = None,
    labels: Mapping[str, str] | None = None,
    state: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A pod; `more` goes into its status, and `metadata` into that."""
    uid = uid or str(uuid4())
    metadata = {"name": f"pod-{uid}", "uid": uid, "labels": labels or {"quarterdeck.launch": "one"}}
    metadata |= more.pop("metadata", {})
    container = {"name": "replica", "image": "a/replica:1", "state": state, "restartCount": 0}
    container |= more.pop("container", {})
    status = {"phase": "Running", **more}
    if state is not None:
        status["containerStatuses"] = [container]
    return {"metadata": metadata, "spec": {"nodeName": "node-a"}, "status": status}


class ProcessCluster(KubernetesContainers):
    """As in a cluster, but with the paths of processes."""

    def __init__(self, processes: ProcessContainers, **given: Any) -> None:
        super().__init__("mark", Cluster("a/replica:1", NAMESPACE, "team", **given))
        self.processes = processes

    def layout(self, workspace_id: str) -> Layout:
        return self.processes.layout(workspace_id)
