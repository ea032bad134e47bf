"""A replica's history, paged from the end backwards."""

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast
from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.client.names import NEUTRAL
from quarterdeck.wire.history import History


class HistoryPages:
    """`/v1/replica/{id}/history`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rename = _renaming(connection.names.transcript_key)

    async def page(
        self,
        replica_id: UUID,
        *,
        chat_id: UUID | None = None,
        limit: int | None = None,
        before_event: int | None = None,
        before_turn: int | None = None,
        before_cursor: str | None = None,
    ) -> History:
        """The last `limit` events (all without one) before the given place, oldest first.

        `before_event` and `before_turn` are exclusive upper bounds; pass `events_start_index` and
        `turns_start_index` of the page before. `before_cursor` moves both.
        """
        query = {
            "chat_id": str(chat_id) if chat_id else None,
            "limit": limit,
            "beforeEvent": before_event,
            "beforeTurn": before_turn,
            "beforeCursor": before_cursor,
        }
        return await self._connection.call(
            "GET", f"/v1/replica/{replica_id}/history", History, query=query, rename=self._rename
        )

    async def pages(
        self, replica_id: UUID, *, chat_id: UUID | None = None, limit: int = 200
    ) -> AsyncGenerator[History]:
        """Page after page from the newest back to the first."""
        cursor: str | None = None
        while True:
            page = await self.page(replica_id, chat_id=chat_id, limit=limit, before_cursor=cursor)
            yield page
            if page.before_cursor is None or page.before_cursor == cursor:
                return
            cursor = page.before_cursor


def _renaming(transcript_key: str) -> Callable[[bytes], bytes] | None:
    if transcript_key == NEUTRAL.transcript_key:
        return None

    def rename(body: bytes) -> bytes:
        try:
            answer: Any = json.loads(body)
        except ValueError:
            return body  # said by who reads it
        if not isinstance(answer, dict):
            return body
        fields = cast(dict[str, Any], answer)
        if transcript_key in fields:
            fields[NEUTRAL.transcript_key] = fields.pop(transcript_key)
        return json.dumps(fields).encode()

    return rename
