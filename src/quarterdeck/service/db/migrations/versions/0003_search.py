"""The full-text index of chats. A starting service fills it with what it finds."""

import sqlalchemy as sa
from alembic import op

from quarterdeck.service.db.tables.search import SEARCH_DDL

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of texts, its index, and how far each chat is in it."""
    op.add_column(
        "chats", sa.Column("searched_index", sa.BigInteger(), server_default="0", nullable=False)
    )
    op.create_table(
        "search_texts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workspace_id", sa.String(length=36), nullable=False),
        sa.Column("chat_id", sa.String(length=36), nullable=False),
        sa.Column("role", sa.String(length=8), nullable=False),
        sa.Column("history_index", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("ts", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_search_texts_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_search_texts")),
    )
    op.create_index("ix_search_texts_workspace", "search_texts", ["workspace_id"])
    for statement in SEARCH_DDL[op.get_bind().dialect.name]:
        op.execute(statement)
