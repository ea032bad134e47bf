"""How a replica is: its state, its engine's pulse, what was said last."""

from datetime import datetime

from sqlalchemy import Connection

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.site import Pulse
from quarterdeck.service.records.chats import list_chats, newest_message_chat
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.replicas import (
    EngineHeartbeat,
    LastChatMessage,
    WorkspaceStatus,
    WorkspaceStatusAnswer,
)

MISSED_BEATS = 3
"""A pulse is stale after so many heartbeats without one."""


async def read_status(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, away: str | None = None
) -> WorkspaceStatusAnswer:
    """The state now; never wakes. `away` says that the service is away that has the replica."""
    last = await context.database.read(lambda c: _last_message(c, row.id))
    pulse = fleet.of(row.id).pulse
    living = row.status in (WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING)
    return WorkspaceStatusAnswer(
        status=row.status,
        last_checked=context.clock(),
        error=row.error if row.status == WorkspaceStatus.ERROR else None,
        message=away or (pulse.progress if row.status == WorkspaceStatus.PREPARING else None),
        engine_heartbeat=_heartbeat(context, fleet, pulse) if living else None,
        last_chat_message=last,
    )


def _heartbeat(context: ServiceContext, fleet: Fleet, pulse: Pulse) -> EngineHeartbeat | None:
    if pulse.last_seen is None:
        return None
    age = max(0, round((context.clock() - pulse.last_seen).total_seconds() * 1000))
    stale_after = round(fleet.settings.heartbeat * MISSED_BEATS * 1000)
    booted = pulse.hello and pulse.hello.boot_time_ms
    return EngineHeartbeat(
        last_seen_at=pulse.last_seen,
        age_ms=age,
        fresh=age < stale_after,
        stale_after_ms=stale_after,
        boot_time_ms=booted,
        uptime_seconds=None if booted is None else _uptime(pulse.last_seen, booted),
    )


def _uptime(seen: datetime, booted_ms: int) -> int:
    """For how long the engine ran when it was last seen. Its own count is as old as the last report."""
    return max(0, int(seen.timestamp() * 1000) - booted_ms) // 1000


def _last_message(connection: Connection, workspace_id: str) -> LastChatMessage | None:
    chat = newest_message_chat(list_chats(connection, workspace_id))
    if chat is None or chat.last_message_text is None:
        return None
    return LastChatMessage(text=chat.last_message_text, provider=chat.provider, at=chat.updated_at)
