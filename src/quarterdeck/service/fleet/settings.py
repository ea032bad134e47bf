"""What can be set about the fleet."""

from dataclasses import dataclass, field
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def machine_boot_id() -> str:
    """Differs after each start of the machine; empty where the system does not tell."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class FleetSettings:
    """Limits and times (in seconds) of the fleet."""

    active_limit: int = 50
    """Workspaces that may be active or preparing at once, per organization."""
    preparing_at_once: int = 4
    """More of them would only slow one another down."""
    restarts: int = 3
    restart_window: float = 60.0
    """An engine that dies more often than `restarts` in this time is given up."""
    link_wait: float = 3.0
    """How long a request waits for an engine that is being found or started again."""
    link_limit: float = 10.0
    """Within this an engine must answer the opening of a link."""
    ready_limit: float = 120.0
    """Within this an engine must report that it is ready."""
    call_limit: float = 30.0
    """Within this an engine must answer a call that has no limit of its own."""
    drain_limit: float = 15.0
    """How long a stopping engine may take to end its turns and hand over its journal."""
    heartbeat: float = 15.0
    """Between two questions for the engine's status."""
    backoff: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    """Pauses between attempts to reach an engine; the last one is repeated."""
    upkeep_interval: float = 10.0
    """Between two looks for what may be put to rest."""
    done_pause: float = 5.0
    """How long nothing may have happened before work counts as done."""
    redelivery: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 30.0)
    """Pauses between attempts to deliver a message that the engine refused."""
    pool_interval: float = 10.0
    """Between two looks at the warm pools when nothing asks for one."""
    boot_id: str = field(default_factory=machine_boot_id)
