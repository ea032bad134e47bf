"""Every operation of the contract: its route, its client method, and the tests that prove it.

Routes of one replica stand under the first family's name; `{id}` and the like are the served names.
`S` and a number is an operation of the specification, `I` and a number a section of docs/interface.md.
`absent` says what is not there yet; a test holds that it is really absent, so that the table is
corrected when it comes.
"""

from dataclasses import dataclass

REPLICA = "/v1/replica/{id}"
CHAT = REPLICA + "/chats/{chat_id}"
SESSION = REPLICA + "/terminal/sessions/{session_id}"
ENVIRONMENT = "/v1/environments/{environment_id}"
AUTOMATION = "/v1/automations/{id}"


@dataclass(frozen=True)
class Operation:
    """`client` is `resource.method` of `Client`; `tests` are files below `tests/`."""

    source: str
    method: str
    path: str
    client: str
    tests: tuple[str, ...]
    absent: frozenset[str] = frozenset()

    @property
    def family_paths(self) -> list[str]:
        """Where it is served: what belongs to replicas, under both names."""
        if self.path == "/v1/replica" or self.path.startswith(REPLICA):
            return [self.path, self.path.replace("/v1/replica", "/v1/workspaces", 1)]
        return [self.path]


def _of(source: str, line: str, *tests: str, absent: str = "") -> Operation:
    method, path, client = line.split()
    return Operation(source, method, path, client, tests, frozenset(absent.split()))


FLEET = "fleet/test_service_fleet.py"
STARTS = "fleet/test_service_starts.py"
STATES = "fleet/test_service_states.py"
TERMINALS = "fleet/test_service_terminals.py"
PARTS = "service/test_service_environment_parts.py"
ENVIRONMENTS = "service/test_service_environments.py"
KEYS = "service/test_service_api_keys.py"
CREDENTIALS = "service/test_service_credentials.py"
STEERING = "fleet/test_service_steering.py"
QUEUE = "fleet/test_service_queue.py"
QUESTIONS = "fleet/test_service_questions.py"
GOALS = "fleet/test_service_goals.py"
PERMISSIONS = "fleet/test_service_permissions.py"
SETTINGS = "fleet/test_service_settings.py"
SETS = "service/test_service_repository_sets.py"
RESOURCES = "service/test_service_resources.py"
HOOKS = "shaping/test_hooks_in_workspaces.py"
POOLS = "shaping/test_warm_pools.py"
DEVICE = "service/test_service_device.py"
CANVAS = "workspace_files/test_canvas.py"
SEARCH = "workspace_files/test_file_search.py"
PREVIEWS = "workspace_files/test_previews.py"
GIT = "git/test_git_operations.py"
GIT_FETCH = "git/test_git_fetch.py"
GIT_REWIND = "git/test_git_rewind.py"
GIT_FORK = "git/test_git_fork.py"
GIT_PUSH = "git/test_git_push.py"
GIT_ORIGIN = "git/test_git_origin.py"
PULLS = "git/test_pull_requests.py"
AUTOMATED = "automations/test_automation_records.py"
APPROVED = "automations/test_approval.py"
CONTROLLED = "automations/test_run_control.py"
WEBHOOKS = "automations/test_own_webhooks.py"
RUNS = "automations/test_schedules_and_runs.py"
NOTIFICATIONS = "fleet/test_service_webhooks.py"

