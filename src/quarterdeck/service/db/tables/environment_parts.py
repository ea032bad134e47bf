"""What an environment carries into its workspaces."""

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from quarterdeck.service.db.tables.base import key, metadata, moment, organization


def _environment() -> Column[str]:
    return Column(
        "environment_id",
        String(36),
        ForeignKey("environments.id", ondelete="CASCADE"),
        nullable=False,
    )


environment_variables = Table(
    "environment_variables",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("key", String(255), nullable=False),
    Column("value_sealed", Text, nullable=False),
    Column("personal_override_allowed", Boolean, nullable=False),
    moment("created_at"),
    moment("updated_at"),
    UniqueConstraint("environment_id", "key"),
)

environment_files = Table(
    "environment_files",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("name", String(255), nullable=False),
    Column("path", Text, nullable=False),
    Column("content", Text, nullable=False),
    moment("created_at"),
    moment("updated_at"),
)

environment_skills = Table(
    "environment_skills",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("name", String(200), nullable=False),
    Column("slug", String(200), nullable=False),
    Column("source", String(1000), nullable=False),
    moment("created_at"),
    moment("updated_at"),
    UniqueConstraint("environment_id", "slug"),
    UniqueConstraint("environment_id", "source", name="uq_environment_skills_source"),
)

environment_mcps = Table(
    "environment_mcps",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("name", String(64), nullable=False),
    Column("transport", String(16), nullable=False),
    Column("config_sealed", Text, nullable=False),
    moment("created_at"),
    moment("updated_at"),
    UniqueConstraint("environment_id", "name"),
)
"""A server's configuration is sealed as a whole: headers and variables in it may be secrets."""

environment_hooks = Table(
    "environment_hooks",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("kind", String(16), nullable=False),
    Column("version", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("is_active", Boolean, nullable=False),
    moment("created_at"),
    UniqueConstraint("environment_id", "kind", "version"),
)
"""Warm hooks and start hooks (`kind`), every version that was saved."""

warm_pools = Table(
    "warm_pools",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("enabled", Boolean, nullable=False),
    Column("target_size", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    moment("retry_at", nullable=True),
    moment("last_failure_at", nullable=True),
    Column("last_failure_reason", Text),
    moment("updated_at"),
    UniqueConstraint("environment_id"),
)
