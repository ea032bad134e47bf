"""Connected repositories, and sets of them."""

from sqlalchemy import Column, ForeignKey, Integer, String, Table, Text, UniqueConstraint

from quarterdeck.service.db.tables.base import key, metadata, moment, organization

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
