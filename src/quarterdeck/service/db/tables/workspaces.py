"""Tables of workspaces, chats and environments."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from quarterdeck.service.db.tables.core import key, metadata, moment, organization, workspace

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
    Column("webhook_url_sealed", Text),
    Column("user_id", String(36)),
    Column("auto_stop_minutes", Integer),
    Column("warm_pool_id", String(36)),
    Column("warm_generation", Integer),
    Column("warm_state", String(16)),
    Column("setup_json", Text),
    Column("push", String(16)),
    Column("permission_policy", String(8)),
    Column("permission_rules_json", Text),
    Column("cost_limit", Float),
    Column("forked_from", String(36)),
    Column("driver", String(16), nullable=False, server_default="process"),
    Column("lease", Integer, nullable=False, server_default="0"),
    Column("clones_json", Text),
    Column("port_block", Integer),
    Column("repositories_json", Text, nullable=False),
    Column("repository_statuses_json", Text, nullable=False),
    Column("engine_secret_sealed", Text, nullable=False, server_default=""),
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
"""`home_id` is the home that has its sandbox (`service.ownership`). `user_id` is the user whose
personal credentials it has. `rested_at` is when it was put to sleep or archived. `packed_at` is set
while its files are in an archive, or are being packed from a volume. `warm_state` is `warming` or `ready` while it waits in a pool,
and `testing` while a hook is tested in it: no list shows it then. `setup_json` is the environment's
setup of its last start. `push` is its own push policy, if a person chose one, `permission_policy` its own
permission policy; `permission_rules_json` are its own rules, `cost_limit` its own limit in dollars (0: none). `forked_from` is the
workspace whose files it gets, until it has them. `driver` is the sandbox driver that made it, which it
keeps. `lease` counts how often another home took it over, `clones_json` describes the
repositories in its container to that home (`service.fleet.leases`). `port_block` counts the blocks of ports
(`wire.inside`) before its own; null until it was started, and in containers, which have a network of their own."""

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

uncommitted_changes = Table(
    "uncommitted_changes",
    metadata,
    key(),
    organization(),
    Column("user_id", String(36)),
    Column("workspace_id", String(36), ForeignKey("workspaces.id", ondelete="CASCADE")),
    Column("repository_id", String(36)),
    Column("base_commit", String(64), nullable=False),
    Column("commit_id", String(64), nullable=False),
    Column("pack", LargeBinary, nullable=False),
    moment("created_at"),
    Index("ix_uncommitted_changes_workspace", "workspace_id", "created_at"),
)
"""Uploads that replicas start with; `workspace_id` and `repository_id` are set when one is created.
They are removed when the replica has its files."""

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
    Column("user_id", String(36)),
    Column("url_sealed", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    moment("next_at"),
    moment("created_at"),
)
"""Calls of webhooks that were not accepted yet. They outlive their workspace.
`home_id` is the home whose service makes them, `user_id` the user of the workspace."""


chats = Table(
    "chats",
    metadata,
    key(),
    workspace(),
    Column("provider", String(100), nullable=False),
    Column("title", String(100)),
    Column("parent_chat_id", String(36)),
    Column("processing", Boolean, nullable=False),
    Column("awaiting_input", Boolean, nullable=False),
    Column("last_message_text", Text),
    Column("goal_json", Text),
    Column("plan_ready", Boolean),
    Column("processing_since", String(32)),
    Column("turn_failed", Boolean),
    Column("permission_mode_json", Text),
    Column("model_json", Text),
    Column("thinking_level_json", Text),
    Column("settings_json", Text),
    Column("chosen_json", Text),
    Column("deletion", String(8)),
    Column("notice", Text),
    Column("next_history_index", BigInteger, nullable=False, default=0),
    Column("searched_index", BigInteger, nullable=False, server_default="0"),
    moment("created_at"),
    moment("updated_at"),
    Index("ix_chats_workspace", "workspace_id", "created_at"),
)
"""`deletion` is null while the chat exists; then asked -> logged (its end is in the log) -> gone
(from the engine too). The row stays: its events do, and they count in its history. `plan_ready` is
null where no engine has reported it, `turn_failed` also while the newest message has no result.
`settings_json` is what the agent offers, with all choices; `chosen_json` the settings that were chosen
without an engine, until one has them.
`notice` is a text for the agent before its next message, until the engine has it.
`searched_index` is the place in the chat's history up to which `search_texts` has it."""

