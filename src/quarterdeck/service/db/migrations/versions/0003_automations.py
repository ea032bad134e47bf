"""Automations"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhook_receipts",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("received_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_webhook_receipts")),
    )
    op.create_table(
        "automation_events",
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=True),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("ts", sa.String(length=32), nullable=False),
        sa.Column("type", sa.String(length=40), nullable=False),
        sa.Column("payload_json", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_automation_events_organization_id"),
        ),
        sa.PrimaryKeyConstraint("index", name=op.f("pk_automation_events")),
    )
    op.create_index("ix_automation_events_ts", "automation_events", ["ts"], unique=False)
    op.create_table(
        "automations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("environment_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=True),
        sa.Column("created_by", sa.String(length=36), nullable=True),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("triggers_json", sa.Text(), nullable=False),
        sa.Column("trigger_types", sa.String(length=200), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("debounce_seconds", sa.Integer(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", sa.Text(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("webhook_token_sealed", sa.Text(), nullable=True),
        sa.Column("webhook_token_hash", sa.String(length=64), nullable=True),
        sa.Column("cron_expression", sa.String(length=200), nullable=True),
        sa.Column("cron_timezone", sa.String(length=100), nullable=True),
        sa.Column("cron_next_fire_at", sa.String(length=32), nullable=True),
        sa.Column("workspace_lifecycle_policy", sa.String(length=40), nullable=False),
        sa.Column("workspace_auto_stop_minutes", sa.Integer(), nullable=True),
        sa.Column("workspace_size", sa.String(length=16), nullable=True),
        sa.Column("config_json", sa.Text(), nullable=False),
        sa.Column("agent_provider", sa.String(length=100), nullable=True),
        sa.Column("model", sa.String(length=200), nullable=True),
        sa.Column("thinking_level", sa.String(length=16), nullable=True),
        sa.Column("plan_mode", sa.Boolean(), nullable=False),
        sa.Column("goal_mode", sa.Boolean(), nullable=True),
        sa.Column("fast_mode", sa.Boolean(), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environments.id"], name=op.f("fk_automations_environment_id")
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_automations_organization_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automations")),
        sa.UniqueConstraint("webhook_token_hash", name=op.f("uq_automations_webhook_token_hash")),
    )
    op.create_index(
        "ix_automations_list", "automations", ["organization_id", "created_at"], unique=False
    )
    op.create_index("ix_automations_next_fire", "automations", ["cron_next_fire_at"], unique=False)
    op.create_table(
        "automation_executions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=False),
        sa.Column("fire_key", sa.String(length=200), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("trigger_type", sa.String(length=16), nullable=False),
        sa.Column("trigger_event", sa.String(length=60), nullable=True),
        sa.Column("trigger_json", sa.Text(), nullable=False),
        sa.Column("group_key", sa.String(length=600), nullable=True),
        sa.Column("config_json", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.String(length=36), nullable=True),
        sa.Column("chat_id", sa.String(length=36), nullable=True),
        sa.Column("message_id", sa.String(length=36), nullable=True),
        sa.Column("retry_of", sa.String(length=36), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("due_at", sa.String(length=32), nullable=True),
        sa.Column("triggered_at", sa.String(length=32), nullable=False),
        sa.Column("completed_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["automation_id"],
            ["automations.id"],
            name=op.f("fk_automation_executions_automation_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_automation_executions_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automation_executions")),
        sa.UniqueConstraint("fire_key", name=op.f("uq_automation_executions_fire_key")),
    )
    op.create_index(
        "ix_automation_executions_due", "automation_executions", ["due_at"], unique=False
    )
    op.create_index(
        "ix_automation_executions_list",
        "automation_executions",
        ["automation_id", "triggered_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_automation_executions_workspace_id"),
        "automation_executions",
        ["workspace_id"],
        unique=False,
    )
    op.create_table(
        "automation_checks",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("execution_id", sa.String(length=36), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=False),
        sa.Column("check_run_id", sa.String(length=100), nullable=False),
        sa.Column("host", sa.String(length=16), nullable=False),
        sa.Column("host_ref", sa.Text(), nullable=True),
        sa.Column("repository", sa.String(length=500), nullable=False),
        sa.Column("subject", sa.String(length=600), nullable=False),
        sa.Column("head_sha", sa.String(length=64), nullable=True),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("conclusion", sa.String(length=16), nullable=True),
        sa.Column("title", sa.String(length=255), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("unsent", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.String(length=32), nullable=True),
        sa.Column("opened_at", sa.String(length=32), nullable=False),
        sa.Column("closed_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["execution_id"],
            ["automation_executions.id"],
            name=op.f("fk_automation_checks_execution_id"),
            ondelete="CASCADE",
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
