"""Columns for the cost limits of environments and workspaces."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, empty: no limit."""
    for table in ("environments", "workspaces"):
        op.add_column(table, sa.Column("cost_limit", sa.Float()))
