"""The schema (SQLAlchemy Core). Changed only together with a migration.

Ids are stored as 36-character text and moments as ISO text in UTC, so that both databases give
back the same values and sort alike. JSON is stored as text and decoded by who reads it: most reads
pass it on unchanged.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _key() -> Column[str]:
    return Column("id", String(36), primary_key=True)


def _moment(name: str, nullable: bool = False) -> Column[str]:
    return Column(name, String(32), nullable=nullable)


organizations = Table(
    "organizations",
    metadata,
    _key(),
    Column("name", String(200), nullable=False),
    _moment("created_at"),
)

api_keys = Table(
    "api_keys",
    metadata,
    _key(),
    Column("organization_id", String(36), ForeignKey("organizations.id"), nullable=False),
    Column("user_id", String(36)),
    Column("name", String(200), nullable=False),
    Column("key_prefix", String(16), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    _moment("created_at"),
    _moment("last_used_at", nullable=True),
)

repositories = Table(
    "repositories",
    metadata,
    _key(),
    Column("organization_id", String(36), ForeignKey("organizations.id"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("url", Text, nullable=False),
    Column("default_branch", String(255), nullable=False),
    _moment("created_at"),
    UniqueConstraint("organization_id", "url"),
)

environments = Table(
    "environments",
    metadata,
    _key(),
    Column("organization_id", String(36), ForeignKey("organizations.id"), nullable=False),
    Column("user_id", String(36)),
    Column("name", String(200), nullable=False),
    Column("description", Text),
    Column("is_global", Boolean, nullable=False),
    Column("repository_id", String(36), ForeignKey("repositories.id")),
    Column("repository_set_id", String(36)),
    Column("system_prompt", Text),
    Column("personal_preferences", Text),
    Column("source_environment_id", String(36)),
    _moment("created_at"),
    _moment("updated_at"),
)

_shared = environments.c.user_id.is_(None)
_personal = environments.c.user_id.is_not(None)
_for_all = text("is_global")
# A plain constraint would let two shared ones have one name: null is never equal to null.
Index(
    "uq_environments_shared_name",
    environments.c.organization_id,
    environments.c.name,
    unique=True,
    sqlite_where=_shared,
    postgresql_where=_shared,
)
Index(
    "uq_environments_personal_name",
    environments.c.organization_id,
    environments.c.user_id,
    environments.c.name,
    unique=True,
    sqlite_where=_personal,
    postgresql_where=_personal,
)
Index(
    "uq_environments_global",
    environments.c.organization_id,
    unique=True,
    sqlite_where=_for_all,
    postgresql_where=_for_all,
)

workspaces = Table(
    "workspaces",
    metadata,
    _key(),
    Column("organization_id", String(36), ForeignKey("organizations.id"), nullable=False),
    Column("environment_id", String(36), ForeignKey("environments.id"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("status", String(16), nullable=False),
    Column("error", Text),
    Column("source", String(32), nullable=False),
    Column("coding_agent", String(100)),
    Column("model", String(200)),
    Column("lifecycle_policy", String(40), nullable=False),
    Column("config_json", Text),
    Column("size", String(16), nullable=False),
    Column("webhook_url", Text),
    Column("repositories_json", Text, nullable=False),
    Column("repository_statuses_json", Text, nullable=False),
    Column("engine_secret", String(64), nullable=False),
    Column("engine_version", String(40)),
    Column("boot_id", String(64)),
    Column("wake_wanted", Boolean, nullable=False),
    Column("next_event_index", BigInteger, nullable=False, default=1),
    Column("next_history_index", BigInteger, nullable=False, default=0),
    Column("journal_index", BigInteger, nullable=False, default=0),
    _moment("created_at"),
    _moment("last_activity_at", nullable=True),
    UniqueConstraint("organization_id", "name"),
)

chats = Table(
    "chats",
    metadata,
    _key(),
    Column(
        "workspace_id", String(36), ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False
    ),
    Column("provider", String(100), nullable=False),
    Column("title", String(100)),
    Column("parent_chat_id", String(36)),
    Column("processing", Boolean, nullable=False),
    Column("awaiting_input", Boolean, nullable=False),
    Column("last_message_text", Text),
    Column("next_history_index", BigInteger, nullable=False, default=0),
    _moment("created_at"),
    _moment("updated_at"),
    Index("ix_chats_workspace", "workspace_id", "created_at"),
)

messages = Table(
    "messages",
    metadata,
    _key(),
    Column(
        "workspace_id", String(36), ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False
    ),
    Column("chat_id", String(36), ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("delivery_json", Text, nullable=False),
    Column("sender_user_id", String(36)),
    Column("sender_email", String(320)),
    _moment("created_at"),
    Index("ix_messages_chat", "chat_id", "position"),
    Index("ix_messages_undelivered", "workspace_id", "state", "position"),
)
"""`state` moves accepted -> delivered -> started -> done; `canceled` from the first two."""

events = Table(
    "events",
    metadata,
    Column(
        "workspace_id",
        String(36),
        ForeignKey("workspaces.id", ondelete="CASCADE"),
        primary_key=True,
    ),
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

settings = Table(
    "settings",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
    Column("revision", Integer, nullable=False, default=0),
)
