"""The setup of a workspace by its environment, and logs of its hooks (docs/interface.md 6 and 7).

`Setup` goes to the engine with its configuration; the engine installs it at each boot and runs the
hooks in the order given.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Base64Bytes, Field

from quarterdeck.wire.base import CamelRecord, Record, Timestamp
from quarterdeck.wire.json_size import LARGEST_NUMBER

HOOK_SECONDS = 300.0
"""Default time limit of a hook."""
MOST_HOOK_SECONDS = 900.0
"""Maximum time limit of a hook."""
HOOK_SECONDS_VARIABLE = "QD_HOOK_TIMEOUT_SECONDS"
"""A variable of an environment that sets the time limit of its hooks, in seconds."""
HOOK_OUTPUT_LIMIT = 100_000
"""Last characters of a hook's output that its log keeps."""


class SetupFile(CamelRecord):
    """A file below HOME; `path` begins with `~/`."""

    path: str
    content: str


class SkillFile(CamelRecord):
    """One file of a skill; `path` is relative to the skill's directory."""

    path: str
    content: Base64Bytes
    executable: bool = False


class SetupSkill(CamelRecord):
    """A skill with all its files. `slug` is the name of its directory."""

    slug: str
    files: list[SkillFile]


class McpServer(CamelRecord):
    """An MCP server for agents: `config` is `{command, args, env}` or `{url, headers}`."""

    name: str
    transport: str
    config: dict[str, Any]


class HookKind(StrEnum):
    """When a hook runs: once in a workspace's life, or at each boot."""

    WARM = "warm"
    START = "start"


class SetupHook(CamelRecord):
    """A hook of the environment. The name is unique among those of its kind."""

    kind: HookKind
    name: str
    script: str


class Setup(CamelRecord):
    """Everything that an environment gives a workspace, but its variables."""

    files: list[SetupFile] = []
    skills: list[SetupSkill] = []
    mcp_servers: Annotated[list[McpServer], Field(repr=False)] = []
    system_prompt: str | None = None
    """Instructions for agents: the environment's, then the person's preferences."""
    co_author: str | None = None
    """`NAME <ADDRESS>`: who is named by a `Co-authored-by` line of what agents commit."""
    hooks: list[SetupHook] = []
    repository_hooks: bool = True
    """Whether the hooks that repositories bring are run as well."""
    hook_seconds: Annotated[float, Field(gt=0, le=MOST_HOOK_SECONDS)] = HOOK_SECONDS
    credentials: Annotated[dict[str, str], Field(repr=False)] = {}
    """Keys by agent, for the environment of that agent's process alone."""
    hold: bool = False
    """Stop after the warm hooks, until the workspace is claimed (`workspace.claim`)."""


class SetupPhase(StrEnum):
    """How far a boot has come."""

    INSTALLING = "installing"
    WARM_HOOKS = "warm_hooks"
    HELD = "held"
    START_HOOKS = "start_hooks"
    READY = "ready"
    FAILED = "failed"


class SetupState(CamelRecord):
    """Part of what an engine reports of itself; `failure` says why set-up failed."""

    phase: SetupPhase
    failure: str | None = None


class ClaimWorkspace(CamelRecord):
    """Parameters of `workspace.claim`: settings of its new owner."""

    branch: str
    """The branch that its repositories are on from now."""
    credentials: Annotated[dict[str, str], Field(repr=False)] = {}


class HookLog(CamelRecord):
    """One run of a hook. `output` holds its last 100,000 characters."""

    hook_type: str
    """`warm` or `start`."""
    hook_name: str
    """Name of the hook."""
    hook_script: str | None = None
    """Shell script that ran."""
    hook_commands: list[str] | None = None
    """Commands that ran, for hooks that are a list."""
    output: str
    """Output: the last 100,000 characters."""
    output_truncated: bool
    """Whether the beginning of the output was left out."""
    output_total_chars: int
    """Characters that it printed in all."""
    exit_code: int | None
    """Exit code; null when it timed out."""
    timed_out: bool
    """Whether it timed out and was stopped."""
    executed_at: Timestamp
    """When it started."""
    duration_ms: int | None = Field(default=None, le=LARGEST_NUMBER)
    """How long it ran (own field)."""


class HookLogList(Record):
    """The runs of one kind, oldest first."""

    logs: list[HookLog] = []
    """Runs, oldest first."""


class HookLogs(Record):
    """Answer of `GET /v1/replica/{id}/hooks`."""

    warm_hooks: HookLogList
    """Runs of warm hooks."""
    start_hooks: HookLogList
    """Runs of start hooks."""