messages = Table(
    "messages",
    metadata,
    key(),
    workspace(),
    Column("chat_id", String(36), ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("delivery_json", Text, nullable=False),
    Column("sender_user_id", String(36)),
    Column("sender_email", String(320)),
    moment("created_at"),
    Index("ix_messages_chat", "chat_id", "position"),
    Index("ix_messages_undelivered", "workspace_id", "state", "position"),
)
"""`state` moves accepted -> delivered -> started -> done; `canceled` from the first two."""


environments = Table(
    "environments",
    metadata,
    key(),
    organization(),
    Column("user_id", String(36)),
    Column("name", String(200), nullable=False),
    Column("description", Text),
    Column("is_global", Boolean, nullable=False),
    Column("repository_id", String(36), ForeignKey("repositories.id")),
    Column("repository_set_id", String(36)),
    Column("system_prompt", Text),
    Column("personal_preferences", Text),
    Column("push", String(16)),
    Column("co_author", String(200)),
    Column("permission_policy", String(8)),
    Column("permission_rules_json", Text),
    Column("cost_limit", Float),
    Column("source_environment_id", String(36)),
    moment("created_at"),
    moment("updated_at"),
)

_shared = environments.c.user_id.is_(None)
_personal = environments.c.user_id.is_not(None)
_for_all = text("is_global")
# A plain constraint would allow two shared ones of one name: null is never equal to null.
Index(
    "uq_environments_shared_name",
    environments.c.organization_id,
    environments.c.name,
    unique=True,
    sqlite_where=_shared,
    postgresql_where=_shared,
)
Index(
    "uq_environments_personal_name",
    environments.c.organization_id,
    environments.c.user_id,
    environments.c.name,
    unique=True,
    sqlite_where=_personal,
    postgresql_where=_personal,
)
Index(
    "uq_environments_global",
    environments.c.organization_id,
    unique=True,
    sqlite_where=_for_all,
    postgresql_where=_for_all,
)


def _environment() -> Column[str]:
    return Column(
        "environment_id",
        String(36),
        ForeignKey("environments.id", ondelete="CASCADE"),
        nullable=False,
    )


environment_variables = Table(
    "environment_variables",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("key", String(255), nullable=False),
    Column("value_sealed", Text, nullable=False),
    Column("personal_override_allowed", Boolean, nullable=False),
    moment("created_at"),
    moment("updated_at"),
    UniqueConstraint("environment_id", "key"),
)

environment_files = Table(
    "environment_files",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("name", String(255), nullable=False),
    Column("path", Text, nullable=False),
    Column("content_sealed", Text, nullable=False),
    moment("created_at"),
    moment("updated_at"),
)

environment_skills = Table(
    "environment_skills",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("name", String(200), nullable=False),
    Column("slug", String(200), nullable=False),
    Column("source", String(1000), nullable=False),
    moment("created_at"),
    moment("updated_at"),
    UniqueConstraint("environment_id", "slug"),
    UniqueConstraint("environment_id", "source", name="uq_environment_skills_source"),
)

environment_mcps = Table(
    "environment_mcps",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("name", String(64), nullable=False),
    Column("transport", String(16), nullable=False),
    Column("config_sealed", Text, nullable=False),
    moment("created_at"),
    moment("updated_at"),
    UniqueConstraint("environment_id", "name"),
)
"""A server's configuration is sealed as a whole: headers and variables in it may be secrets."""

environment_hooks = Table(
    "environment_hooks",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("kind", String(16), nullable=False),
    Column("version", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("is_active", Boolean, nullable=False),
    moment("created_at"),
    UniqueConstraint("environment_id", "kind", "version"),
)
"""Warm hooks and start hooks (`kind`), every version that was saved."""

warm_pools = Table(
    "warm_pools",
    metadata,
    key(),
    organization(),
    _environment(),
    Column("enabled", Boolean, nullable=False),
    Column("target_size", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    moment("retry_at", nullable=True),
    moment("last_failure_at", nullable=True),
    Column("last_failure_reason", Text),
    moment("updated_at"),
    UniqueConstraint("environment_id"),
)
