"""Reads of the history part of the log. Places in it are gap-free, so a page is a plain range."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, String, bindparam, or_, select

from quarterdeck.service.db.tables import chats, events, messages, workspaces
from quarterdeck.service.transcripts import NATIVE_AGENT
from quarterdeck.wire.messages import Sender
from quarterdeck.wire.replicas import WorkspaceStatus

IDS_AT_ONCE = 500


@dataclass(frozen=True)
class Thread:
    """What a history is taken from: one chat, or the whole workspace (`chat_id` None).

    `total` and `log_index` are of the same moment.
    """

    workspace_id: str
    chat_id: str | None
    total: int
    coding_agent: str | None
    waking: bool
    log_index: int


_workspace = select(
    workspaces.c.next_history_index,
    workspaces.c.coding_agent,
    workspaces.c.status,
    workspaces.c.wake_wanted,
    workspaces.c.next_event_index,
).where(workspaces.c.id == bindparam("of"))
_chat = select(chats.c.next_history_index, chats.c.provider).where(
    chats.c.id == bindparam("of"),
    chats.c.workspace_id == bindparam("in"),
    chats.c.deletion.is_(None),
)
_only = select(chats.c.id, chats.c.provider, chats.c.next_history_index).where(
    chats.c.workspace_id == bindparam("of"), chats.c.deletion.is_(None)
)
_of_workspace = (
    select(events.c.payload_json)
    .where(
        events.c.workspace_id == bindparam("of"),
        events.c.history_index >= bindparam("start"),
        events.c.history_index < bindparam("end"),
    )
    .order_by(events.c.history_index)
)
_of_chat = (
    select(events.c.payload_json)
    .where(
        events.c.chat_id == bindparam("of"),
        events.c.chat_history_index >= bindparam("start"),
        events.c.chat_history_index < bindparam("end"),
    )
    .order_by(events.c.chat_history_index)
)
_canceled = (
    select(messages.c.id)
    .where(
        messages.c.workspace_id == bindparam("of"),
        messages.c.state == "canceled",
        or_(bindparam("in", type_=String).is_(None), messages.c.chat_id == bindparam("in")),
    )
    .order_by(messages.c.position)
)


def find_thread(connection: Connection, workspace_id: str, chat_id: str | None) -> Thread | None:
    """The thread as it is now; None when there is no such workspace or chat."""
    row = connection.execute(_workspace, {"of": workspace_id}).first()
    if row is None:
        return None
    total, coding_agent = row.next_history_index, row.coding_agent
    if chat_id is not None:
        chat = connection.execute(_chat, {"of": chat_id, "in": workspace_id}).first()
        if chat is None:
            return None
        total, coding_agent = chat.next_history_index, chat.provider
    waking = bool(row.wake_wanted) and row.status != WorkspaceStatus.ACTIVE
    return Thread(workspace_id, chat_id, total, coding_agent, waking, row.next_event_index - 1)


def native_chat(connection: Connection, thread: Thread) -> str | None:
    """The chat that a thread is all of, if its agent has a transcript of its own kind.

    A workspace's history is also that of its only chat, as long as it never had another one.
    """
    if thread.coding_agent != NATIVE_AGENT or thread.chat_id is not None:
        return thread.chat_id if thread.coding_agent == NATIVE_AGENT else None
    rows = connection.execute(_only, {"of": thread.workspace_id}).all()
    same = len(rows) == 1 and rows[0].next_history_index == thread.total
    return rows[0].id if same and rows[0].provider == NATIVE_AGENT else None


def read_payloads(connection: Connection, thread: Thread, start: int, end: int) -> list[str]:
    """Payload texts of the `chat.turn.delta` events at the places from `start` to before `end`."""
    statement, of = (
        (_of_workspace, thread.workspace_id)
        if thread.chat_id is None
        else (_of_chat, thread.chat_id)
    )
    rows = connection.execute(statement, {"of": of, "start": start, "end": end})
    return list(rows.scalars())


def read_senders(
    connection: Connection, workspace_id: str, message_ids: Sequence[str]
) -> list[Sender]:
    """Who sent the given messages, in their order."""
    found: dict[str, Sender] = {}
    for first in range(0, len(message_ids), IDS_AT_ONCE):
        statement = select(
            messages.c.sender_user_id,
            messages.c.sender_email,
            messages.c.created_at.label("recorded_at"),
            messages.c.id.label("message_id"),
        ).where(
            messages.c.workspace_id == workspace_id,
            messages.c.id.in_(message_ids[first : first + IDS_AT_ONCE]),
        )
        rows = connection.execute(statement).mappings()
        found |= {row["message_id"]: Sender.model_validate(dict(row)) for row in rows}
    return [found[message_id] for message_id in dict.fromkeys(message_ids) if message_id in found]


def read_canceled(connection: Connection, thread: Thread) -> list[str]:
    """Ids of the thread's messages that were canceled in the queue."""
    rows = connection.execute(_canceled, {"of": thread.workspace_id, "in": thread.chat_id})
    return list(rows.scalars())
