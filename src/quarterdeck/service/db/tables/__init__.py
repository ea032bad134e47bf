"""The schema (SQLAlchemy Core). Changed only together with a migration.

Ids are stored as 36-character text and moments as ISO text in UTC, so that both databases give
back the same values and sort alike. JSON is stored as text and decoded by who reads it: most reads
pass it on unchanged. Columns named `*_sealed` are encrypted (`service.vault`).
"""

from quarterdeck.service.db.tables.automations import (
    automation_checks,
    automation_events,
    automation_executions,
    automations,
    webhook_receipts,
)
from quarterdeck.service.db.tables.base import metadata
from quarterdeck.service.db.tables.chats import chats, messages
from quarterdeck.service.db.tables.credentials import credentials, notification_targets
from quarterdeck.service.db.tables.environment_parts import (
    environment_files,
    environment_hooks,
    environment_mcps,
    environment_skills,
    environment_variables,
    warm_pools,
)
from quarterdeck.service.db.tables.environments import environments
from quarterdeck.service.db.tables.events import events
from quarterdeck.service.db.tables.identity import (
    api_keys,
    device_codes,
    members,
    organizations,
    users,
)
from quarterdeck.service.db.tables.repositories import (
    repositories,
    repository_set_members,
    repository_sets,
)
from quarterdeck.service.db.tables.services import services
from quarterdeck.service.db.tables.settings import settings
from quarterdeck.service.db.tables.workspaces import (
    canvas_uploads,
    file_indexes,
    hook_logs,
    previews,
    webhook_deliveries,
    workspaces,
)

__all__ = [
    "api_keys",
    "automation_checks",
    "automation_events",
    "automation_executions",
    "automations",
    "canvas_uploads",
    "chats",
    "credentials",
    "device_codes",
    "environment_files",
    "environment_hooks",
    "environment_mcps",
    "environment_skills",
    "environment_variables",
    "environments",
    "events",
    "file_indexes",
    "hook_logs",
    "members",
    "messages",
    "metadata",
    "notification_targets",
    "organizations",
    "previews",
    "repositories",
    "repository_set_members",
    "repository_sets",
    "services",
    "settings",
    "users",
    "warm_pools",
    "webhook_deliveries",
    "webhook_receipts",
    "workspaces",
]
