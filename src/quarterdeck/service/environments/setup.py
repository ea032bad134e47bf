"""The setup of a workspace."""

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection

from quarterdeck.sandboxes.port import Progress, SandboxError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.bundle import (
    Bundle,
    BundleHook,
    BundleSkill,
    bundle_for_start,
)
from quarterdeck.service.environments.warm_pool_rows import WarmState
from quarterdeck.service.errors import ApiError
from quarterdeck.service.replicas.rows import WorkspaceRow, list_hook_logs
from quarterdeck.wire.environment_parts import RESERVED_KEYS
from quarterdeck.wire.inside import SECRET_VARIABLE, URL_VARIABLE, WORKSPACE_VARIABLE
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.setup import (
    HOOK_SECONDS,
    HOOK_SECONDS_VARIABLE,
    MOST_HOOK_SECONDS,
    HookKind,
    HookLog,
    HookLogList,
    HookLogs,
    McpServer,
    Setup,
    SetupFile,
    SetupHook,
    SetupSkill,
    SkillFile,
)

TESTED = "test"
"""Name of the tested hook."""


@dataclass(frozen=True)
class Trial:
    """A hook test. `own_warm` and `own_start` say whether the environment itself has one.

    The tested hook replaces the environment's own. Earlier ones in the contract's order run as
    well, later ones do not.
    """

    kind: HookKind
    content: str
    own_warm: bool
    own_start: bool

    def as_json(self) -> str:
        """Return the hook test as JSON for `config_json`."""
        return json.dumps({"hook_test": asdict(self)})

    def hooks(self, bundle: Bundle) -> list[SetupHook]:
        """Return the hooks of the workspace, the tested one last."""
        warm, start = bundle.warm_hooks, bundle.start_hooks
        tested = SetupHook(kind=self.kind, name=TESTED, script=self.content)
        if self.kind == HookKind.WARM:
            before = [(HookKind.WARM, hook) for hook in (warm[:-1] if self.own_warm else warm)]
        else:
            before = [(HookKind.WARM, hook) for hook in warm]
            before += [(HookKind.START, hook) for hook in (start[:-1] if self.own_start else start)]
        return [
            *(
                SetupHook(kind=kind, name=f"{number}: {hook.name}", script=hook.content)
                for number, (kind, hook) in enumerate(before, 1)
            ),
            tested,
        ]


def trial_of(row: WorkspaceRow) -> Trial | None:
    """Return the test of a workspace; None for any other workspace."""
    if row.warm_state != WarmState.TESTING or row.config_json is None:
        return None
    values = json.loads(row.config_json)["hook_test"]
    return Trial(
        kind=HookKind(values["kind"]),
        content=str(values["content"]),
        own_warm=bool(values["own_warm"]),
        own_start=bool(values["own_start"]),
    )


SKILL_FILE = "SKILL.md"


@dataclass(frozen=True)
class ComposedSetup:
    """The setup that a workspace is started with. `variables` are set for everything in it."""

    variables: dict[str, str] = field(repr=False)
    setup: Setup = field(repr=False)

    def summary_json(self, at: str) -> str:
        """Return its names, without values, as JSON for `workspaces.setup_json`."""
        return json.dumps(
            {
                "files_uploaded": [file.path for file in self.setup.files],
                "env_vars_set": sorted(self.variables),
                "skills_installed": [skill.slug for skill in self.setup.skills],
                "last_updated_at": at,
            }
        )


async def compose(context: ServiceContext, row: WorkspaceRow, report: Progress) -> ComposedSetup:
    """Return the current setup from the workspace's environment.

    Raises:
        SandboxError: a skill cannot be read, or the environment was deleted.
        StorageError: the database cannot be used, or a secret cannot be opened.
    """
    try:
        bundle = await bundle_for_start(
            context, row.organization_id, row.user_id, row.environment_id
        )
    except ApiError as e:
        raise SandboxError("The replica's environment was deleted.", e.details) from e
    variables = {name: text for name, text in bundle.variables.items() if name not in RESERVED_KEYS}
    trial = trial_of(row)
    setup = Setup(
        files=[SetupFile(path=file.path, content=file.content) for file in bundle.files],
        skills=[await _skill(context, skill, report) for skill in bundle.skills],
        mcp_servers=[
            McpServer(name=one.name, transport=one.transport, config=one.config)
            for one in bundle.mcps
        ],
        system_prompt=_prompt(bundle),
        co_author=bundle.co_author,
        hooks=_hooks(bundle, trial),
        repository_hooks=trial is None,
        hook_seconds=hook_seconds(variables),
        credentials={} if row.warm_state else bundle.credentials,
        hold=_is_held(row),
    )
    return ComposedSetup(variables, setup)


