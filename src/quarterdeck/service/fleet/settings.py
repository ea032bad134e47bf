"""Settings of the fleet."""

from dataclasses import dataclass, field

from quarterdeck.local.processes import boot_id as machine_boot_id


@dataclass(frozen=True)
class FleetSettings:
    """Limits and times (in seconds) of the fleet."""

    active_limit: int = 50
    """Workspaces that may be active or preparing at once, per organization."""
    preparing_at_once: int = 4
    """More of them would only slow each other down."""
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
    """Within this an engine must answer a call without its own limit."""
    drain_limit: float = 15.0
    """How long a stopping engine may take to end its turns and send its journal."""
    saved_at_once: int = 4
    """More of them would only slow each other down."""
    save_limit: float = 600.0
    """How long saving a replica's work may take."""
    last_save_limit: float = 60.0
    """The same before it is put to sleep."""
    heartbeat: float = 15.0
    """Between two queries of the engine's status."""
    backoff: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    """Pauses between attempts to reach an engine; the last one is repeated."""
    upkeep_interval: float = 10.0
    """Between two checks for idle replicas."""
    done_pause: float = 5.0
    """How long a replica must be quiet before its work counts as done."""
    redelivery: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 30.0)
    """Pauses between attempts to deliver a message that the engine refused."""
    pool_interval: float = 10.0
    """Between two checks of the warm pools without a nudge."""
    boot_id: str = field(default_factory=machine_boot_id)
