"""Several services over one database: whose sandbox a workspace is, and where each is reached"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # What there is already is taken by the service that opens the database (`service.homes`).
    op.add_column("workspaces", sa.Column("home_id", sa.String(length=36), nullable=True))
    op.add_column("webhook_deliveries", sa.Column("home_id", sa.String(length=36), nullable=True))
    op.create_table(
        "services",
        sa.Column("home_id", sa.String(length=36), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("home_id", name=op.f("pk_services")),
    )