def _is_held(row: WorkspaceRow) -> bool:
    """Return whether the engine waits for its claim before the start hooks.

    Also when it has an owner already: an engine that died before it was claimed is claimed after
    its restart, since only a claim gives its branch the owner's name. After that the workspace has
    no pool any more.
    """
    return row.warm_pool_id is not None and row.status == WorkspaceStatus.PREPARING


def hook_seconds(variables: Mapping[str, str]) -> float:
    """Return the time limit of a hook in seconds: the environment's variable, within bounds."""
    try:
        seconds = float(variables.get(HOOK_SECONDS_VARIABLE, ""))
    except ValueError:
        return HOOK_SECONDS
    return min(seconds, MOST_HOOK_SECONDS) if seconds >= 1 else HOOK_SECONDS


def _prompt(bundle: Bundle) -> str | None:
    parts = (bundle.system_prompt, bundle.personal_preferences)
    return "\n\n".join(part for part in parts if part) or None


def _hooks(bundle: Bundle, trial: Trial | None) -> list[SetupHook]:
    if trial is not None:
        return trial.hooks(bundle)
    return [
        *_named(HookKind.WARM, bundle.warm_hooks),
        *_named(HookKind.START, bundle.start_hooks),
    ]


def _named(kind: HookKind, hooks: Sequence[BundleHook]) -> list[SetupHook]:
    """Return the hooks with unique names: two layers may use the same one."""
    named: dict[str, SetupHook] = {}
    for number, hook in enumerate(hooks, 1):
        name = hook.name if hook.name not in named else f"{hook.name} ({number})"
        named[name] = SetupHook(kind=kind, name=name, script=hook.content)
    return list(named.values())


async def _place_of(context: ServiceContext, url: str, slug: str) -> str:
    """Return the directory of a skill whose source names none: the top, or the one of its name."""
    paths = {file.path for file in await context.sandboxes.find_in_tree(url, SKILL_FILE)}
    return slug if SKILL_FILE not in paths and f"{slug}/{SKILL_FILE}" in paths else ""


async def _skill(context: ServiceContext, skill: BundleSkill, report: Progress) -> SetupSkill:
    report(f"Reading the skill {skill.name}")
    url, _, directory = skill.source.partition("#")
    try:
        place = directory or await _place_of(context, url, skill.slug)
        files = await context.sandboxes.read_tree(url, place)
    except SandboxError as e:
        raise SandboxError(f"The skill {skill.name} could not be read: {e}", e.details) from e
    if not any(file.path == SKILL_FILE for file in files):
        where = f"at {directory}" if directory else f"at its top or in {skill.slug}"
        raise SandboxError(
            f"The skill {skill.name} could not be read: its source holds no {SKILL_FILE} {where}.",
            skill.source,
        )
    return await asyncio.to_thread(
        lambda: SetupSkill(
            slug=skill.slug,
            files=[
                SkillFile(
                    path=file.path,
                    content=base64.b64encode(file.content),
                    executable=file.executable,
                )
                for file in files
            ],
        )
    )


_logs = TypeAdapter(list[HookLog])


async def hook_logs_of(context: ServiceContext, workspace_id: str) -> HookLogs:
    """Return every run of the workspace's hooks, without calling the engine."""
    found = _logs.validate_python(
        await context.database.read(lambda c: list_hook_logs(c, workspace_id))
    )
    return HookLogs(
        warm_hooks=HookLogList(logs=[log for log in found if log.hook_type == HookKind.WARM]),
        start_hooks=HookLogList(logs=[log for log in found if log.hook_type == HookKind.START]),
    )


def setup_summary(connection: Connection, row: WorkspaceRow) -> dict[str, Any]:
    """Return fields of the `environment` block: the names of the last start's setup."""
    summary: dict[str, Any] = json.loads(row.setup_json) if row.setup_json else {}
    return {**summary, "hooks": _summary(list_hook_logs(connection, row.id))}


def _summary(logs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the newest run of each hook, without its output."""
    newest = {(log.get("hookType"), log.get("hookName")): log for log in logs}
    kept = ("hookName", "exitCode", "timedOut", "executedAt")
    return {
        f"{kind.value}_hooks": [
            {name: log.get(name) for name in kept}
            for (type, _), log in newest.items()
            if type == kind
        ]
        for kind in HookKind
    }


def way_out(row: WorkspaceRow, socket: str | None) -> dict[str, str]:
    """Return the variables of a workspace's processes; none in a sandbox without network access."""
    if socket is None:
        return {}
    return {
        URL_VARIABLE: f"unix:{socket}",
        WORKSPACE_VARIABLE: row.id,
        SECRET_VARIABLE: row.engine_secret,
    }
