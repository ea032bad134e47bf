"""Who may do what: every operation, and every kind of caller.

`ACCESS` gives each operation a rule; `RULES` says what a rule answers to each kind of caller. Paths
are written without the names of their parameters, and `/v1/workspaces` as `/v1/replica`.
"""

import re

PASS = "-"
"""The caller gets past the door; what follows depends on what is asked for."""

CALLERS = (
    "organization key",
    "admin's key",
    "member's key",
    "admin's token",
    "member's token",
    "token, no header",
    "token, bad header",
    "token, foreign header",
    "stranger's token",
    "engine",
)
"""Who shows something valid. Nobody else (`NOBODIES`) gets in anywhere but at PUBLIC, and at SIGNED
neither one nor the other: there only the signature of the body counts."""

NOBODIES = (
    "no key",
    "bad key",
    "deleted key",
    "bad token",
    "expired token",
    "no bearer",
    "owner's socket, no key",
    "inside, organization key",
    "inside, admin's token",
    "engine of another workspace",
    "engine without a workspace",
    "engine with a bad secret",
)

_U, _J, _A, _F = "UNAUTHORIZED", "JWT_REQUIRED", "API_KEY_REQUIRED", "FORBIDDEN"
_N, _R, _H, _B = "USER_REQUIRED", "NOT_FOUND", "ORG_HEADER_REQUIRED", "INVALID_REQUEST"

_TABLE = {
    #              org   adm   mem   adm t mem t none  bad  foreign stranger engine
    "PUBLIC": (PASS, PASS, PASS, PASS, PASS, PASS, PASS, PASS, PASS, PASS),
    "MEMBERS": (PASS, PASS, PASS, PASS, PASS, _H, _B, _R, _R, _U),
    "KEYS": (PASS, PASS, PASS, _A, _A, _A, _A, _A, _A, _U),
    "ADMINS": (PASS, PASS, _F, PASS, _F, _H, _B, _R, _R, _U),
    "USERS": (_N, PASS, PASS, PASS, PASS, _H, _B, _R, _R, _U),
    "SELF": (_N, PASS, PASS, PASS, PASS, PASS, _B, _R, _R, _U),
    "TOKENS": (_J, _J, _J, PASS, PASS, PASS, _B, _R, _R, _U),
    "ANYBODY": (PASS, PASS, PASS, PASS, PASS, PASS, _B, _R, _R, _U),
    "SIGNED": (_U, _U, _U, _U, _U, _U, _U, _U, _U, _U),
    "INSIDE": (_U, _U, _U, _U, _U, _U, _U, _U, _U, PASS),
    "OWNER": (_F, _F, _F, _F, _F, _F, _B, _R, _R, _U),
}
RULES = {rule: dict(zip(CALLERS, answers, strict=True)) for rule, answers in _TABLE.items()}

