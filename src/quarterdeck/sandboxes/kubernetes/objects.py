"""The objects of a replica in a cluster: a Deployment, the Secret of its start, and a claim for a volume.

Only fields that Kubernetes 1.20 knows are used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from quarterdeck.sandboxes.cgroups import BOUNDS
from quarterdeck.sandboxes.port import Size

HOME_LABEL = "quarterdeck.home"
ROLE_LABEL = "quarterdeck.role"
WORKSPACE_LABEL = "quarterdeck.workspace"
OWNER_LABEL = "quarterdeck.owner"
"""Which service runs a command: others may remove it."""
LAUNCH_LABEL = "quarterdeck.launch"
"""One start: pods of an earlier one may still be there."""
DIGEST_NOTE = "quarterdeck.token-digest"
POD_NOTE = "quarterdeck.pod"
"""The pod that was given the configuration of this start, by its uid."""
ENGINE, COMMAND = "engine", "command"

STOP_SECONDS = 5
MIB = 1 << 20
RUN_DIR = "/run/replica"
RUN_MIB = 64
RESERVED = 8
"""Of what a replica may use at most, a node needs this part free."""
_USER, _GROUP = 1000, 0

Object = dict[str, Any]


@dataclass(frozen=True)
class Cluster:
    """What the configuration file says about the cluster, and the image."""

    image: str
    namespace: str = "quarterdeck"
    context: str | None = None
    storage_class: str | None = None
    storage: str = "20Gi"
    lost_after: int = 15
    """Seconds that a node may be away before its replicas are started elsewhere."""
    node_selector: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    runtime_class: str | None = None


def secret(name: str, labels: Mapping[str, str], values: Mapping[str, str]) -> Object:
    """Return a Secret."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": dict(labels)},
        "type": "Opaque",
        "stringData": dict(values),
    }


def claim(cluster: Cluster, name: str, labels: Mapping[str, str]) -> Object:
    """Return the claim for a replica's volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": cluster.storage_class,
            "resources": {"requests": {"storage": cluster.storage}},
        },
    }


def deployment(
    cluster: Cluster,
    name: str,
    labels: Mapping[str, str],
    size: Size,
    notes: Mapping[str, str] = MappingProxyType({}),
    command: Sequence[str] | None = None,
) -> Object:
    """Return the Deployment of one pod with the environment of a Secret of the same name.

    Args:
        labels: those of the pod, too; `LAUNCH_LABEL` is one of them.
        command: runs instead of the engine, without a volume that outlives it.
    """
    launch = {LAUNCH_LABEL: labels[LAUNCH_LABEL]}
    outlives = command is None and cluster.storage_class
    volume: Object = (
        {"persistentVolumeClaim": {"claimName": name}} if outlives else {"emptyDir": {}}
    )
    container = _container(cluster, name, size)
    if command is not None:
        container["command"] = list(command)
    pod: Object = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _GROUP,
            "fsGroup": _GROUP,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{state}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": cluster.lost_after,
            }
            for state in ("not-ready", "unreachable")
        ],
        "containers": [container],
        "volumes": [
            {"name": "replica", **volume},
            {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": f"{RUN_MIB}Mi"}},
        ],
    }
    if cluster.node_selector:
        pod["nodeSelector"] = dict(cluster.node_selector)
    if cluster.runtime_class:
        pod["runtimeClassName"] = cluster.runtime_class
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": dict(labels), "annotations": dict(notes)},
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": launch},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }


def _container(cluster: Cluster, name: str, size: Size) -> Object:
    bounds = BOUNDS[size]
    return {
        "name": "replica",
        "image": cluster.image,
        "workingDir": "/replica",
        "envFrom": [{"secretRef": {"name": name}}],
        "resources": {
            "limits": {"cpu": str(bounds.processors), "memory": f"{bounds.memory // MIB}Mi"},
            "requests": {
                "cpu": f"{bounds.processors * 1000 // RESERVED}m",
                "memory": f"{bounds.memory // MIB // RESERVED}Mi",
            },
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "replica", "mountPath": "/replica"},
            {"name": "run", "mountPath": RUN_DIR},
        ],
    }
