"""The tables of the first release."""

import sqlalchemy as sa
from alembic import op

revision = "0.1.0"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of the first release."""
    op.create_table(
        "organizations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organizations")),
    )
    op.create_table(
        "services",
        sa.Column("home_id", sa.String(length=36), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("home_id", name=op.f("pk_services")),
    )
    op.create_table(
        "settings",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_settings")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("issuer", sa.String(length=200), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("email", sa.String(length=320)),
        sa.Column("name", sa.String(length=200)),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_users_issuer")),
    )
    op.create_table(
        "webhook_receipts",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("received_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_webhook_receipts")),
    )
    op.create_table(
        "agent_models",
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("agent", sa.String(length=100), nullable=False),
        sa.Column("models_json", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_agent_models_organization_id")
        ),
        sa.PrimaryKeyConstraint("organization_id", "agent", name=op.f("pk_agent_models")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36)),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("key_prefix", sa.String(length=16), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("last_used_at", sa.String(length=32)),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_api_keys_organization_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
    )
    op.create_table(
        "automation_events",
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36)),
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
        "credentials",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36)),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("key_sealed", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.Column("last_fetched_at", sa.String(length=32)),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_credentials_organization_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credentials")),
        sa.UniqueConstraint(
            "organization_id", "user_id", "provider", name=op.f("uq_credentials_organization_id")
        ),
    )
    op.create_index(
        "uq_credentials_shared",
        "credentials",
        ["organization_id", "provider"],
        unique=True,
        sqlite_where=sa.text("user_id IS NULL"),
        postgresql_where=sa.text("user_id IS NULL"),
    )
    op.create_table(
        "device_codes",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("device_hash", sa.String(length=64), nullable=False),
        sa.Column("user_code", sa.String(length=16), nullable=False),
        sa.Column("user_id", sa.String(length=36)),
        sa.Column("denied", sa.Boolean(), nullable=False),
        sa.Column("expires_at", sa.String(length=32), nullable=False),
        sa.Column("polled_at", sa.String(length=32)),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_device_codes_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device_codes")),
        sa.UniqueConstraint("device_hash", name=op.f("uq_device_codes_device_hash")),
        sa.UniqueConstraint("user_code", name=op.f("uq_device_codes_user_code")),
    )
    op.create_table(
        "members",
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_members_organization_id")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_members_user_id")),
        sa.PrimaryKeyConstraint("organization_id", "user_id", name=op.f("pk_members")),
    )
    op.create_table(
        "notification_targets",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("url_sealed", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_notification_targets_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_targets")),
        sa.UniqueConstraint(
            "organization_id", "user_id", name=op.f("uq_notification_targets_organization_id")
        ),
    )
    op.create_table(
        "repositories",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("default_branch", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_repositories_organization_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repositories")),
        sa.UniqueConstraint("organization_id", "url", name=op.f("uq_repositories_organization_id")),
    )
    op.create_table(
        "repository_sets",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_repository_sets_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repository_sets")),
        sa.UniqueConstraint(
            "organization_id", "name", name=op.f("uq_repository_sets_organization_id")
        ),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("home_id", sa.String(length=36)),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_webhook_deliveries_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
    )
    op.create_table(
        "environments",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36)),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("is_global", sa.Boolean(), nullable=False),
        sa.Column("repository_id", sa.String(length=36)),
        sa.Column("repository_set_id", sa.String(length=36)),
        sa.Column("system_prompt", sa.Text()),
        sa.Column("personal_preferences", sa.Text()),
        sa.Column("push", sa.String(length=16)),
        sa.Column("co_author", sa.String(length=200)),
        sa.Column("source_environment_id", sa.String(length=36)),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_environments_organization_id")
        ),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name=op.f("fk_environments_repository_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environments")),
    )
    op.create_index(
        "uq_environments_global",
        "environments",
        ["organization_id"],
        unique=True,
        sqlite_where=sa.text("is_global"),
        postgresql_where=sa.text("is_global"),
    )
    op.create_index(
        "uq_environments_personal_name",
        "environments",
        ["organization_id", "user_id", "name"],
        unique=True,
        sqlite_where=sa.text("user_id IS NOT NULL"),
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.create_index(
        "uq_environments_shared_name",
        "environments",
        ["organization_id", "name"],
        unique=True,
        sqlite_where=sa.text("user_id IS NULL"),
        postgresql_where=sa.text("user_id IS NULL"),
    )
    op.create_table(
        "repository_set_members",
        sa.Column("repository_set_id", sa.String(length=36), nullable=False),
        sa.Column("repository_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"],
            ["repositories.id"],
            name=op.f("fk_repository_set_members_repository_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["repository_set_id"],
            ["repository_sets.id"],
            name=op.f("fk_repository_set_members_repository_set_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "repository_set_id", "repository_id", name=op.f("pk_repository_set_members")
        ),
    )
    op.create_table(
        "automations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("environment_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36)),
        sa.Column("created_by", sa.String(length=36)),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("triggers_json", sa.Text(), nullable=False),
        sa.Column("trigger_types", sa.String(length=200), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("debounce_seconds", sa.Integer()),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", sa.Text()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("webhook_token_sealed", sa.Text()),
        sa.Column("webhook_token_hash", sa.String(length=64)),
        sa.Column("webhook_secret_sealed", sa.Text()),
        sa.Column("cron_expression", sa.String(length=200)),
        sa.Column("cron_timezone", sa.String(length=100)),
        sa.Column("cron_next_fire_at", sa.String(length=32)),
        sa.Column("workspace_lifecycle_policy", sa.String(length=40), nullable=False),
        sa.Column("workspace_auto_stop_minutes", sa.Integer()),
        sa.Column("workspace_size", sa.String(length=16)),
        sa.Column("trust", sa.String(length=16), server_default="members", nullable=False),
        sa.Column("on_new_event", sa.String(length=16), server_default="cancel", nullable=False),
        sa.Column("debounce_max_seconds", sa.Integer()),
        sa.Column("max_minutes", sa.Integer()),
        sa.Column("concurrency", sa.Integer()),
        sa.Column("retention_days", sa.Integer(), server_default="90", nullable=False),
        sa.Column("config_json", sa.Text(), nullable=False),
        sa.Column("agent_provider", sa.String(length=100)),
        sa.Column("model", sa.String(length=200)),
        sa.Column("thinking_level", sa.String(length=16)),
        sa.Column("plan_mode", sa.Boolean(), nullable=False),
        sa.Column("goal_mode", sa.Boolean()),
        sa.Column("fast_mode", sa.Boolean()),
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
        "environment_files",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("environment_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["environment_id"],
            ["environments.id"],
            name=op.f("fk_environment_files_environment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_environment_files_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment_files")),
    )
    op.create_table(
        "environment_hooks",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("environment_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["environment_id"],
            ["environments.id"],
            name=op.f("fk_environment_hooks_environment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_environment_hooks_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment_hooks")),
        sa.UniqueConstraint(
            "environment_id", "kind", "version", name=op.f("uq_environment_hooks_environment_id")
        ),
    )
    op.create_table(
        "environment_mcps",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("environment_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("transport", sa.String(length=16), nullable=False),
        sa.Column("config_sealed", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["environment_id"],
            ["environments.id"],
            name=op.f("fk_environment_mcps_environment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_environment_mcps_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment_mcps")),
        sa.UniqueConstraint(
            "environment_id", "name", name=op.f("uq_environment_mcps_environment_id")
        ),
    )
    op.create_table(
        "environment_skills",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("environment_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("slug", sa.String(length=200), nullable=False),
        sa.Column("source", sa.String(length=1000), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["environment_id"],
            ["environments.id"],
            name=op.f("fk_environment_skills_environment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_environment_skills_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment_skills")),
        sa.UniqueConstraint(
            "environment_id", "slug", name=op.f("uq_environment_skills_environment_id")
        ),
        sa.UniqueConstraint("environment_id", "source", name="uq_environment_skills_source"),
    )
    op.create_table(
        "environment_variables",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("environment_id", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("value_sealed", sa.Text(), nullable=False),
        sa.Column("personal_override_allowed", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["environment_id"],
            ["environments.id"],
            name=op.f("fk_environment_variables_environment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_environment_variables_organization_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment_variables")),
        sa.UniqueConstraint(
            "environment_id", "key", name=op.f("uq_environment_variables_environment_id")
        ),
    )
    op.create_table(
        "warm_pools",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("environment_id", sa.String(length=36), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("target_size", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("retry_at", sa.String(length=32)),
        sa.Column("last_failure_at", sa.String(length=32)),
        sa.Column("last_failure_reason", sa.Text()),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["environment_id"],
            ["environments.id"],
            name=op.f("fk_warm_pools_environment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_warm_pools_organization_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_warm_pools")),
        sa.UniqueConstraint("environment_id", name=op.f("uq_warm_pools_environment_id")),
    )
    op.create_table(
        "workspaces",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("home_id", sa.String(length=36)),
        sa.Column("environment_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("source", sa.String(length=32), nullable=False),
        sa.Column("coding_agent", sa.String(length=100)),
        sa.Column("model", sa.String(length=200)),
        sa.Column("lifecycle_policy", sa.String(length=40), nullable=False),
        sa.Column("config_json", sa.Text()),
        sa.Column("size", sa.String(length=16), nullable=False),
        sa.Column("webhook_url", sa.Text()),
        sa.Column("user_id", sa.String(length=36)),
        sa.Column("auto_stop_minutes", sa.Integer()),
        sa.Column("warm_pool_id", sa.String(length=36)),
        sa.Column("warm_generation", sa.Integer()),
        sa.Column("warm_state", sa.String(length=16)),
        sa.Column("setup_json", sa.Text()),
        sa.Column("push", sa.String(length=16)),
        sa.Column("forked_from", sa.String(length=36)),
        sa.Column("repositories_json", sa.Text(), nullable=False),
        sa.Column("repository_statuses_json", sa.Text(), nullable=False),
        sa.Column("engine_secret", sa.String(length=64), nullable=False),
        sa.Column("engine_version", sa.String(length=40)),
        sa.Column("boot_id", sa.String(length=64)),
        sa.Column("wake_wanted", sa.Boolean(), nullable=False),
        sa.Column("next_event_index", sa.BigInteger(), nullable=False),
        sa.Column("next_history_index", sa.BigInteger(), nullable=False),
        sa.Column("journal_index", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("last_activity_at", sa.String(length=32)),
        sa.Column("rested_at", sa.String(length=32)),
        sa.Column("packed_at", sa.String(length=32)),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environments.id"], name=op.f("fk_workspaces_environment_id")
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_workspaces_organization_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspaces")),
        sa.UniqueConstraint("organization_id", "name", name=op.f("uq_workspaces_organization_id")),
    )
    op.create_table(
        "automation_executions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=False),
        sa.Column("fire_key", sa.String(length=200)),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("trigger_type", sa.String(length=16), nullable=False),
        sa.Column("trigger_event", sa.String(length=60)),
        sa.Column("trigger_json", sa.Text(), nullable=False),
        sa.Column("group_key", sa.String(length=600)),
        sa.Column("config_json", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.String(length=36)),
        sa.Column("chat_id", sa.String(length=36)),
        sa.Column("message_id", sa.String(length=36)),
        sa.Column("retry_of", sa.String(length=36)),
        sa.Column("error", sa.Text()),
        sa.Column("reason", sa.String(length=20)),
        sa.Column("queue_key", sa.String(length=600)),
        sa.Column("author", sa.String(length=200)),
        sa.Column("approval", sa.String(length=16)),
        sa.Column("approved_by", sa.String(length=36)),
        sa.Column("approved_at", sa.String(length=32)),
        sa.Column("due_at", sa.String(length=32)),
        sa.Column("triggered_at", sa.String(length=32), nullable=False),
        sa.Column("started_at", sa.String(length=32)),
        sa.Column("completed_at", sa.String(length=32)),
        sa.Column("stop_due_at", sa.String(length=32)),
        sa.Column("published_json", sa.Text()),
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
        "ix_automation_executions_completed",
        "automation_executions",
        ["automation_id", "completed_at"],
        unique=False,
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
        "ix_automation_executions_open",
        "automation_executions",
        ["automation_id", "status"],
        unique=False,
    )
    op.create_index(
        "ix_automation_executions_stop_due", "automation_executions", ["stop_due_at"], unique=False
    )
    op.create_index(
        op.f("ix_automation_executions_workspace_id"),
        "automation_executions",
        ["workspace_id"],
        unique=False,
    )
    op.create_table(
        "automation_skips",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=False),
        sa.Column("reason", sa.String(length=20), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_at", sa.String(length=32), nullable=False),
        sa.Column("last_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["automation_id"],
            ["automations.id"],
            name=op.f("fk_automation_skips_automation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automation_skips")),
    )
    op.create_index(
        "ix_automation_skips_list", "automation_skips", ["automation_id", "last_at"], unique=False
    )
    op.create_table(
        "canvas_uploads",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=36), nullable=False),
        sa.Column("filename", sa.String(length=255), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.String(length=36)),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("written_at", sa.String(length=32)),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_canvas_uploads_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_canvas_uploads")),
    )
    op.create_index(
        "ix_canvas_uploads_workspace",
        "canvas_uploads",
        ["workspace_id", "created_at"],
        unique=False,
    )
    op.create_table(
        "chats",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=36), nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("title", sa.String(length=100)),
        sa.Column("parent_chat_id", sa.String(length=36)),
        sa.Column("processing", sa.Boolean(), nullable=False),
        sa.Column("awaiting_input", sa.Boolean(), nullable=False),
        sa.Column("last_message_text", sa.Text()),
        sa.Column("goal_json", sa.Text()),
        sa.Column("plan_ready", sa.Boolean()),
        sa.Column("processing_since", sa.String(length=32)),
        sa.Column("turn_failed", sa.Boolean()),
        sa.Column("deletion", sa.String(length=8)),
        sa.Column("notice", sa.Text()),
        sa.Column("next_history_index", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_chats_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chats")),
    )
    op.create_index("ix_chats_workspace", "chats", ["workspace_id", "created_at"], unique=False)
    op.create_table(
        "events",
        sa.Column("workspace_id", sa.String(length=36), nullable=False),
        sa.Column("index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("ts", sa.String(length=32), nullable=False),
        sa.Column("type", sa.String(length=40), nullable=False),
        sa.Column("payload_json", sa.Text(), nullable=False),
        sa.Column("chat_id", sa.String(length=36)),
        sa.Column("history_index", sa.BigInteger()),
        sa.Column("chat_history_index", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_events_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "index", name=op.f("pk_events")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_events_chat_history", "events", ["chat_id", "chat_history_index"], unique=True
    )
    op.create_index("ix_events_history", "events", ["workspace_id", "history_index"], unique=True)
    op.create_table(
        "file_indexes",
        sa.Column("workspace_id", sa.String(length=36), nullable=False),
        sa.Column("origin", sa.String(length=16), nullable=False),
        sa.Column("files", sa.LargeBinary(), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("indexed_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_file_indexes_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "origin", name=op.f("pk_file_indexes")),
    )
    op.create_table(
        "hook_logs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("log_json", sa.Text(), nullable=False),
        sa.Column("executed_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_hook_logs_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hook_logs")),
        sa.UniqueConstraint("workspace_id", "position", name=op.f("uq_hook_logs_workspace_id")),
    )
    op.create_table(
        "previews",
        sa.Column("workspace_id", sa.String(length=36), nullable=False),
        sa.Column("port", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_previews_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "port", name=op.f("pk_previews")),
        sa.UniqueConstraint("token", name=op.f("uq_previews_token")),
    )
    op.create_table(
        "uncommitted_changes",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36)),
        sa.Column("workspace_id", sa.String(length=36)),
        sa.Column("repository_id", sa.String(length=36)),
        sa.Column("base_commit", sa.String(length=64), nullable=False),
        sa.Column("commit_id", sa.String(length=64), nullable=False),
        sa.Column("pack", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_uncommitted_changes_organization_id"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_uncommitted_changes_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uncommitted_changes")),
    )
    op.create_index(
        "ix_uncommitted_changes_workspace",
        "uncommitted_changes",
        ["workspace_id", "created_at"],
        unique=False,
    )
    op.create_table(
        "automation_checks",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("execution_id", sa.String(length=36)),
        sa.Column("automation_id", sa.String(length=36), nullable=False),
        sa.Column("check_run_id", sa.String(length=100), nullable=False),
        sa.Column("host", sa.String(length=16), nullable=False),
        sa.Column("host_ref", sa.String(length=100)),
        sa.Column("host_asked", sa.Boolean(), nullable=False),
        sa.Column("repository", sa.String(length=500), nullable=False),
        sa.Column("subject", sa.String(length=600), nullable=False),
        sa.Column("head_sha", sa.String(length=64)),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column("conclusion", sa.String(length=16)),
        sa.Column("title", sa.String(length=255)),
        sa.Column("summary", sa.Text()),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("unsent", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.String(length=32)),
        sa.Column("held_by", sa.String(length=36)),
        sa.Column("held_until", sa.String(length=32)),
        sa.Column("opened_at", sa.String(length=32), nullable=False),
        sa.Column("closed_at", sa.String(length=32)),
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
        op.f("ix_automation_checks_next_at"), "automation_checks", ["next_at"], unique=False
    )
    op.create_index(
        op.f("ix_automation_checks_subject"), "automation_checks", ["subject"], unique=False
    )
    op.create_table(
        "messages",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=36), nullable=False),
        sa.Column("chat_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("delivery_json", sa.Text(), nullable=False),
        sa.Column("sender_user_id", sa.String(length=36)),
        sa.Column("sender_email", sa.String(length=320)),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["chat_id"], ["chats.id"], name=op.f("fk_messages_chat_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_messages_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
    )
    op.create_index("ix_messages_chat", "messages", ["chat_id", "position"], unique=False)
    op.create_index(
        "ix_messages_undelivered", "messages", ["workspace_id", "state", "position"], unique=False
    )
