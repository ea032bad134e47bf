"""The setup of a workspace: the merged parts of its environments (docs/interface.md 7)."""

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import Connection

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import Layout, Progress
from quarterdeck.service.agents.rows import list_credentials, note_fetched
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import (
    environment_files,
    environment_mcps,
    environment_skills,
    environment_variables,
)
from quarterdeck.service.environments.rows import (
    Layer,
    active_hook,
    decided,
    layers_of,
    list_hook_logs,
    list_parts,
)
from quarterdeck.service.environments.skill_registries import registries_of
from quarterdeck.service.environments.warm_pool_rows import WarmState
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import is_owner
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.rows import WorkspaceRow
from quarterdeck.service.vault import Vault
from quarterdeck.wire.environment_parts import RESERVED_KEYS
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.inside import (
    CA_VARIABLE,
    SECRET_VARIABLE,
    URL_VARIABLE,
    WORKSPACE_VARIABLE,
)
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

BETWEEN_PROMPTS = "\n\n"


class BundleFile(NamedTuple):
    """A file to write; `path` begins with `~/`."""

    path: str
    content: str


class BundleSkill(NamedTuple):
    """A skill to install from `source`."""

    name: str
    slug: str
    source: str
    by_owner: bool = False
    """Whether the owner or an admin named the source: it may have a private address and be read with credentials."""


@dataclass(frozen=True)
class BundleMcp:
    """A server for the agent; `config` has the contract's form for the transport."""

    name: str
    transport: str
    config: dict[str, Any] = field(repr=False)


class BundleHook(NamedTuple):
    """A script to run; `name` is that of the environment it comes from."""

    name: str
    content: str


@dataclass(frozen=True)
class Bundle:
    """The merged content, with secrets in plain text: never log it. Its repr has none."""

    variables: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    files: list[BundleFile] = field(default_factory=list[BundleFile], repr=False)
    skills: list[BundleSkill] = field(default_factory=list[BundleSkill])
    mcps: list[BundleMcp] = field(default_factory=list[BundleMcp])
    system_prompt: str | None = None
    personal_preferences: str | None = None
    warm_hooks: list[BundleHook] = field(default_factory=list[BundleHook])
    start_hooks: list[BundleHook] = field(default_factory=list[BundleHook])
    co_author: str | None = None
    credentials: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """The key of each provider; a personal one comes first."""


