"""A column for the ports of workspaces that share the network of their machine."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column: a workspace gets its ports at its next start."""
    op.add_column("workspaces", sa.Column("port_block", sa.Integer()))