_LISTED = """
PUBLIC   GET /v1/health
PUBLIC   GET /openapi.json
PUBLIC   POST /v1/auth/device
PUBLIC   POST /v1/auth/token
PUBLIC   GET /v1/auth/verify
SIGNED   POST /v1/host-a/webhook
SIGNED   POST /v1/host-b/webhook
OWNER    POST /v1/auth/approve
SELF     GET /v1/user/profile
TOKENS   POST /v1/user/api-keys
SELF     GET /v1/user/api-keys
SELF     DELETE /v1/user/api-keys/{}
ANYBODY  GET /v1/organizations
ADMINS   POST /v1/organization/api-keys
ADMINS   GET /v1/organization/api-keys
ADMINS   DELETE /v1/organization/api-keys/{}
USERS    GET /v1/{}/user/credentials
USERS    POST /v1/{}/user/credentials
USERS    DELETE /v1/{}/user/credentials
ADMINS   GET /v1/{}/credentials
ADMINS   POST /v1/{}/credentials
ADMINS   DELETE /v1/{}/credentials
USERS    GET /v1/chatapp/user/connection
USERS    POST /v1/chatapp/user/connection
USERS    DELETE /v1/chatapp/user/connection
USERS    POST /v1/chatapp/user/connection/test
ADMINS   GET /v1/organization/webhook-secret
ADMINS   POST /v1/organization/webhook-secret/rotate
MEMBERS  GET /v1/services
MEMBERS  GET /v1/agents
MEMBERS  GET /v1/agents/{}/models
MEMBERS  GET /v1/replica/repositories
ADMINS   POST /v1/replica/repositories
ADMINS   DELETE /v1/replica/repositories/{}
MEMBERS  GET /v1/replica/repositories/{}/branches
MEMBERS  GET /v1/replica/repository-sets
ADMINS   POST /v1/replica/repository-sets
MEMBERS  GET /v1/replica/repository-sets/{}
ADMINS   PATCH /v1/replica/repository-sets/{}
ADMINS   DELETE /v1/replica/repository-sets/{}
MEMBERS  GET /v1/environments
MEMBERS  POST /v1/environments
MEMBERS  GET /v1/environments/{}
MEMBERS  PATCH /v1/environments/{}
MEMBERS  DELETE /v1/environments/{}
MEMBERS  GET /v1/environments/{}/variables
MEMBERS  POST /v1/environments/{}/variables
MEMBERS  PATCH /v1/environments/{}/variables/{}
MEMBERS  DELETE /v1/environments/{}/variables/{}
MEMBERS  GET /v1/environments/{}/files
MEMBERS  POST /v1/environments/{}/files
MEMBERS  PATCH /v1/environments/{}/files/{}
MEMBERS  DELETE /v1/environments/{}/files/{}
MEMBERS  GET /v1/environments/{}/skills
MEMBERS  POST /v1/environments/{}/skills
MEMBERS  DELETE /v1/environments/{}/skills/{}
MEMBERS  GET /v1/environment-skills/search
MEMBERS  GET /v1/environments/{}/mcps
MEMBERS  POST /v1/environments/{}/mcps
MEMBERS  PATCH /v1/environments/{}/mcps/{}
MEMBERS  DELETE /v1/environments/{}/mcps/{}
MEMBERS  GET /v1/environments/{}/warm-hooks
MEMBERS  POST /v1/environments/{}/warm-hooks/save
MEMBERS  POST /v1/environments/{}/warm-hooks/test
MEMBERS  POST /v1/environments/{}/warm-hooks/save-test
MEMBERS  GET /v1/environments/{}/start-hooks
MEMBERS  POST /v1/environments/{}/start-hooks/save
MEMBERS  POST /v1/environments/{}/start-hooks/test
MEMBERS  POST /v1/environments/{}/start-hooks/test/stream
MEMBERS  POST /v1/environments/{}/warm-hooks/test/stream
MEMBERS  PUT /v1/environments/{}/warm-pools
MEMBERS  GET /v1/warm-pools/{}/workspaces
KEYS     POST /v1/replica
KEYS     POST /v1/replica/uncommitted
MEMBERS  GET /v1/replica
MEMBERS  GET /v1/replica/{}
MEMBERS  DELETE /v1/replica/{}
MEMBERS  POST /v1/replica/{}/sleep
ADMINS   POST /v1/replica/{}/forget
MEMBERS  POST /v1/replica/{}/archive
MEMBERS  POST /v1/replica/{}/wake
MEMBERS  GET /v1/replica/{}/status
MEMBERS  GET /v1/replica/{}/history
MEMBERS  GET /v1/search
MEMBERS  POST /v1/mcp
MEMBERS  GET /v1/replica/{}/events
MEMBERS  GET /v1/replica/{}/hooks
MEMBERS  POST /v1/replica/{}/exec
MEMBERS  GET /v1/replica/{}/chats
MEMBERS  POST /v1/replica/{}/chats
MEMBERS  PATCH /v1/replica/{}/chats/{}
MEMBERS  DELETE /v1/replica/{}/chats/{}
MEMBERS  POST /v1/replica/{}/chats/{}/interrupt
MEMBERS  POST /v1/replica/{}/chats/{}/respond
MEMBERS  PATCH /v1/replica/{}/chats/{}/goal
MEMBERS  DELETE /v1/replica/{}/chats/{}/goal
MEMBERS  GET /v1/replica/{}/chats/{}/settings
MEMBERS  PATCH /v1/replica/{}/chats/{}/settings
MEMBERS  GET /v1/replica/{}/chats/{}/slash-commands
MEMBERS  GET /v1/replica/{}/chats/{}/queue
MEMBERS  DELETE /v1/replica/{}/chats/{}/queue
MEMBERS  PATCH /v1/replica/{}/chats/{}/queue/reorder
MEMBERS  DELETE /v1/replica/{}/chats/{}/queue/{}
MEMBERS  POST /v1/replica/{}/chats/{}/queue/join
MEMBERS  POST /v1/replica/{}/chats/{}/queue/{}/steer
MEMBERS  POST /v1/replica/{}/messages
MEMBERS  GET /v1/replica/{}/terminal/sessions
MEMBERS  POST /v1/replica/{}/terminal/sessions
MEMBERS  DELETE /v1/replica/{}/terminal/sessions/{}
MEMBERS  POST /v1/replica/{}/terminal/sessions/{}/input
MEMBERS  POST /v1/replica/{}/terminal/sessions/{}/resize
MEMBERS  GET /v1/replica/{}/terminal/sessions/{}/stream
MEMBERS  GET /v1/replica/{}/git
MEMBERS  GET /v1/replica/{}/git/{}/diff
MEMBERS  GET /v1/replica/{}/git/{}/repo.git/info/refs
MEMBERS  POST /v1/replica/{}/git/{}/repo.git/git-upload-pack
MEMBERS  POST /v1/replica/{}/git/{}/commit
MEMBERS  POST /v1/replica/{}/git/{}/update
MEMBERS  POST /v1/replica/{}/git/{}/push
MEMBERS  GET /v1/replica/{}/checkpoints
MEMBERS  POST /v1/replica/{}/rewind
MEMBERS  POST /v1/replica/{}/fork
MEMBERS  GET /v1/replica/{}/pull-requests
MEMBERS  POST /v1/replica/{}/pull-requests
MEMBERS  POST /v1/replica/{}/pull-requests/{}/merge
MEMBERS  GET /v1/replica/{}/canvas
MEMBERS  POST /v1/replica/{}/canvas
MEMBERS  GET /v1/replica/{}/canvas/{}
MEMBERS  GET /v1/replica/{}/repo-files/search
MEMBERS  GET /v1/replica/{}/repo-files/content
MEMBERS  GET /v1/replica/{}/permissions
MEMBERS  PATCH /v1/replica/{}/permissions
MEMBERS  GET /v1/replica/{}/previews
MEMBERS  DELETE /v1/replica/{}/previews/{}
MEMBERS  GET /v1/automations
MEMBERS  POST /v1/automations
MEMBERS  GET /v1/automations/events
MEMBERS  GET /v1/automations/{}
MEMBERS  PATCH /v1/automations/{}
MEMBERS  DELETE /v1/automations/{}
MEMBERS  POST /v1/automations/{}/trigger
MEMBERS  GET /v1/automations/{}/executions
MEMBERS  GET /v1/automations/{}/executions/{}
MEMBERS  POST /v1/automations/{}/executions/{}/retry
MEMBERS  POST /v1/automations/{}/executions/{}/approve
MEMBERS  POST /v1/automations/{}/executions/{}/cancel
MEMBERS  POST /v1/automations/{}/webhook/rotate
PUBLIC   POST /v1/automations/webhook/{}
INSIDE   GET /v1/origin/{}/refs
INSIDE   GET /v1/origin/{}/info/refs
INSIDE   POST /v1/origin/{}/git-upload-pack
INSIDE   POST /v1/origin/{}/push
INSIDE   POST /v1/previews
INSIDE   DELETE /v1/previews/{}
INSIDE   POST /v1/automations/checks/{}
"""

ACCESS = {
    operation: rule
    for rule, _, operation in (
        line.partition(" ") for line in (" ".join(x.split()) for x in _LISTED.split("\n")) if line
    )
}
"""The rule of each operation, by `METHOD path`."""


def written(method: str, path: str) -> str:
    """An operation as the table writes it."""
    family = re.sub(r"^/v1/workspaces(?=/|$)", "/v1/replica", path)
    return f"{method} {re.sub(r'{[^}]*}', '{}', family)}"
