"""Environments: what a workspace is made from."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, String, Table, Text, text

from quarterdeck.service.db.tables.base import key, metadata, moment, organization

environments = Table(
    "environments",
    metadata,
    key(),
    organization(),
    Column("user_id", String(36)),
    Column("name", String(200), nullable=False),
    Column("description", Text),
    Column("is_global", Boolean, nullable=False),
    Column("repository_id", String(36), ForeignKey("repositories.id")),
    Column("repository_set_id", String(36)),
    Column("system_prompt", Text),
    Column("personal_preferences", Text),
    Column("source_environment_id", String(36)),
    moment("created_at"),
    moment("updated_at"),
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
