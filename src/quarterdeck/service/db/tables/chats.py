"""Chats and the messages sent to them."""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, String, Table, Text

from quarterdeck.service.db.tables.base import key, metadata, moment, workspace

chats = Table(
    "chats",
    metadata,
    key(),
    workspace(),
    Column("provider", String(100), nullable=False),
    Column("title", String(100)),
    Column("parent_chat_id", String(36)),
    Column("processing", Boolean, nullable=False),
    Column("awaiting_input", Boolean, nullable=False),
    Column("last_message_text", Text),
    Column("goal_json", Text),
    Column("plan_ready", Boolean),
    Column("processing_since", String(32)),
    Column("deletion", String(8)),
    Column("next_history_index", BigInteger, nullable=False, default=0),
    moment("created_at"),
    moment("updated_at"),
    Index("ix_chats_workspace", "workspace_id", "created_at"),
)
"""`deletion` is null while the chat is there; then asked -> told (its end is in the log) -> gone (from
the engine too). The row stays: its events do, and they count in its history. `plan_ready` is null where
no engine has told it."""

messages = Table(
    "messages",
    metadata,
    key(),
    workspace(),
    Column("chat_id", String(36), ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("delivery_json", Text, nullable=False),
    Column("sender_user_id", String(36)),
    Column("sender_email", String(320)),
    moment("created_at"),
    Index("ix_messages_chat", "chat_id", "position"),
    Index("ix_messages_undelivered", "workspace_id", "state", "position"),
)
"""`state` moves accepted -> delivered -> started -> done; `canceled` from the first two."""
