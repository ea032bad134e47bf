"""Workspaces, which the contract also calls replicas, and what hangs on them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from quarterdeck.service.db.tables.base import key, metadata, moment, organization, workspace

workspaces = Table(
    "workspaces",
    metadata,
    key(),
    organization(),
    Column("home_id", String(36)),
    Column("environment_id", String(36), ForeignKey("environments.id"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("status", String(16), nullable=False),
    Column("error", Text),
    Column("source", String(32), nullable=False),
    Column("coding_agent", String(100)),
    Column("model", String(200)),
    Column("lifecycle_policy", String(40), nullable=False),
    Column("config_json", Text),
    Column("size", String(16), nullable=False),
    Column("webhook_url", Text),
    Column("user_id", String(36)),
    Column("auto_stop_minutes", Integer),
    Column("warm_pool_id", String(36)),
    Column("warm_generation", Integer),
    Column("warm_state", String(16)),
    Column("setup_json", Text),
    Column("repositories_json", Text, nullable=False),
    Column("repository_statuses_json", Text, nullable=False),
    Column("engine_secret", String(64), nullable=False),
    Column("engine_version", String(40)),
    Column("boot_id", String(64)),
    Column("wake_wanted", Boolean, nullable=False),
    Column("next_event_index", BigInteger, nullable=False, default=1),
    Column("next_history_index", BigInteger, nullable=False, default=0),
    Column("journal_index", BigInteger, nullable=False, default=0),
    moment("created_at"),
    moment("last_activity_at", nullable=True),
    moment("rested_at", nullable=True),
    moment("packed_at", nullable=True),
    UniqueConstraint("organization_id", "name"),
)
"""`home_id` is the home that has its sandbox (`service.homes`). `user_id` is whose personal credentials it has. `rested_at` is when it was put to sleep or
archived. `packed_at` is set as long as its files are in an archive. `warm_state` is `warming` or `ready` while it waits in a pool, and
`testing` while a hook is tested in it: no list shows it then. `setup_json` tells what its
environment put into it at its last start."""

canvas_uploads = Table(
    "canvas_uploads",
    metadata,
    key(),
    workspace(),
    Column("filename", String(255), nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("message_id", String(36)),
    moment("created_at"),
    moment("written_at", nullable=True),
    Index("ix_canvas_uploads_workspace", "workspace_id", "created_at"),
)
"""Uploads that wait for their workspace; `content` is emptied when it was written."""

file_indexes = Table(
    "file_indexes",
    metadata,
    workspace(primary_key=True),
    Column("origin", String(16), primary_key=True),
    Column("files", LargeBinary, nullable=False),
    Column("truncated", Boolean, nullable=False),
    moment("indexed_at"),
)
"""`origin` is `engine` or `fallback`; `files` is compressed JSON."""

hook_logs = Table(
    "hook_logs",
    metadata,
    key(),
    workspace(),
    Column("position", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("log_json", Text, nullable=False),
    moment("executed_at"),
    UniqueConstraint("workspace_id", "position"),
)

previews = Table(
    "previews",
    metadata,
    workspace(primary_key=True),
    Column("port", Integer, primary_key=True, autoincrement=False),
    Column("token", String(64), nullable=False, unique=True),
    moment("created_at"),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    key(),
    organization(),
    Column("home_id", String(36)),
    Column("url", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    moment("next_at"),
    moment("created_at"),
)
"""Calls of webhooks that were not taken yet. They outlive their workspace.
`home_id` is the home whose service makes them."""
