"""Changes of automations, their runs and the list of replicas, streamed to clients.

A change is stored in the transaction that makes it, with an index. A stream reads the changes after
its own index: at once when this service has stored one, and every few seconds for those of other
services on the same database.
"""

import asyncio
import json
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, RowMapping, delete, func, insert, or_, select

from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import automation_events as table
from quarterdeck.wire.events import AutomationEventType

KEPT = 2_000
"""How many of the newest are kept, for clients that reconnect."""
PAGE = 64
PING = b": ping\n\n"


def store_change(
    connection: Connection,
    owner: tuple[str, str | None],
    type: AutomationEventType,
    payload: dict[str, Any],
    now: str,
) -> None:
    """Store a change; `owner` is the organization and, of a personal automation, the user."""
    index = connection.execute(
        insert(table)
        .values(
            organization_id=owner[0],
            user_id=owner[1],
            id=str(uuid4()),
            ts=now,
            type=type,
            payload_json=json.dumps(payload, separators=(",", ":")),
        )
        .returning(table.c.index)
    ).scalar_one()
    if index % PAGE == 0:
        connection.execute(delete(table).where(table.c.index <= index - KEPT))


class ChangeStreams:
    """Wakes the streams of one service; `pause` and `ping` are seconds."""

    def __init__(self, database: Database, pause: float = 3.0, ping: float = 15.0) -> None:
        self._database = database
        self._pause = pause
        self.ping = ping
        self._waiting: set[asyncio.Event] = set()

    def nudge(self) -> None:
        """Note that something may have been stored."""
        for event in self._waiting:
            event.set()

    async def newest(self) -> int:
        """Return the index of the newest change, 0 when there was none."""
        return await self._database.read(
            lambda c: c.execute(select(func.max(table.c.index))).scalar() or 0
        )

    def follow(self, organization_id: str, user_id: str | None, after: int) -> "Changes":
        """Return the stream of a caller, starting after an index."""
        event = asyncio.Event()
        self._waiting.add(event)
        return Changes(self, event, (organization_id, user_id), after)

    async def read(self, owner: tuple[str, str | None], after: int) -> list[tuple[int, bytes]]:
        """Return the frames after an index, with their indices."""
        mine = or_(table.c.user_id.is_(None), table.c.user_id == owner[1])
        statement = (
            select(table)
            .where(table.c.index > after, table.c.organization_id == owner[0], mine)
            .order_by(table.c.index)
            .limit(PAGE)
        )
        rows = await self._database.read(lambda c: list(c.execute(statement).mappings()))
        return [(row["index"], _frame(row)) for row in rows]

    async def rest(self, event: asyncio.Event, seconds: float) -> None:
        """Wait until something was stored here, or may have been stored by another service."""
        try:
            async with asyncio.timeout(min(seconds, self._pause)):
                await event.wait()
        except TimeoutError:
            return

    def leave(self, event: asyncio.Event) -> None:
        """Note that a stream has ended."""
        self._waiting.discard(event)


class Changes:
    """One stream: an async iterator of frames and pings."""

    def __init__(
        self, watch: ChangeStreams, event: asyncio.Event, owner: tuple[str, str | None], after: int
    ) -> None:
        self._watch = watch
        self._event = event
        self._owner = owner
        self._after = after
        self._ping_at = asyncio.get_running_loop().time() + watch.ping

    def __aiter__(self) -> "Changes":
        return self

    async def __anext__(self) -> bytes:
        """Return the next frames, or a ping."""
        while True:
            left = self._ping_at - asyncio.get_running_loop().time()
            if left <= 0:
                self._ping_at += self._watch.ping - left
                return PING
            self._event.clear()
            if changes := await self._watch.read(self._owner, self._after):
                self._after = changes[-1][0]
                return b"".join(frame for _, frame in changes)
            await self._watch.rest(self._event, left)

    async def aclose(self) -> None:
        """Close the stream."""
        self._watch.leave(self._event)


def _frame(row: RowMapping) -> bytes:
    head = {"id": row["id"], "ts": row["ts"], "type": row["type"]}
    text = json.dumps(head, separators=(",", ":"))[:-1] + ',"payload":' + row["payload_json"] + "}"
    return f"id: {row['index']}\ndata: {text}\n\n".encode()
