"""What a replica's Deployment and its pods say about its container."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import cast

from quarterdeck.sandboxes.container_engine import Container
from quarterdeck.sandboxes.kubernetes.objects import DIGEST_NOTE, LAUNCH_LABEL, POD_NOTE, Object

_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_BROKEN = (
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
)


def judge(deployment: Object | None, pods: Sequence[Object]) -> Container:
    """Return the state of a replica's container.

    Args:
        pods: those of the replica, of earlier starts too.
    """
    if deployment is None:
        return Container("gone")
    if deployment["spec"]["replicas"] == 0:
        return Container("gone", reason="it sleeps")
    notes = part(deployment, "metadata", "annotations")
    digest: str | None = notes.get(DIGEST_NOTE)
    pod = wanted_pod(deployment, pods)
    if pod is not None:
        return _of_pod(pod, digest)
    if POD_NOTE in notes:
        return Container("lost", reason="its pod was removed, as when its node is lost or drained")
    refused = condition(deployment, "ReplicaFailure")
    if refused.get("status") == "True":
        return Container("gone", reason=f"the cluster makes no pod: {refused.get('message')}")
    return Container("starting", digest, "the cluster has not made its pod yet")


def wanted_pod(deployment: Object, pods: Sequence[Object]) -> Object | None:
    """Return the pod that is meant to run.

    One that the cluster made in its place is not: it has no configuration, which is given out once.
    """
    launch = deployment["metadata"]["labels"][LAUNCH_LABEL]
    noted = part(deployment, "metadata", "annotations").get(POD_NOTE)
    for pod in pods:
        of_launch = pod["metadata"]["labels"].get(LAUNCH_LABEL) == launch
        removed = "deletionTimestamp" in pod["metadata"]
        if of_launch and (pod["metadata"]["uid"] == noted if noted else not removed):
            return pod
    return None


def _of_pod(pod: Object, digest: str | None) -> Container:
    status, node = part(pod, "status"), part(pod, "spec").get("nodeName")
    if is_lost(pod):
        return Container("lost", reason=f"its node {node} does not answer")
    if "deletionTimestamp" in pod["metadata"]:
        return Container("gone", reason=_why_removed(pod))
    if status.get("phase") in ("Failed", "Succeeded"):
        said = status.get("message") or "its processes ended"
        return Container("gone", reason=f"{_plain(status.get('reason'))}{said}")
    for container in containers(pod):
        return _of_container(container, digest, node)
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return Container("starting", digest, f"no node has room for it: {scheduled.get('message')}")
    return Container("starting", digest, "its node prepares it")


def _of_container(container: Object, digest: str | None, node: str | None) -> Container:
    waiting = part(container, "state", "waiting")
    reason, said = waiting.get("reason"), waiting.get("message")
    ended = part(container, "state", "terminated") or part(container, "lastState", "terminated")
    if ended:
        return Container("gone", reason=_why_ended(ended))
    if reason in _IMAGE:
        text = f"the image {container.get('image')} cannot be pulled"
        return Container("gone", reason=f"{text}: {said or reason}")
    if reason in _BROKEN:
        return Container("gone", reason=f"its container cannot be started: {said or reason}")
    if "running" in part(container, "state"):
        return Container("running", digest)
    return Container("starting", digest, f"the node {node} pulls its image or makes its container")


def _why_ended(ended: Object) -> str:
    if ended.get("reason") == "OOMKilled":
        return "out of memory"
    said = (ended.get("message") or "").strip()
    return f"exit code {ended.get('exitCode')}{f': {said}' if said else ''}"


def _why_removed(pod: Object) -> str:
    disrupted = condition(pod, "DisruptionTarget")
    why = f": {disrupted['message']}" if disrupted.get("message") else ""
    return f"the cluster removes its pod{why}"


def is_lost(pod: Object) -> bool:
    """Return whether a pod is being removed because its node does not answer: it may stay for ever.

    Of one on a node that answers, `Ready` changes after the removal has begun.
    """
    if "deletionTimestamp" not in pod["metadata"]:
        return False
    ready = condition(pod, "Ready")
    if ready.get("status") == "True" or "lastTransitionTime" not in ready:
        return False
    grace = timedelta(seconds=pod["metadata"].get("deletionGracePeriodSeconds") or 0)
    begun = datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) - grace
    return datetime.fromisoformat(ready["lastTransitionTime"]) < begun


def part(found: Object, *names: str) -> Object:
    """Return a part of an object, empty where there is none."""
    for name in names:
        found = found.get(name) or {}
    return found


def containers(pod: Object) -> list[Object]:
    """Return what a pod's status says about its containers."""
    return cast("list[Object]", part(pod, "status").get("containerStatuses") or [])


def condition(found: Object, kind: str) -> Object:
    """Return a condition of an object's status, or nothing."""
    conditions = cast("list[Object]", part(found, "status").get("conditions") or [])
    return next((one for one in conditions if one.get("type") == kind), Object())


def _plain(reason: str | None) -> str:
    return "its node evicted it: " if reason == "Evicted" else ""
