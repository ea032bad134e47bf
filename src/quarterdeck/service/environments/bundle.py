"""The merged setup that environments give a workspace (docs/interface.md 7).

The global environment is the lowest layer, then the source, then the environment itself. An upper
layer replaces entries of lower ones: a variable by its key, a file by its path, a skill by its
slug, an MCP server by its name. Prompts and hooks add up, in that order. A personal environment
with a source replaces an inherited variable only where that allows it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sqlalchemy import Connection

from quarterdeck.service.agents.rows import list_credentials, note_fetched
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import (
    environment_files,
    environment_mcps,
    environment_skills,
    environment_variables,
)
from quarterdeck.service.environments.rows import Layer, active_hook, decided, layers_of, list_parts
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import is_owner
from quarterdeck.service.formats import moment_text
from quarterdeck.service.vault import Vault
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.setup import HookKind

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

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
        StorageError: a secret cannot be opened.
    """
    layers = layers_of(connection, organization_id, environment_id)
    if not layers:
        raise ApiError(
            ErrorCode.NOT_FOUND, "No environment has this id.", f"environment_id: {environment_id}"
        )
    prompts = [layer.system_prompt for layer in layers if layer.system_prompt]
    preferences = [layer.personal_preferences for layer in layers if layer.personal_preferences]
    return Bundle(
        variables=_variables(connection, vault, layers),
        files=_files(connection, layers),
        skills=_skills(connection, layers),
        mcps=_mcps(connection, vault, layers),
        system_prompt=BETWEEN_PROMPTS.join(prompts) or None,
        personal_preferences=preferences[-1] if preferences else None,
        warm_hooks=_hooks(connection, layers, HookKind.WARM),
        start_hooks=_hooks(connection, layers, HookKind.START),
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


def _files(connection: Connection, layers: Sequence[Layer]) -> list[BundleFile]:
    merged: dict[str, str] = {}
    for layer in layers:
        for row in list_parts(connection, environment_files, layer.id):
            merged[row["path"]] = row["content"]
    return [BundleFile(path, content) for path, content in merged.items()]


def _skills(connection: Connection, layers: Sequence[Layer]) -> list[BundleSkill]:
    merged: dict[str, BundleSkill] = {}
    for layer in layers:
        for row in list_parts(connection, environment_skills, layer.id):
            merged[row["slug"]] = BundleSkill(row["name"], row["slug"], row["source"])
    return list(merged.values())


def _mcps(connection: Connection, vault: Vault, layers: Sequence[Layer]) -> list[BundleMcp]:
    merged: dict[str, BundleMcp] = {}
    for layer in layers:
        for row in list_parts(connection, environment_mcps, layer.id):
            config = json.loads(vault.unseal(row["id"], row["config_sealed"]))
            merged[row["name"]] = BundleMcp(row["name"], row["transport"], config)
    return list(merged.values())


def _hooks(connection: Connection, layers: Sequence[Layer], kind: HookKind) -> list[BundleHook]:
    found = [(layer, active_hook(connection, layer.id, kind)) for layer in layers]
    return [BundleHook(layer.name, row["content"]) for layer, row in found if row is not None]
