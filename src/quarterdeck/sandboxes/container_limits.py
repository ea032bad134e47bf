"""What bounds a container on a Docker Engine, on podman and on the nodes of a Swarm."""

from typing import Any

from quarterdeck.sandboxes.cgroups import BOUNDS
from quarterdeck.sandboxes.port import Size

LOG: dict[str, Any] = {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "2"}}

_COUNTED = {"core": 0, "sigpending": 4096, "msgqueue": 204_800}
"""Pending signals with timers, and bytes of message queues, are counted for a user: for all containers, and the
machine's user of the same number, together. Each of them has more than that."""

ULIMITS = [{"Name": name, "Soft": most, "Hard": most} for name, most in _COUNTED.items()]
_LOWEST = [one for one in ULIMITS if one["Hard"] == 0]
"""Those that an engine without root can always set: it cannot raise the limits of its own user."""


def host_limits(size: Size, processors: int, engine: str, rootless: bool) -> dict[str, Any]:
    """Return what bounds a container.

    Args:
        size: of the replica.
        processors: of the machine.
        engine: the name of the container engine.
        rootless: whether that runs without root.
    """
    bounds = BOUNDS[size]
    ulimits = _LOWEST if rootless else ULIMITS
    return {
        "Memory": bounds.memory,
        "MemorySwap": bounds.memory,  # both together: no swap
        "NanoCpus": min(bounds.processors, processors) * 1_000_000_000,
        "PidsLimit": bounds.processes,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true"],
        "LogConfig": LOG,
        # With any of them podman would leave out those of its own configuration.
        **({} if engine.startswith("Podman") else {"Ulimits": ulimits}),
    }
