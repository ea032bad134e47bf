"""Columns for secrets that were in plain text until now.

The key is not known here: a starting service seals what it finds (`vault.seal_plain`), once, before
it writes anything else.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0.1.0"
branch_labels = None
depends_on = None

_REQUIRED = (
    ("environment_files", "content", "content_sealed"),
    ("webhook_deliveries", "url", "url_sealed"),
)


def upgrade() -> None:
    """Give them names that say that they are sealed, and room."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("PRAGMA secure_delete=ON")  # what was in plain text is overwritten
        for table, old, new in _REQUIRED:
            op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    else:
        for table, old, new in _REQUIRED:  # a constraint keeps its name when a column is renamed
            op.add_column(table, sa.Column(new, sa.Text()))
            op.execute(f"UPDATE {table} SET {new} = {old}")
            op.alter_column(table, new, nullable=False)
            op.drop_column(table, old)
    op.execute("ALTER TABLE workspaces RENAME COLUMN webhook_url TO webhook_url_sealed")
    op.add_column("webhook_deliveries", sa.Column("user_id", sa.String(length=36)))
    op.add_column(
        "workspaces",
        sa.Column("engine_secret_sealed", sa.Text(), server_default="", nullable=False),
    )
    op.execute("UPDATE workspaces SET engine_secret_sealed = engine_secret")
    op.drop_column("workspaces", "engine_secret")
    # A chat's deletion was being carried out when the older service ended.
    op.execute("UPDATE chats SET deletion = 'logged' WHERE deletion = 'told'")
    op.execute(
        "INSERT INTO settings (name, value, revision) VALUES ('plain-secrets', '1', 0)"
        " ON CONFLICT (name) DO NOTHING"
    )
