"""From an environment's bundle to what an engine is started with."""

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quarterdeck.sandboxes.port import Progress, SandboxError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.bundle import (
    Bundle,
    BundleHook,
    BundleSkill,
    bundle_for_start,
)
from quarterdeck.service.errors import ApiError
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.service.workspace_setup.trial import Trial, trial_of
from quarterdeck.wire.environment_variables import RESERVED_KEYS
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.setup import (
    HOOK_SECONDS,
    HOOK_SECONDS_VARIABLE,
    MOST_HOOK_SECONDS,
    HookKind,
    McpServer,
    Setup,
    SetupFile,
    SetupHook,
    SetupSkill,
    SkillFile,
)

SKILL_FILE = "SKILL.md"


@dataclass(frozen=True)
class Composed:
    """What a workspace is started with. `variables` go to everything that runs in it."""

    variables: dict[str, str] = field(repr=False)
    setup: Setup = field(repr=False)

    def told(self, at: str) -> str:
        """What of it may be told, as JSON for `workspaces.setup_json`: names, no values."""
        return json.dumps(
            {
                "files_uploaded": [file.path for file in self.setup.files],
                "env_vars_set": sorted(self.variables),
                "skills_installed": [skill.slug for skill in self.setup.skills],
                "last_updated_at": at,
            }
        )


async def compose(context: ServiceContext, row: WorkspaceRow, report: Progress) -> Composed:
    """Everything that the workspace's environment gives it now.

    Raises:
        SandboxError: a skill cannot be read, or the environment is gone.
        StorageError: the database cannot be used, or a secret cannot be opened.
    """
    try:
        bundle = await bundle_for_start(
            context, row.organization_id, row.user_id, row.environment_id
        )
    except ApiError as e:
        raise SandboxError("The replica's environment is gone.", e.details) from e
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
        hooks=_hooks(bundle, trial),
        repository_hooks=trial is None,
        hook_seconds=hook_seconds(variables),
        credentials={} if row.warm_state else bundle.credentials,
        hold=_is_held(row),
    )
    return Composed(variables, setup)


def _is_held(row: WorkspaceRow) -> bool:
    """Whether the engine waits for its claim before the start hooks.

    Also when it has an owner already: an engine that died before it heard of that is told when it
    is started again, for only a claim gives its branch the owner's name. Once one did hear of it,
    the workspace has no pool any more.
    """
    return row.warm_pool_id is not None and row.status == WorkspaceStatus.PREPARING


def hook_seconds(variables: Mapping[str, str]) -> float:
    """How long a hook may run: what the environment's variable says, within bounds."""
    try:
        asked = float(variables.get(HOOK_SECONDS_VARIABLE, ""))
    except ValueError:
        return HOOK_SECONDS
    return min(asked, MOST_HOOK_SECONDS) if asked >= 1 else HOOK_SECONDS


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
    """Under names that differ: two layers may be called the same."""
    found: dict[str, SetupHook] = {}
    for number, hook in enumerate(hooks, 1):
        name = hook.name if hook.name not in found else f"{hook.name} ({number})"
        found[name] = SetupHook(kind=kind, name=name, script=hook.content)
    return list(found.values())


async def _place_of(context: ServiceContext, url: str, slug: str) -> str:
    """The directory of a skill whose source names none: the top, or of many the one of its name."""
    held = {file.path for file in await context.sandboxes.find_in_tree(url, SKILL_FILE)}
    return slug if SKILL_FILE not in held and f"{slug}/{SKILL_FILE}" in held else ""


async def _skill(context: ServiceContext, skill: BundleSkill, report: Progress) -> SetupSkill:
    report(f"Reading the skill {skill.name}")
    url, _, directory = skill.source.partition("#")
    try:
        place = directory or await _place_of(context, url, skill.slug)
        found = await context.sandboxes.read_tree(url, place)
    except SandboxError as e:
        raise SandboxError(f"The skill {skill.name} could not be read: {e}", e.details) from e
    if not any(file.path == SKILL_FILE for file in found):
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
                for file in found
            ],
        )
    )
