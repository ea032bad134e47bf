"""The volumes of replicas on a Docker Engine or podman, and the limit of their size."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from aiodocker import Docker, DockerError

from quarterdeck.sandboxes.errors import SandboxError


def volume_name(workspace_id: str) -> str:
    """Return the name of a workspace's volume, which is that of its container too."""
    return f"qd-{workspace_id}"


def volume_mount(workspace_id: str, target: str, read_only: bool = False) -> dict[str, Any]:
    """Return the mount of a workspace's volume."""
    return {
        "Type": "volume",
        "Source": volume_name(workspace_id),
        "Target": target,
        "ReadOnly": read_only,
    }


def volume_driver(engine: str, storage: int | None) -> dict[str, Any]:
    """Return the driver of volumes and its options; nothing without a limit.

    Args:
        engine: the name of the container engine.
        storage: the most bytes of a volume.
    """
    if storage is None:
        return {}
    options = {"o": f"size={storage}"} if engine.startswith("Podman") else {"size": str(storage)}
    return {"Driver": "local", "DriverOpts": options}


async def require_quotas(api: Docker, driver: Mapping[str, Any]) -> None:
    """Check that the size of volumes can be limited, if it is to be.

    Raises:
        SandboxError: it cannot.
    """
    if not driver:
        return
    name = f"qd-{uuid4().hex}"
    try:
        await api.volumes.create({"Name": name, **driver})
    except DockerError as e:
        raise SandboxError(
            "sandboxes.storage: the container engine cannot limit the size of a volume. Its data "
            "has to be on a file system with project quotas, or leave the setting out.",
            e.message,
        ) from e
    await (await api.volumes.get(name)).delete()
