"""Chats tell whether a plan waits for the person, and since when their turn runs.

What was before is not known, until the engine tells of the chat again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("chats", sa.Column("plan_ready", sa.Boolean(), nullable=True))
    op.add_column("chats", sa.Column("processing_since", sa.String(length=32), nullable=True))
