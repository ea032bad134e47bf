"""Where the turns of a chat begin in its history.

The log is append-only, so what was found once is kept, and only what came since is looked at.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from pydantic_core import from_json
from sqlalchemy import Connection, bindparam, select

from quarterdeck.service.db.tables import events
from quarterdeck.wire.history import AgentEventType

CHATS_KEPT = 500

_begun = (
    select(events.c.chat_history_index, events.c.payload_json)
    .where(
        events.c.chat_id == bindparam("of"),
        events.c.chat_history_index >= bindparam("start"),
        events.c.chat_history_index < bindparam("end"),
        events.c.payload_json.like(f'%"type":"{AgentEventType.USER_MESSAGE}"%'),
    )
    .order_by(events.c.chat_history_index)
)


@dataclass
class _Known:
    looked_at: int = 0
    begins: list[int] = field(default_factory=list[int])


class TurnPlaces:
    """The beginnings of turns, by chat. Used by several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = Lock()

    def find(self, connection: Connection, chat_id: str, total: int) -> list[int]:
        """Where each turn among the first `total` events begins, oldest first."""
        with self._lock:
            known = self._known.setdefault(chat_id, _Known())
            self._known.move_to_end(chat_id)
            if len(self._known) > CHATS_KEPT:
                self._known.popitem(last=False)
            start = known.looked_at
        found: list[int] = []
        if total > start:
            asked = {"of": chat_id, "start": start, "end": total}
            rows = connection.execute(_begun, asked)
            found = [row.chat_history_index for row in rows if _begins(row.payload_json)]
        with self._lock:
            if known.looked_at == start < total:
                known.begins += found
                known.looked_at = total
            return [place for place in known.begins if place < total]


def _begins(payload: str) -> bool:
    """Whether it is one: the words may be part of something else."""
    return from_json(payload)["event"].get("type") == AgentEventType.USER_MESSAGE
