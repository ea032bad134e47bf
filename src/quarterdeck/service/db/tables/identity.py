"""Who there is: organizations, users, and what they show to be let in."""

from sqlalchemy import Boolean, Column, ForeignKey, String, Table, UniqueConstraint

from quarterdeck.service.db.tables.base import key, metadata, moment, organization

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
"""`issuer` and `subject` are those of the tokens that a user shows."""

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
