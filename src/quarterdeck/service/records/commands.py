"""The commands that a chat's agent offered last, as it told them in the log."""

from typing import Any, cast

from pydantic_core import from_json
from sqlalchemy import Connection, select

from quarterdeck.service.db.tables import events

TOLD = "available_commands_update"


def offered_commands(connection: Connection, chat_id: str) -> list[dict[str, Any]]:
    """The agent's own objects; empty when it told none."""
    statement = (
        select(events.c.payload_json)
        .where(
            events.c.chat_id == chat_id,
            events.c.chat_history_index.is_not(None),
            events.c.payload_json.like(f'%"sessionUpdate":"{TOLD}"%'),
        )
        .order_by(events.c.chat_history_index.desc())
    )
    for payload in connection.execute(statement).scalars():
        told = from_json(payload)["event"]["payload"]
        if told.get("sessionUpdate") == TOLD:  # else the text was part of something else
            return _objects(told.get("availableCommands"))
    return []


def _objects(value: object) -> list[dict[str, Any]]:
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) for one in found if isinstance(one, dict)]
