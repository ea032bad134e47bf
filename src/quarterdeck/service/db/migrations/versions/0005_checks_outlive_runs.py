"""Checks outlive their runs until their host has heard of the end.

Nothing wrote checks before, so the table is made anew.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("automation_checks")
    op.create_table(
        "automation_checks",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("execution_id", sa.String(length=36), nullable=True),
        sa.Column("automation_id", sa.String(length=36), nullable=False),
        sa.Column("check_run_id", sa.String(length=100), nullable=False),
        sa.Column("host", sa.String(length=16), nullable=False),
        sa.Column("host_ref", sa.String(length=100), nullable=True),
        sa.Column("host_asked", sa.Boolean(), nullable=False),
        sa.Column("repository", sa.String(length=500), nullable=False),
        sa.Column("subject", sa.String(length=600), nullable=False),
        sa.Column("head_sha", sa.String(length=64), nullable=True),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column("conclusion", sa.String(length=16), nullable=True),
        sa.Column("title", sa.String(length=255), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("unsent", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.String(length=32), nullable=True),
        sa.Column("held_by", sa.String(length=36), nullable=True),
        sa.Column("held_until", sa.String(length=32), nullable=True),
        sa.Column("opened_at", sa.String(length=32), nullable=False),
        sa.Column("closed_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["execution_id"],
            ["automation_executions.id"],
            name=op.f("fk_automation_checks_execution_id"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_automation_checks_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automation_checks")),
        sa.UniqueConstraint("execution_id", name=op.f("uq_automation_checks_execution_id")),
    )
    op.create_index(
        op.f("ix_automation_checks_check_run_id"),
        "automation_checks",
        ["check_run_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_automation_checks_subject"), "automation_checks", ["subject"], unique=False
    )
    op.create_index(
        op.f("ix_automation_checks_next_at"), "automation_checks", ["next_at"], unique=False
    )
