"""Tables of people, settings, events and repositories."""

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
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def key() -> Column[str]:
    """Return the id of a row, which is its primary key."""
    return Column("id", String(36), primary_key=True)


def moment(name: str, nullable: bool = False) -> Column[str]:
    """Return a date-time as ISO text in UTC."""
    return Column(name, String(32), nullable=nullable)


def organization(primary_key: bool = False) -> Column[str]:
    """Return the organization that a row belongs to."""
    return Column(
        "organization_id",
        String(36),
        ForeignKey("organizations.id"),
        primary_key=primary_key,
        nullable=False,
    )


def workspace(primary_key: bool = False) -> Column[str]:
    """Return the workspace that a row belongs to; the row is deleted with it."""
    return Column(
        "workspace_id",
        String(36),
        ForeignKey("workspaces.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


organizations = Table(
    "organizations",
    metadata,
    key(),
    Column("name", String(200), nullable=False),
    moment("created_at"),
)

users = Table(
    "users",
    metadata,
    key(),
    Column("issuer", String(200), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("email", String(320)),
    Column("name", String(200)),
    moment("created_at"),
    UniqueConstraint("issuer", "subject"),
)
"""`issuer` and `subject` are those of a user's tokens."""

members = Table(
    "members",
    metadata,
    Column("organization_id", String(36), ForeignKey("organizations.id"), primary_key=True),
    Column("user_id", String(36), ForeignKey("users.id"), primary_key=True),
    Column("role", String(16), nullable=False),
    moment("created_at"),
)
"""`role` is `admin` or `member`."""

api_keys = Table(
    "api_keys",
    metadata,
    key(),
    organization(),
    Column("user_id", String(36)),
    Column("name", String(200), nullable=False),
    Column("key_prefix", String(16), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    moment("created_at"),
    moment("last_used_at", nullable=True),
    Index("ix_api_keys_owner", "organization_id", "user_id"),
)

device_codes = Table(
    "device_codes",
    metadata,
    key(),
    Column("device_hash", String(64), nullable=False, unique=True),
    Column("user_code", String(16), nullable=False, unique=True),
    Column("user_id", String(36), ForeignKey("users.id")),
    Column("denied", Boolean, nullable=False),
    moment("expires_at"),
    moment("polled_at", nullable=True),
)
"""Open requests for a user token (RFC 8628); `user_id` is set when one was approved."""


services = Table(
    "services",
    metadata,
    Column("home_id", String(36), primary_key=True),
    Column("url", Text, nullable=False),
    moment("seen_at"),
)
"""`url` is where the service of a home is reached by the others, `seen_at` when it last said so."""


settings = Table(
    "settings",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
    Column("revision", Integer, nullable=False, default=0),
)

agent_models = Table(
    "agent_models",
    metadata,
    organization(primary_key=True),
    Column("user_id", String(36), primary_key=True, server_default=""),
    Column("agent", String(100), primary_key=True),
    Column("models_json", Text, nullable=False),
    moment("updated_at"),
)
"""The models that an agent announced last in a replica of a user; `user_id` is empty for replicas
without a user. Other users are not offered them: an engine may announce any text."""


credentials = Table(
    "credentials",
    metadata,
    key(),
    organization(),
    Column("user_id", String(36)),
    Column("provider", String(100), nullable=False),
    Column("key_sealed", Text, nullable=False),
    moment("created_at"),
    moment("updated_at"),
    moment("last_fetched_at", nullable=True),
    UniqueConstraint("organization_id", "user_id", "provider"),
)
"""Without a user it belongs to the organization."""

_shared = credentials.c.user_id.is_(None)
Index(
    "uq_credentials_shared",
    credentials.c.organization_id,
    credentials.c.provider,
    unique=True,
    sqlite_where=_shared,
    postgresql_where=_shared,
)

notification_targets = Table(
    "notification_targets",
    metadata,
    key(),
    organization(),
    Column("user_id", String(36), nullable=False),
    Column("url_sealed", Text, nullable=False),
    moment("created_at"),
    UniqueConstraint("organization_id", "user_id"),
)


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
starts at 1, so that 0 means "from the beginning". Written by `service.event_log` alone."""


repositories = Table(
    "repositories",
    metadata,
    key(),
    organization(),
    Column("name", String(200), nullable=False),
    Column("url", Text, nullable=False),
    Column("default_branch", String(255), nullable=False),
    moment("created_at"),
    UniqueConstraint("organization_id", "url"),
)

repository_sets = Table(
    "repository_sets",
    metadata,
    key(),
    organization(),
    Column("name", String(200), nullable=False),
    moment("created_at"),
    UniqueConstraint("organization_id", "name"),
)

repository_set_members = Table(
    "repository_set_members",
    metadata,
    Column(
        "repository_set_id",
        String(36),
        ForeignKey("repository_sets.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column(
        "repository_id",
        String(36),
        ForeignKey("repositories.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("position", Integer, nullable=False),
)
