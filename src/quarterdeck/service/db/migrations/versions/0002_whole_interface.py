"""Users, what environments carry, canvas, files, credentials, webhooks"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("issuer", sa.String(length=200), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=True),
        sa.Column("name", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_users_issuer")),
    )
    op.create_table(
        "credentials",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("organization_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=True),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("key_sealed", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.Column("last_fetched_at", sa.String(length=32), nullable=True),
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
        sa.Column("user_id", sa.String(length=36), nullable=True),
        sa.Column("denied", sa.Boolean(), nullable=False),
        sa.Column("expires_at", sa.String(length=32), nullable=False),
        sa.Column("polled_at", sa.String(length=32), nullable=True),
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
        sa.Column("retry_at", sa.String(length=32), nullable=True),
        sa.Column("last_failure_at", sa.String(length=32), nullable=True),
        sa.Column("last_failure_reason", sa.Text(), nullable=True),
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
        "canvas_uploads",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=36), nullable=False),
        sa.Column("filename", sa.String(length=255), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.String(length=36), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("written_at", sa.String(length=32), nullable=True),
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
    op.add_column("chats", sa.Column("goal_json", sa.Text(), nullable=True))
    op.add_column("chats", sa.Column("deletion", sa.String(length=8), nullable=True))
    op.add_column("workspaces", sa.Column("user_id", sa.String(length=36), nullable=True))
    op.add_column("workspaces", sa.Column("auto_stop_minutes", sa.Integer(), nullable=True))
    op.add_column("workspaces", sa.Column("warm_pool_id", sa.String(length=36), nullable=True))
    op.add_column("workspaces", sa.Column("warm_generation", sa.Integer(), nullable=True))
    op.add_column("workspaces", sa.Column("warm_state", sa.String(length=16), nullable=True))
    op.add_column("workspaces", sa.Column("setup_json", sa.Text(), nullable=True))
    op.add_column("workspaces", sa.Column("rested_at", sa.String(length=32), nullable=True))
    op.add_column("workspaces", sa.Column("packed_at", sa.String(length=32), nullable=True))
