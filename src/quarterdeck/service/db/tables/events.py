"""The event log."""

from sqlalchemy import BigInteger, Column, Index, String, Table, Text

from quarterdeck.service.db.tables.base import metadata, workspace

events = Table(
    "events",
    metadata,
    workspace(primary_key=True),
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("id", String(36), nullable=False),
    Column("ts", String(32), nullable=False),
    Column("type", String(40), nullable=False),
    Column("payload_json", Text, nullable=False),
    Column("chat_id", String(36)),
    Column("history_index", BigInteger),
    Column("chat_history_index", BigInteger),
    Index("ix_events_history", "workspace_id", "history_index", unique=True),
    Index("ix_events_chat_history", "chat_id", "chat_history_index", unique=True),
    sqlite_with_rowid=False,
)
"""The append-only log. `history_index` counts agent events of the workspace, `chat_history_index`
those of one chat, both from 0 and without gaps; null for events that are not history. `index`
starts at 1, so that 0 means "from the beginning". Written by `service.log_writer` alone."""
