"""Automations, their runs, and the checks of these."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, String, Table, Text

from quarterdeck.service.db.tables.core import key, metadata, moment, organization

automations = Table(
    "automations",
    metadata,
    key(),
    organization(),
    Column("environment_id", String(36), ForeignKey("environments.id"), nullable=False),
    Column("user_id", String(36)),
    Column("created_by", String(36)),
    Column("name", String(200), nullable=False),
    Column("description", Text),
    Column("triggers_json", Text, nullable=False),
    Column("trigger_types", String(200), nullable=False),
    Column("prompt", Text, nullable=False),
    Column("debounce_seconds", Integer),
    Column("enabled", Boolean, nullable=False),
    Column("disabled_reason", Text),
    Column("failures", Integer, nullable=False),
    Column("webhook_token_sealed", Text),
    Column("webhook_token_hash", String(64), unique=True),
    Column("webhook_secret_sealed", Text),
    Column("cron_expression", String(200)),
    Column("cron_timezone", String(100)),
    moment("cron_next_fire_at", nullable=True),
    Column("workspace_lifecycle_policy", String(40), nullable=False),
    Column("workspace_auto_stop_minutes", Integer),
    Column("workspace_size", String(16)),
    Column("trust", String(16), nullable=False, server_default="members"),
    Column("on_new_event", String(16), nullable=False, server_default="cancel"),
    Column("debounce_max_seconds", Integer),
    Column("max_minutes", Integer),
    Column("concurrency", Integer),
    Column("retention_days", Integer, nullable=False, server_default="90"),
    Column("config_json", Text, nullable=False),
    Column("agent_provider", String(100)),
    Column("model", String(200)),
    Column("thinking_level", String(16)),
    Column("plan_mode", Boolean, nullable=False),
    Column("goal_mode", Boolean),
    Column("fast_mode", Boolean),
    moment("created_at"),
    moment("updated_at"),
    Index("ix_automations_next_fire", "cron_next_fire_at"),
    Index("ix_automations_list", "organization_id", "created_at"),
)
"""`trigger_types` is like ` cron host-a `: each type between spaces. `cron_next_fire_at` is null
while it is switched off. `failures` counts consecutive ones. `webhook_secret_sealed` is set when
calls of its webhook have to be signed."""

automation_executions = Table(
    "automation_executions",
    metadata,
    key(),
    organization(),
    Column(
        "automation_id",
        String(36),
        ForeignKey("automations.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("fire_key", String(200), unique=True),
    Column("status", String(16), nullable=False),
    Column("trigger_type", String(16), nullable=False),
    Column("trigger_event", String(60)),
    Column("trigger_json", Text, nullable=False),
    Column("group_key", String(600)),
    Column("config_json", Text, nullable=False),
    Column("workspace_id", String(36), index=True),
    Column("chat_id", String(36)),
    Column("message_id", String(36)),
    Column("retry_of", String(36)),
    Column("error", Text),
    Column("reason", String(20)),
    Column("queue_key", String(600)),
    Column("author", String(200)),
    Column("approval", String(16)),
    Column("approved_by", String(36)),
    moment("approved_at", nullable=True),
    moment("due_at", nullable=True),
    moment("triggered_at"),
    moment("started_at", nullable=True),
    moment("completed_at", nullable=True),
    moment("stop_due_at", nullable=True),
    Column("published_json", Text),
    Index("ix_automation_executions_list", "automation_id", "triggered_at"),
    Index("ix_automation_executions_due", "due_at"),
    Index("ix_automation_executions_stop_due", "stop_due_at"),
    Index("ix_automation_executions_completed", "automation_id", "completed_at"),
    Index("ix_automation_executions_open", "automation_id", "status"),
)
"""`fire_key` names the fire that made it, so that no fire starts two. `due_at` is set while it is
pending and does not wait for approval. `trigger_json` comes from `runs.trigger_json`. Its
workspace may have been deleted, and is then still named.

`approval` is `awaited` or `given`, null when none is needed; `author` is who wrote the pull request,
by the host's id. Runs with the same `queue_key` run one after another. `stop_due_at` is set once it
was ended while its agent worked, until that work is stopped; and once it succeeded, until its work is
published, where that is configured. `published_json` is the result."""

automation_skips = Table(
    "automation_skips",
    metadata,
    key(),
    Column(
        "automation_id",
        String(36),
        ForeignKey("automations.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("reason", String(20), nullable=False),
    Column("count", Integer, nullable=False),
    moment("first_at"),
    moment("last_at"),
    Index("ix_automation_skips_list", "automation_id", "last_at"),
)
"""Moments of schedules that made no run; one row for consecutive ones with the same reason."""

automation_checks = Table(
    "automation_checks",
    metadata,
    key(),
    organization(),
    Column(
        "execution_id",
        String(36),
        ForeignKey("automation_executions.id", ondelete="SET NULL"),
        unique=True,
    ),
    Column("automation_id", String(36), nullable=False),
    Column("check_run_id", String(100), nullable=False, index=True),
    Column("host", String(16), nullable=False),
    Column("host_ref", String(100)),
    Column("host_asked", Boolean, nullable=False),
    Column("repository", String(500), nullable=False),
    Column("subject", String(600), nullable=False, index=True),
    Column("head_sha", String(64)),
    Column("name", String(255), nullable=False),
    Column("token_hash", String(64), nullable=False),
    Column("status", String(16), nullable=False),
    Column("superseded", Boolean, nullable=False),
    Column("conclusion", String(16)),
    Column("title", String(255)),
    Column("summary", Text),
    Column("revision", Integer, nullable=False),
    Column("unsent", Boolean, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", String(32), index=True),
    Column("held_by", String(36)),
    moment("held_until", nullable=True),
    moment("opened_at"),
    moment("closed_at", nullable=True),
)
"""`host` is `host-a`, `host-b` or `local`; `host_ref` is the id of the host's own record, and
`host_asked` says that the host was requested to create one, so there may be one without it.
`subject` names automation, repository and pull request: a later run of it supersedes an earlier.
`revision` counts its changes. `unsent` says that the host does not know the latest; `next_at` when
that is tried, null when it was given up. `held_by` is the home whose service is reporting it now,
and `held_until`, by the database server's clock, keeps the others from it. When its run is removed
a check stays, without it, until the host is notified of the end."""

webhook_receipts = Table(
    "webhook_receipts",
    metadata,
    Column("digest", String(64), primary_key=True),
    moment("received_at"),
)
"""Signed webhooks that were accepted, so that one that somebody else replays is refused."""

automation_events = Table(
    "automation_events",
    metadata,
    Column("index", Integer, primary_key=True),
    organization(),
    Column("user_id", String(36)),
    Column("id", String(36), nullable=False),
    Column("ts", String(32), nullable=False),
    Column("type", String(40), nullable=False),
    Column("payload_json", Text, nullable=False),
    Index("ix_automation_events_ts", "ts"),
)
"""Recent changes, for watching clients. `user_id` is set for a personal automation."""
