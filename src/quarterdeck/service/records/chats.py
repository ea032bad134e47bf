"""Chats as rows."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from quarterdeck.service.db.tables import chats
from quarterdeck.wire.chats import Chat

_columns = (
    chats.c.id,
    chats.c.provider,
    chats.c.title,
    chats.c.created_at,
    chats.c.updated_at,
    chats.c.processing,
    chats.c.awaiting_input,
    chats.c.parent_chat_id,
    chats.c.last_message_text,
    chats.c.goal_json,
    chats.c.plan_ready,
    chats.c.processing_since,
)
# Made once: every request about a replica reads its chats.
_of_workspace = select(*_columns).where(
    chats.c.workspace_id == bindparam("in"), chats.c.deletion.is_(None)
)
_one = _of_workspace.where(chats.c.id == bindparam("of"))
_in_order = _of_workspace.order_by(chats.c.created_at, chats.c.id)


class Deletion(StrEnum):
    """How far the end of a chat has come."""

    ASKED = "asked"
    TOLD = "told"
    GONE = "gone"


def add_chat(
    connection: Connection, workspace_id: str, chat_id: str, provider: str, now: str, **values: Any
) -> None:
    """Stores a chat; `values` are further columns.

    Raises:
        IntegrityError: the id is taken.
    """
    start: dict[str, Any] = {
        "processing": False,
        "awaiting_input": False,
        "next_history_index": 0,
        "created_at": now,
        "updated_at": now,
    }
    row = {"id": chat_id, "workspace_id": workspace_id, "provider": provider, **start, **values}
    connection.execute(insert(chats).values(**row))


def find_chat(connection: Connection, workspace_id: str, chat_id: str) -> Chat | None:
    """The chat of an id, in one workspace."""
    row = connection.execute(_one, {"in": workspace_id, "of": chat_id}).mappings().first()
    return None if row is None else _as_chat(row)


def list_chats(connection: Connection, workspace_id: str) -> list[Chat]:
    """All chats of a workspace, the first made first."""
    rows = connection.execute(_in_order, {"in": workspace_id}).mappings()
    return [_as_chat(row) for row in rows]


def change_chat(connection: Connection, workspace_id: str, chat_id: str, **values: Any) -> bool:
    """Sets columns of a chat; False when the workspace has no such chat."""
    statement = (
        update(chats)
        .where(chats.c.id == chat_id, chats.c.workspace_id == workspace_id)
        .values(**values)
    )
    return connection.execute(statement).rowcount > 0


def rest_chats(connection: Connection, workspace_id: str) -> None:
    """No chat of the workspace works or waits for its agent any more: its engine has ended.

    A plan goes on waiting: it can be accepted at any time.
    """
    statement = (
        update(chats)
        .where(chats.c.workspace_id == workspace_id)
        .values(processing=False, awaiting_input=False, processing_since=None)
    )
    connection.execute(statement)


def with_plans(connection: Connection, workspace_ids: Sequence[str]) -> set[str]:
    """Those of the workspaces in which a plan waits for the person's word."""
    statement = select(chats.c.workspace_id).where(
        chats.c.workspace_id.in_(workspace_ids),
        chats.c.plan_ready.is_(True),
        chats.c.deletion.is_(None),
    )
    return set(connection.execute(statement).scalars())


def newest_message_chat(of: Sequence[Chat]) -> Chat | None:
    """The chat in which something was said last."""
    spoken = [chat for chat in of if chat.last_message_text]
    return max(spoken, key=lambda chat: chat.updated_at, default=None)


def deletion_of(connection: Connection, chat_id: str) -> str | None:
    """How far the end of a chat has come; None while it is there."""
    return connection.execute(select(chats.c.deletion).where(chats.c.id == chat_id)).scalar()


def unfinished_deletions(connection: Connection, workspace_id: str) -> list[tuple[str, str]]:
    """Ids of deleted chats that the engine may still have, and how far each has come."""
    statement = select(chats.c.id, chats.c.deletion).where(
        chats.c.workspace_id == workspace_id,
        chats.c.deletion.in_((Deletion.ASKED, Deletion.TOLD)),
    )
    return [(row.id, row.deletion) for row in connection.execute(statement)]


def _as_chat(row: RowMapping) -> Chat:
    values = dict(row)
    goal = values.pop("goal_json")
    return Chat.model_validate({**values, "goal": goal and from_json(goal)})