OPERATIONS: tuple[Operation, ...] = (
    # Replicas
    _of("S4 I3", "POST /v1/replica replicas.create", "fleet/test_service_replicas.py"),
    _of("own", "POST /v1/replica/uncommitted replicas.upload_uncommitted", STARTS),
    _of("I3", "GET /v1/replica replicas.list", "fleet/test_service_replicas.py"),
    _of("I3", f"GET {REPLICA} replicas.get", FLEET),
    _of("I3", f"DELETE {REPLICA} replicas.delete", FLEET),
    _of("I3", f"POST {REPLICA}/sleep replicas.sleep", STATES),
    _of("I3", f"POST {REPLICA}/archive replicas.archive", "fleet/test_service_rest.py"),
    _of("I3", f"POST {REPLICA}/wake replicas.wake", STATES),
    _of("I3", f"POST {REPLICA}/forget replicas.forget", "service/test_service_several.py"),
    _of("I3", f"GET {REPLICA}/status replicas.status", "fleet/test_service_replicas.py"),
    # Chats, messages, queue, goal
    _of("I4", f"GET {REPLICA}/chats chats.list", STATES),
    _of("I4", f"POST {REPLICA}/chats chats.create", "fleet/test_service_messages.py"),
    _of("S5 I4", f"PATCH {CHAT} chats.rename", STATES, "system/test_system_contract.py"),
    _of("I4", f"DELETE {CHAT} chats.delete", QUEUE),
    _of("I4", f"POST {CHAT}/interrupt chats.interrupt", STATES),
    _of("I4", f"GET {CHAT}/slash-commands chats.slash_commands", GOALS),
    _of("I4", "GET /v1/agents agents.list", RESOURCES),
    _of("I4", "GET /v1/agents/{agent}/models agents.models", RESOURCES),
    _of("I4", f"POST {REPLICA}/messages messages.send", "fleet/test_service_messages.py"),
    _of("I4", f"POST {CHAT}/respond chats.respond", QUESTIONS),
    _of("I4", f"GET {CHAT}/queue messages.queue", QUEUE),
    _of("I4", f"DELETE {CHAT}/queue messages.clear_queue", QUEUE),
    _of("I4", CHAT.join(("DELETE ", "/queue/{message_id} messages.remove_queued")), QUEUE),
    _of("I4", f"PATCH {CHAT}/queue/reorder messages.reorder_queue", QUEUE),
    _of("I4", f"POST {CHAT}/queue/join messages.join", STEERING),
    _of("I4", CHAT.join(("POST ", "/queue/{message_id}/steer messages.steer")), STEERING),
    _of("S6 I4", f"PATCH {CHAT}/goal chats.update_goal", GOALS),
    _of("I11", f"DELETE {CHAT}/goal chats.delete_goal", GOALS),
    _of("I4", f"GET {CHAT}/settings chats.settings", SETTINGS),
    _of("I4", f"PATCH {CHAT}/settings chats.update_settings", SETTINGS),
    _of("I4", f"GET {REPLICA}/permissions permissions.get", PERMISSIONS),
    _of("I4", f"PATCH {REPLICA}/permissions permissions.change", PERMISSIONS),
    # History and events
    _of("S15 I5", f"GET {REPLICA}/history history.page", "service/test_service_history.py"),
    _of("I4", "GET /v1/search history.search", "service/test_service_search.py"),
    _of("S16 I5", f"GET {REPLICA}/events events.stream", "client/test_client_events.py", FLEET),
    # Exec, terminals, files, canvas, hook logs, previews
    _of("S1 I6", f"POST {REPLICA}/exec exec.run", STATES, "system/test_system_contract.py"),
    _of("S20 I6", f"GET {REPLICA}/terminal/sessions terminals.list", TERMINALS),
    _of("I6", f"POST {REPLICA}/terminal/sessions terminals.create", TERMINALS),
    _of("I6", f"POST {SESSION}/input terminals.input", TERMINALS),
    _of("S10 I6", f"POST {SESSION}/resize terminals.resize", TERMINALS),
    _of("I6", f"DELETE {SESSION} terminals.close", TERMINALS),
    _of("S21 I6", f"GET {SESSION}/stream terminals.stream", TERMINALS),
    _of("S13 I6", f"GET {REPLICA}/repo-files/search files.search", SEARCH),
    _of("I6", f"GET {REPLICA}/repo-files/content files.content", SEARCH),
    _of("I6", f"GET {REPLICA}/canvas canvas.list", CANVAS),
    _of("I6", REPLICA.join(("GET ", "/canvas/{filename} canvas.get")), CANVAS),
    _of("S14 I6", f"POST {REPLICA}/canvas canvas.upload", CANVAS),
    _of("I6", f"GET {REPLICA}/hooks hook_logs.read", HOOKS),
    _of("I6", f"GET {REPLICA}/previews previews.list", PREVIEWS),
    _of("I6", REPLICA.join(("DELETE ", "/previews/{port} previews.close")), PREVIEWS),
    _of("I6", "POST /v1/previews previews.open_own", PREVIEWS),
    _of("I6", "DELETE /v1/previews/{port} previews.close_own", PREVIEWS),
    # Git
    _of("I11", f"POST {REPLICA}/fork replicas.fork", GIT_FORK),
    _of("I11", f"GET {REPLICA}/checkpoints git.checkpoints", GIT_REWIND),
    _of("I11", f"POST {REPLICA}/rewind git.rewind", GIT_REWIND),
    _of("I11", "GET /v1/origin/{repository}/refs origin.source_refs", GIT_ORIGIN),
    _of("I11", "GET /v1/origin/{repository}/info/refs origin.refs", GIT_ORIGIN),
    _of("I11", "POST /v1/origin/{repository}/git-upload-pack origin.upload_pack", GIT_ORIGIN),
    _of("I11", "POST /v1/origin/{repository}/push origin.push", GIT_ORIGIN),
    _of("I11", f"GET {REPLICA}/git git.states", GIT),
    _of("I11", REPLICA.join(("GET ", "/git/{repository}/diff git.diff")), GIT),
    _of("I11", REPLICA.join(("GET ", "/git/{repository}/repo.git/info/refs git.refs")), GIT_FETCH),
    _of(
        "I11",
        REPLICA.join(("POST ", "/git/{repository}/repo.git/git-upload-pack git.upload_pack")),
        GIT_FETCH,
    ),
    _of("I11", REPLICA.join(("POST ", "/git/{repository}/commit git.commit")), GIT),
    _of("I11", REPLICA.join(("POST ", "/git/{repository}/update git.update")), GIT),
    _of("I11", REPLICA.join(("POST ", "/git/{repository}/push git.push")), GIT_PUSH),
    _of("I11", f"GET {REPLICA}/pull-requests pull_requests.list", PULLS),
    _of("I11", f"POST {REPLICA}/pull-requests pull_requests.create", PULLS),
    _of("I11", REPLICA.join(("POST ", "/pull-requests/{number}/merge pull_requests.merge")), PULLS),
    # Environments and their parts
    _of("I7", "GET /v1/environments environments.list", ENVIRONMENTS),
    _of("I7", "POST /v1/environments environments.create", ENVIRONMENTS),
    _of("I7", f"GET {ENVIRONMENT} environments.get", ENVIRONMENTS),
    _of("I7", f"PATCH {ENVIRONMENT} environments.change", ENVIRONMENTS),
    _of("I7", f"DELETE {ENVIRONMENT} environments.delete", ENVIRONMENTS),
    _of("I7", f"GET {ENVIRONMENT}/variables variables.list", PARTS),
    _of("I7", f"POST {ENVIRONMENT}/variables variables.add", PARTS),
    _of("S7 I7", ENVIRONMENT.join(("PATCH ", "/variables/{id} variables.change")), PARTS),
    _of("I7", ENVIRONMENT.join(("DELETE ", "/variables/{id} variables.delete")), PARTS),
    _of("I7", f"GET {ENVIRONMENT}/files environment_files.list", PARTS),
    _of("I7", f"POST {ENVIRONMENT}/files environment_files.add", PARTS),
    _of("S8 I7", ENVIRONMENT.join(("PATCH ", "/files/{id} environment_files.change")), PARTS),
    _of("I7", ENVIRONMENT.join(("DELETE ", "/files/{id} environment_files.delete")), PARTS),
    _of("S18 I7", f"GET {ENVIRONMENT}/skills skills.list", PARTS),
    _of("I7", f"POST {ENVIRONMENT}/skills skills.add", PARTS),
    _of("I7", ENVIRONMENT.join(("DELETE ", "/skills/{id} skills.delete")), PARTS),
    _of("I7", "GET /v1/environment-skills/search skills.search", "service/test_service_skills.py"),
    _of("I7", f"GET {ENVIRONMENT}/mcps mcps.list", PARTS),
    _of("I7", f"POST {ENVIRONMENT}/mcps mcps.add", PARTS),
    _of("I7", ENVIRONMENT.join(("PATCH ", "/mcps/{id} mcps.change")), PARTS),
    _of("I7", ENVIRONMENT.join(("DELETE ", "/mcps/{id} mcps.delete")), PARTS),
    _of("I7", f"GET {ENVIRONMENT}/warm-hooks environment_hooks.warm", PARTS),
    _of("S9 I7", f"POST {ENVIRONMENT}/warm-hooks/save environment_hooks.save_warm", PARTS),
    _of("I7", f"POST {ENVIRONMENT}/warm-hooks/save-test hook_tests.save_warm", HOOKS),
    _of("I7", f"POST {ENVIRONMENT}/warm-hooks/test hook_tests.warm", HOOKS),
    _of("I7", f"POST {ENVIRONMENT}/warm-hooks/test/stream hook_tests.stream_warm", HOOKS),
    _of("I7", f"GET {ENVIRONMENT}/start-hooks environment_hooks.start", PARTS),
    _of("I7", f"POST {ENVIRONMENT}/start-hooks/save environment_hooks.save_start", PARTS),
    _of("I7", f"POST {ENVIRONMENT}/start-hooks/test hook_tests.start", HOOKS),
    _of("I7", f"POST {ENVIRONMENT}/start-hooks/test/stream hook_tests.stream_start", HOOKS),
    _of("I7", f"PUT {ENVIRONMENT}/warm-pools warm_pools.switch", POOLS),
    _of("I7", "GET /v1/warm-pools/{id}/workspaces warm_pools.workspaces", POOLS),
    _of("I7", "GET /v1/replica/repositories repositories.list", RESOURCES),
    _of("I7", "POST /v1/replica/repositories repositories.connect", RESOURCES),
    _of("own", "GET /v1/replica/repositories/{id}/branches repositories.branches", STARTS),
    _of("I7", "DELETE /v1/replica/repositories/{id} repositories.disconnect", RESOURCES, SETS),
    _of("I7", "GET /v1/replica/repository-sets repository_sets.list", SETS),
    _of("I7", "POST /v1/replica/repository-sets repository_sets.create", SETS),
    _of("I11", "GET /v1/replica/repository-sets/{id} repository_sets.get", SETS),
    _of("I11", "PATCH /v1/replica/repository-sets/{id} repository_sets.change", SETS),
    _of("I7", "DELETE /v1/replica/repository-sets/{id} repository_sets.delete", SETS),
    _of("I7", "GET /v1/health health.get", "service/test_service_contract.py"),
    _of(
        "I7",
        "GET /v1/services services.list",
        "service/test_service_homes.py",
        "service/test_service_several.py",
    ),
    # Automations
    _of("I8", "GET /v1/automations automations.list", AUTOMATED),
    _of("I8", "POST /v1/automations automations.create", AUTOMATED),
    _of(
        "own",
        "GET /v1/automations/events changes.stream",
        "client/test_client_automations.py",
    ),
    _of("I8", f"GET {AUTOMATION} automations.get", AUTOMATED),
    _of("I8", f"PATCH {AUTOMATION} automations.change", AUTOMATED),
    _of("S19 I8", f"DELETE {AUTOMATION} automations.delete", RUNS),
    _of("I8", f"POST {AUTOMATION}/trigger automations.trigger", RUNS),
    _of("I8", f"GET {AUTOMATION}/executions automations.executions", RUNS),
    _of("I8", AUTOMATION.join(("GET ", "/executions/{execution_id} automations.execution")), RUNS),
    _of(
        "I8",
        AUTOMATION.join(("POST ", "/executions/{execution_id}/approve automations.approve")),
        APPROVED,
    ),
    _of(
        "I8",
        AUTOMATION.join(("POST ", "/executions/{execution_id}/cancel automations.cancel")),
        CONTROLLED,
    ),
    _of("I8", f"POST {AUTOMATION}/webhook/rotate automations.rotate_webhook", WEBHOOKS),
    _of(
        "S17 I8",
        AUTOMATION.join(("POST ", "/executions/{execution_id}/retry automations.retry")),
        RUNS,
    ),
    _of(
        "I8",
        "POST /v1/automations/webhook/{token} automations.webhook",
        "automations/test_own_webhooks.py",
    ),
    _of(
        "S12 I8",
        "POST /v1/automations/checks/{check_run_id} automations.report_check",
        "checks/test_reporting.py",
    ),
    # Keys, credentials, connection, who asks
    _of("S2 I9", "POST /v1/user/api-keys api_keys.create", KEYS),
    _of("S3 I9", "GET /v1/user/api-keys api_keys.list", KEYS),
    _of("I9", "DELETE /v1/user/api-keys/{id} api_keys.delete", KEYS),
    _of("I9", "POST /v1/organization/api-keys organization_api_keys.create", KEYS),
    _of("I9", "GET /v1/organization/api-keys organization_api_keys.list", KEYS),
    _of("I9", "DELETE /v1/organization/api-keys/{id} organization_api_keys.delete", KEYS),
    _of("S22 I9", "GET /v1/{provider}/user/credentials credentials.get", CREDENTIALS),
    _of("S11 I9", "POST /v1/{provider}/user/credentials credentials.set", CREDENTIALS),
    _of("I9", "DELETE /v1/{provider}/user/credentials credentials.delete", CREDENTIALS),
    _of("I9", "GET /v1/{provider}/credentials credentials.get", CREDENTIALS),
    _of("I9", "POST /v1/{provider}/credentials credentials.set", CREDENTIALS),
    _of("I9", "DELETE /v1/{provider}/credentials credentials.delete", CREDENTIALS),
    _of("I9", "GET /v1/chatapp/user/connection chatapp.get", NOTIFICATIONS),
    _of("I9", "POST /v1/chatapp/user/connection chatapp.connect", NOTIFICATIONS),
    _of("S23 I9", "DELETE /v1/chatapp/user/connection chatapp.disconnect", NOTIFICATIONS),
    _of("I11", "POST /v1/chatapp/user/connection/test chatapp.test", NOTIFICATIONS),
    _of("I11", "GET /v1/organization/webhook-secret chatapp.webhook_secret", NOTIFICATIONS),
    _of(
        "I11",
        "POST /v1/organization/webhook-secret/rotate chatapp.rotate_webhook_secret",
        NOTIFICATIONS,
    ),
    _of("I9", "GET /v1/user/profile account.profile", "service/test_service_tokens.py"),
    _of("I9", "GET /v1/organizations account.organizations", "service/test_service_tokens.py"),
    _of("I2", "POST /v1/auth/device auth.device", DEVICE),
    _of("I2", "POST /v1/auth/token auth.token", DEVICE),
    _of("own", "POST /v1/auth/approve auth.approve", DEVICE),
)

WITHOUT_CLIENT = {
    ("GET", "/openapi.json"),
    ("GET", "/v1/auth/verify"),
    ("POST", "/v1/mcp"),
    ("POST", "/v1/host-a/webhook"),
    ("POST", "/v1/host-b/webhook"),
}
"""For tools, browsers, source hosts and clients of another protocol."""
