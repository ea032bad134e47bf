"""Columns for the permission policies of environments and workspaces."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, empty: every permission request is asked."""
    for table in ("environments", "workspaces"):
        op.add_column(table, sa.Column("permission_policy", sa.String(length=8)))
        op.add_column(table, sa.Column("permission_rules_json", sa.Text()))
