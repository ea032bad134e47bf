"""Column for settings chosen while a replica sleeps."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, empty: no settings wait for an engine."""
    op.add_column("chats", sa.Column("chosen_json", sa.Text()))
