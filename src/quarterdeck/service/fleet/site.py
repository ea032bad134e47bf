"""What belongs to one workspace while the service runs."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.courier import Courier
from quarterdeck.service.fleet.journal_mark import JournalMark
from quarterdeck.service.fleet.line import Line
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.wire.engine import EngineHello, EngineReport


@dataclass(frozen=True)
class Tools:
    """What all workspaces share. `slots` bounds how many are prepared at once."""

    context: ServiceContext
    settings: FleetSettings
    slots: asyncio.Semaphore


@dataclass
class Pulse:
    """When the engine was last heard of, and what it said of itself."""

    last_seen: datetime | None = None
    hello: EngineHello | None = None
    report: EngineReport | None = None
    turn_ended: bool = False
    """A turn has ended since the workspace became active."""
    progress: str | None = None
    """What is being done while the workspace is prepared."""


@dataclass
class Site:
    """One workspace: its parts, shared by its supervisor, its life and its sessions."""

    id: str
    tools: Tools
    line: Line
    courier: Courier
    pulse: Pulse = field(default_factory=Pulse)
    mark: JournalMark = field(default_factory=JournalMark)
    prepared: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it waits in a pool, prepared."""
    claimed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it left its pool."""

    def seen(self) -> None:
        """The engine has just been heard of."""
        self.pulse.last_seen = self.tools.context.clock()


def new_site(workspace_id: str, tools: Tools) -> Site:
    """The parts of a workspace."""
    courier = Courier(
        tools.context.database,
        tools.context.event_log,
        workspace_id,
        pauses=tools.settings.redelivery,
        limit=tools.settings.call_limit,
        clock=lambda: tools.context.clock(),
    )
    return Site(workspace_id, tools, Line(tools.settings.link_wait), courier)
