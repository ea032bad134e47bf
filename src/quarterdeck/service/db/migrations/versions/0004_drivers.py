"""The driver of each workspace; every earlier one runs on the machine of its service."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column(
        "workspaces",
        sa.Column("driver", sa.String(length=16), server_default="process", nullable=False),
    )
