"""Columns for the takeover of workspaces whose service is gone."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns: nothing was taken over, and what is in a container is not known."""
    op.add_column(
        "workspaces", sa.Column("lease", sa.Integer(), server_default="0", nullable=False)
    )
    op.add_column("workspaces", sa.Column("clones_json", sa.Text()))
