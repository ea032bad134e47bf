"""Secrets that people leave with the service, sealed."""

from sqlalchemy import Column, Index, String, Table, Text, UniqueConstraint

from quarterdeck.service.db.tables.base import key, metadata, moment, organization

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
"""Without a user it is the organization's."""

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
