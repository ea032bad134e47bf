"""Announced models belong to the user in whose workspace they were announced."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Replace the table: the users of the announcements are not known. Agents repeat them."""
    op.drop_table("agent_models")
    op.create_table(
        "agent_models",
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), server_default="", nullable=False),
        sa.Column("agent", sa.String(length=100), nullable=False),
        sa.Column("models_json", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_agent_models_organization_id")
        ),
        sa.PrimaryKeyConstraint(
            "organization_id", "user_id", "agent", name=op.f("pk_agent_models")
        ),
    )