async def bundle_for_start(
    context: ServiceContext, organization_id: str, user_id: str | None, environment_id: str
) -> Bundle:
    """Return the bundle of a workspace that is being started, and mark its keys as fetched.

    For providers without a key, the owner gets the one in the service's environment, if any.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
        StorageError: the database cannot be used, or a secret cannot be opened.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> Bundle:
        credentials = list_credentials(connection, organization_id, user_id)
        if credentials:
            note_fetched(connection, [row["id"] for row in credentials], now)
        bundle = compose_bundle(connection, context.vault, organization_id, user_id, environment_id)
        if not is_owner(connection, user_id):
            return bundle
        return replace(bundle, credentials={**context.own_keys(), **bundle.credentials})

    return await context.database.write(run)


def compose_bundle(
    connection: Connection,
    vault: Vault,
    organization_id: str,
    user_id: str | None,
    environment_id: str,
) -> Bundle:
    """Merge the layers of an environment; `user_id` is the user whose personal keys come first.

    The global environment is the lowest layer, then the source, then the environment itself. An
    upper layer replaces entries of lower ones: a variable by its key, a file by its path, a skill by
    its slug, an MCP server by its name. Prompts and hooks add up, in that order. A personal
    environment with a source replaces an inherited variable only where that allows it. A personal
    environment of another user adds nothing.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
        StorageError: a secret cannot be opened.
    """
    layers = layers_of(connection, organization_id, environment_id)
    if not layers:
        raise ApiError(
            ErrorCode.NOT_FOUND, "No environment has this id.", f"environment_id: {environment_id}"
        )
    # Earlier versions let a fork keep the environment of another user.
    layers = [layer for layer in layers if layer.user_id in (None, user_id)]
    prompts = [layer.system_prompt for layer in layers if layer.system_prompt]
    preferences = [layer.personal_preferences for layer in layers if layer.personal_preferences]
    return Bundle(
        variables=_variables(connection, vault, layers),
        files=_files(connection, vault, layers),
        skills=_skills(connection, layers),
        mcps=_mcps(connection, vault, layers),
        system_prompt=BETWEEN_PROMPTS.join(prompts) or None,
        personal_preferences=preferences[-1] if preferences else None,
        warm_hooks=_hooks_of_layers(connection, layers, HookKind.WARM),
        start_hooks=_hooks_of_layers(connection, layers, HookKind.START),
        co_author=decided(layers, "co_author"),
        credentials={
            row["provider"]: vault.unseal(row["id"], row["key_sealed"])
            for row in list_credentials(connection, organization_id, user_id)
        },
    )


def _variables(connection: Connection, vault: Vault, layers: Sequence[Layer]) -> dict[str, str]:
    merged: dict[str, str] = {}
    fixed: set[str] = set()
    for layer in layers:
        inherits = layer.user_id is not None and layer.source_environment_id is not None
        for row in list_parts(connection, environment_variables, layer.id):
            # Checked when it is set too; but the inherited one may be newer than this one.
            if inherits and row["key"] in fixed:
                continue
            merged[row["key"]] = vault.unseal(row["id"], row["value_sealed"])
            if row["personal_override_allowed"]:
                fixed.discard(row["key"])
            else:
                fixed.add(row["key"])
    return merged


def _files(connection: Connection, vault: Vault, layers: Sequence[Layer]) -> list[BundleFile]:
    merged: dict[str, str] = {}
    for layer in layers:
        for row in list_parts(connection, environment_files, layer.id):
            merged[row["path"]] = vault.unseal(row["id"], row["content_sealed"])
    return [BundleFile(path, content) for path, content in merged.items()]


def _skills(connection: Connection, layers: Sequence[Layer]) -> list[BundleSkill]:
    merged: dict[str, BundleSkill] = {}
    for layer in layers:
        for row in list_parts(connection, environment_skills, layer.id):
            by_owner = layer.user_id is None or is_owner(connection, layer.user_id)
            merged[row["slug"]] = BundleSkill(row["name"], row["slug"], row["source"], by_owner)
    return list(merged.values())


def _mcps(connection: Connection, vault: Vault, layers: Sequence[Layer]) -> list[BundleMcp]:
    merged: dict[str, BundleMcp] = {}
    for layer in layers:
        for row in list_parts(connection, environment_mcps, layer.id):
            config = json.loads(vault.unseal(row["id"], row["config_sealed"]))
            merged[row["name"]] = BundleMcp(row["name"], row["transport"], config)
    return list(merged.values())


def _hooks_of_layers(
    connection: Connection, layers: Sequence[Layer], kind: HookKind
) -> list[BundleHook]:
    hooks = [(layer, active_hook(connection, layer.id, kind)) for layer in layers]
    return [BundleHook(layer.name, row["content"]) for layer, row in hooks if row is not None]


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
            McpServer(name=mcp.name, transport=mcp.transport, config=mcp.config)
            for mcp in bundle.mcps
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


async def _place_of(
    context: ServiceContext, url: str, slug: str, private: bool, login: bool
) -> str:
    """Return the directory of a skill whose source names none: the top, or the one of its name."""
    files = await context.sources.find_in_tree(url, SKILL_FILE, private, login)
    paths = {file.path for file in files}
    return slug if SKILL_FILE not in paths and f"{slug}/{SKILL_FILE}" in paths else ""


async def _skill(context: ServiceContext, skill: BundleSkill, report: Progress) -> SetupSkill:
    report(f"Reading the skill {skill.name}")
    url, _, directory = skill.source.partition("#")
    allowed = context.outgoing_private
    private = skill.by_owner if allowed is None else allowed
    try:
        login = (
            skill.by_owner
            or await context.sources.is_local(url)  # which only an admin may have named
            or url in await asyncio.to_thread(registries_of, context.home)
        )
        place = directory or await _place_of(context, url, skill.slug, private, login)
        files = await context.sources.read_tree(url, place, private, login)
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
    logs = _logs.validate_python(
        await context.database.read(lambda c: list_hook_logs(c, workspace_id))
    )
    return HookLogs(
        warm_hooks=HookLogList(logs=[log for log in logs if log.hook_type == HookKind.WARM]),
        start_hooks=HookLogList(logs=[log for log in logs if log.hook_type == HookKind.START]),
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


def way_out(row: WorkspaceRow, secret: str, layout: Layout) -> dict[str, str]:
    """Return the variables of a workspace's processes; none in a sandbox without network access."""
    if layout.service_url is None:
        return {}
    variables = {
        URL_VARIABLE: layout.service_url,
        WORKSPACE_VARIABLE: row.id,
        SECRET_VARIABLE: secret,
    }
    if layout.service_ca is not None:
        variables[CA_VARIABLE] = layout.service_ca
    return variables
