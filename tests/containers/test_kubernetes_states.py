"""What is concluded from what a cluster says, and what is asked of it."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import quarterdeck.sandboxes.kubernetes
from quarterdeck.sandboxes.kubernetes.judging import is_lost, judge
from quarterdeck.sandboxes.kubernetes.objects import Cluster, claim, deployment, secret
from tests.containers.cluster import pod

ROLE = Path(quarterdeck.sandboxes.kubernetes.__file__).with_name("role.yaml")
VERSIONS = kubernetes_validate.utils.all_versions()
LABELS = {"quarterdeck.launch": "one", "quarterdeck.workspace": "w", "quarterdeck.role": "engine"}
PLAIN = Cluster("registry.example/replica:1")
FULL = Cluster(
    "registry.example/replica:1",
    "decks",
    storage_class="fast",
    lost_after=30,
    node_selector={"disk": "ssd"},
    runtime_class="gvisor",
)


@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
@pytest.mark.parametrize("cluster", [PLAIN, FULL], ids=["plain", "full"])
def test_the_objects_are_valid(version: str, cluster: Cluster) -> None:
    objects = [
        deployment(cluster, "qd-w", LABELS, "large", {"quarterdeck.token-digest": "d"}),
        deployment(cluster, "qd-command-1", LABELS, "small", command=("true",)),
        secret("qd-w", LABELS, {"QD_BOOT_TOKEN": "t"}),
        claim(FULL, "qd-w", LABELS),
        *yaml.safe_load_all(ROLE.read_text()),
    ]
    for one in objects:
        kubernetes_validate.validate(one, version, strict=True)
    misspelt = deployment(cluster, "qd-w", LABELS, "small")
    misspelt["spec"]["template"]["spec"]["runtimeClass"] = "gvisor"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(misspelt, version, strict=True)


def test_the_documented_role_is_the_one_of_the_package() -> None:
    page = (Path(__file__).parents[2] / "docs/placement.md").read_text()
    lines = [line.removeprefix("   ") for line in page.splitlines()]
    assert ROLE.read_text() in "\n".join(lines)


def test_a_pod_has_no_rights() -> None:
    """As the profile `restricted` of Pod Security demands."""
    made = deployment(FULL, "qd-w", LABELS, "small")
    spec = made["spec"]["template"]["spec"]
    assert made["spec"]["replicas"] == 1 and made["spec"]["strategy"] == {"type": "Recreate"}
    assert spec["automountServiceAccountToken"] is False
    of_pod, (container,) = spec["securityContext"], spec["containers"]
    assert (of_pod["runAsNonRoot"], of_pod["runAsUser"], of_pod["runAsGroup"]) == (True, 1000, 0)
    assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "8192Mi"}
    assert container["resources"]["requests"] == {"cpu": "250m", "memory": "1024Mi"}
    assert {one["tolerationSeconds"] for one in spec["tolerations"]} == {30}
    assert spec["nodeSelector"] == {"disk": "ssd"} and spec["runtimeClassName"] == "gvisor"
    assert spec["volumes"][0]["persistentVolumeClaim"] == {"claimName": "qd-w"}
    plain = deployment(PLAIN, "qd-w", LABELS, "small")["spec"]["template"]["spec"]
    assert plain["volumes"][0] == {"name": "replica", "emptyDir": {}}


def found(replicas: int = 1, noted: str | None = "uid-1", **status: Any) -> dict[str, Any]:
    notes = {"quarterdeck.token-digest": "d"} | ({"quarterdeck.pod": noted} if noted else {})
    metadata = {"labels": {"quarterdeck.launch": "one"}, "annotations": notes}
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": status}


def a_pod(state: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return pod("uid-1", state=state, **more)


def waiting(reason: str, message: str | None = None) -> dict[str, Any]:
    return a_pod({"waiting": {"reason": reason, "message": message}}, phase="Pending")


def condition(kind: str, status: str, **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, **more}]}


RUNNING: dict[str, Any] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
FROM_1_0 = {"deletionTimestamp": "2026-01-01T00:01:05Z", "deletionGracePeriodSeconds": 5}
UNREACHABLE = condition("Ready", "False", lastTransitionTime="2026-01-01T00:00:45Z")
ENDING = condition("Ready", "False", lastTransitionTime="2026-01-01T00:01:01Z")
NO_ROOM = "0/2 nodes are available: 2 Insufficient memory."
QUOTA = "pods is forbidden: exceeded quota"
OTHER = {"quarterdeck.launch": "two"}
DRAINED = condition("DisruptionTarget", "True", message="Eviction API: evicting")


@pytest.mark.parametrize(
    ("deployed", "pods", "state", "reason"),
    [
        (None, [], "gone", None),
        (found(0), [], "gone", "sleeps"),
        (found(noted=None), [], "starting", "not made its pod"),
        (found(noted=None), [pod(labels=OTHER, state=RUNNING)], "starting", "not made its pod"),
        (
            found(noted=None, **condition("ReplicaFailure", "True", message=QUOTA)),
            [],
            "gone",
            QUOTA,
        ),
        (
            found(),
            [a_pod(phase="Pending", **condition("PodScheduled", "False", message=NO_ROOM))],
            "starting",
            f"no node has room for it: {NO_ROOM}",
        ),
        (found(), [a_pod(phase="Pending")], "starting", "its node prepares it"),
        (found(), [waiting("ContainerCreating")], "starting", "node-a pulls its image"),
        (
            found(),
            [waiting("ErrImagePull", "not found")],
            "gone",
            "image a/replica:1 cannot be pulled: not found",
        ),
        (found(), [waiting("InvalidImageName")], "gone", "cannot be pulled: InvalidImageName"),
        (
            found(),
            [waiting("CreateContainerConfigError", 'secret "qd-w" not found')],
            "gone",
            'cannot be started: secret "qd-w" not found',
        ),
        (found(), [a_pod(RUNNING)], "running", None),
        (found(noted=None), [a_pod(RUNNING)], "running", None),
        (
            found(),
            [a_pod({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})],
            "gone",
            "out of memory",
        ),
        (
            found(),
            [a_pod(RUNNING, container={"lastState": {"terminated": {"exitCode": 1}}})],
            "gone",
            "exit code 1",
        ),
        (
            found(),
            [a_pod({"terminated": {"exitCode": 2, "message": "no boot\n"}})],
            "gone",
            "exit code 2: no boot",
        ),
        (
            found(),
            [a_pod(phase="Failed", reason="Evicted", message="The node was low on memory.")],
            "gone",
            "its node evicted it: The node was low on memory.",
        ),
        (found(), [pod("uid-2", state=RUNNING)], "lost", "its pod was removed"),
        (
            found(),
            [a_pod(RUNNING, metadata=FROM_1_0, **UNREACHABLE), pod("uid-2", state=RUNNING)],
            "lost",
            "its node node-a does not answer",
        ),
        (found(), [a_pod(RUNNING, **UNREACHABLE)], "running", None),
        (found(), [a_pod(RUNNING, metadata=FROM_1_0, **ENDING)], "gone", "removes its pod"),
        (
            found(),
            [a_pod(RUNNING, metadata=FROM_1_0, **DRAINED)],
            "gone",
            "removes its pod: Eviction API",
        ),
    ],
)
def test_a_state_is_told_with_its_reason(
    deployed: dict[str, Any] | None, pods: list[dict[str, Any]], state: str, reason: str | None
) -> None:
    judged = judge(deployed, pods)
    assert judged.state == state
    assert judged.digest == ("d" if state in ("running", "starting") else None)
    assert judged.reason == reason if reason is None else reason in (judged.reason or "")


def test_only_pods_of_lost_nodes_are_not_waited_for() -> None:
    assert is_lost(a_pod(RUNNING, metadata=FROM_1_0, **UNREACHABLE))
    assert not is_lost(a_pod(RUNNING, metadata=FROM_1_0, **ENDING))
    assert not is_lost(a_pod(RUNNING, **UNREACHABLE))
    assert not is_lost(a_pod(RUNNING, metadata=FROM_1_0, **condition("Ready", "True")))
