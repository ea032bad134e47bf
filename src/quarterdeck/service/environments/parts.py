"""The parts of an environment: variables, files, skills and MCP servers.

Values of variables, files and configurations of servers may be secrets: they are sealed before they reach
the database.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar
from uuid import uuid4

from pydantic import BaseModel
from sqlalchemy import Connection, RowMapping, Table
from sqlalchemy.exc import IntegrityError

from quarterdeck.sandboxes.errors import NotARepositoryError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.records import as_record, readable, stored_json
from quarterdeck.service.db.tables import (
    environment_files,
    environment_mcps,
    environment_skills,
    environment_variables,
)
from quarterdeck.service.environments.rows import (
    Layer,
    add_part,
    change_part,
    find_part,
    list_parts,
    remove_part,
)
from quarterdeck.service.environments.service import (
    reach,
    reach_layers,
    reach_layers_to_change,
    reach_to_change,
)
from quarterdeck.service.environments.skill_registries import registries_of
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import is_owner, reaches_private
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.service import Caller, MemberRole
from quarterdeck.service.quotas import require_part_room
from quarterdeck.service.vault import Vault
from quarterdeck.wire.environment_parts import (
    FILES_LIMIT,
    FILES_MOST,
    RESERVED_KEYS,
    ChangeFile,
    ChangeMcp,
    ChangeVariable,
    CreateFile,
    CreateMcp,
    CreateSkill,
    CreateVariable,
    EnvironmentFile,
    EnvironmentMcp,
    EnvironmentSkill,
    EnvironmentVariable,
    McpTransport,
    checked_config,
)
from quarterdeck.wire.errors import ErrorCode

Part = TypeVar("Part", bound=BaseModel)
Columns = Mapping[str, Any]
Check = Callable[[Connection, Sequence[Layer], Columns], None]


def _accept(connection: Connection, layers: Sequence[Layer], columns: Columns) -> None:
    """Accept every part."""


@dataclass(frozen=True)
class PartKind(Generic[Part]):
    """Parts of one kind: where they are stored and how a row is read.

    `conflict` is the message for one with the `unique` columns of another; `check` refuses others,
    given the layers of the environment and the columns of the part.
    """

    noun: str
    table: Table
    read: Callable[[Vault, RowMapping], Part]
    unique: tuple[str, ...]
    conflict: str
    check: Check = _accept

    async def list_own(
        self, context: ServiceContext, caller: Caller, environment: str
    ) -> list[Part]:
        """Return the environment's own parts, in the order of lists.

        Raises:
            ApiError: NOT_FOUND.
            StorageError: a sealed value cannot be opened.
        """

        def run(connection: Connection) -> list[Part]:
            rows = list_parts(connection, self.table, reach(connection, caller, environment))
            return readable(rows, partial(self.read, context.vault))

        return await context.database.read(run)

    async def add(
        self, context: ServiceContext, caller: Caller, environment: str, id: str, columns: Columns
    ) -> Part:
        """Store a part.

        Raises:
            ApiError: NOT_FOUND, FORBIDDEN, QUOTA_REACHED; CONFLICT for a duplicate; the errors of
                `check`.
        """
        now = moment_text(context.clock())

        def run(connection: Connection) -> Part:
            layers = reach_layers_to_change(connection, caller, environment)
            own = {
                "id": id,
                "organization_id": caller.organization_id,
                "environment_id": layers[-1].id,
            }
            self.check(connection, layers, {**own, **columns})
            require_part_room(connection, self.table, layers[-1].id, self.noun)
            add_part(connection, self.table, **own, **columns, created_at=now, updated_at=now)
            return self.read(context.vault, self._row(connection, layers[-1].id, id))

        return await self._written(context, run, columns)

    async def change(
        self,
        context: ServiceContext,
        caller: Caller,
        environment: str,
        id: str,
        change: Callable[[RowMapping], Columns],
    ) -> Part:
        """Set the columns that `change` returns for the current row.

        Raises:
            ApiError: as `add`; the errors of `change`.
        """
        now = moment_text(context.clock())
        changed: dict[str, Any] = {}

        def run(connection: Connection) -> Part:
            layers = reach_layers_to_change(connection, caller, environment)
            row = self._row(connection, layers[-1].id, id)
            changed.update(change(row))
            self.check(connection, layers, {**row, **changed})
            change_part(connection, self.table, id, **changed, updated_at=now)
            return self.read(context.vault, self._row(connection, layers[-1].id, id))

        return await self._written(context, run, changed)

    async def remove(
        self, context: ServiceContext, caller: Caller, environment: str, id: str
    ) -> None:
        """Remove a part; workspaces keep theirs until they start again.

        Raises:
            ApiError: NOT_FOUND, FORBIDDEN.
        """

        def run(connection: Connection) -> None:
            own = reach_to_change(connection, caller, environment)
            if not remove_part(connection, self.table, own, id):
                raise self._not_found()

        await context.database.write(run)

    async def _written(
        self, context: ServiceContext, run: Callable[[Connection], Part], columns: Columns
    ) -> Part:
        try:
            return await context.database.write(run)
        except IntegrityError as e:
            details = "; ".join(f"{name}: {columns.get(name)}" for name in self.unique)
            raise ApiError(ErrorCode.CONFLICT, self.conflict, details) from e

    def _row(self, connection: Connection, environment_id: str, id: str) -> RowMapping:
        row = find_part(connection, self.table, environment_id, id)
        if row is None:
            raise self._not_found()
        return row

    def _not_found(self) -> ApiError:
        message = f"The environment has no {self.noun} of this id."
        return ApiError(ErrorCode.NOT_FOUND, message)


# Variables


def _read_variable(
    vault: Vault, row: RowMapping, *, suppressed: bool = False
) -> EnvironmentVariable:
    value = vault.unseal(row["id"], row["value_sealed"])
    columns = {name: value for name, value in row.items() if name != "value_sealed"}
    return as_record(EnvironmentVariable, {**columns, "value": value, "suppressed": suppressed})


def _check_variable(connection: Connection, layers: Sequence[Layer], columns: Columns) -> None:
    key = columns["key"]
    if key in RESERVED_KEYS:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"The sandbox sets {key} itself; a variable of this key would have no effect.",
            f"key: {key}",
        )
    below = _fixed_keys(connection, layers).get(key)
    if below is not None:
        raise ApiError(
            ErrorCode.FORBIDDEN,
            f"The variable is inherited from {below.name}, which does not let personal "
            "environments override it.",
            f"key: {key}",
        )


def _fixed_keys(connection: Connection, layers: Sequence[Layer]) -> dict[str, Layer]:
    """Return the variables that the environment inherits and may not override, and their origin.

    Only a personal environment with a source is restricted by inherited variables.
    """
    own = layers[-1]
    if own.user_id is None or own.source_environment_id is None:
        return {}
    fixed: dict[str, Layer] = {}
    for below in layers[:-1]:
        for row in list_parts(connection, environment_variables, below.id):
            fixed.pop(row["key"], None)
            if not row["personal_override_allowed"]:
                fixed[row["key"]] = below
    return fixed


VARIABLES = PartKind(
    "variable",
    environment_variables,
    _read_variable,
    ("key",),
    "The environment has a variable of this key.",
    _check_variable,
)


async def list_variables(
    context: ServiceContext, caller: Caller, environment: str
) -> list[EnvironmentVariable]:
    """Return the environment's own variables, by key, with their values.

    Raises:
        ApiError: NOT_FOUND.
        StorageError: a value cannot be opened.
    """

    def run(connection: Connection) -> list[EnvironmentVariable]:
        layers = reach_layers(connection, caller, environment)
        fixed = _fixed_keys(connection, layers)
        rows = list_parts(connection, environment_variables, layers[-1].id)
        vault = context.vault

        def read(row: RowMapping) -> EnvironmentVariable:
            return _read_variable(vault, row, suppressed=row["key"] in fixed)

        return readable(rows, read)

    return await context.database.read(run)


async def add_variable(
    context: ServiceContext, caller: Caller, environment: str, body: CreateVariable
) -> EnvironmentVariable:
    """Store a variable.

    Raises:
        ApiError: NOT_FOUND, CONFLICT for an existing key, FORBIDDEN for one that is inherited
            and may not be overridden, INVALID_REQUEST for one that the sandbox sets itself.
    """
    id = str(uuid4())
    columns = {**body.model_dump(), "value_sealed": context.vault.seal(id, body.value)}
    del columns["value"]
    return await VARIABLES.add(context, caller, environment, id, columns)


async def change_variable(
    context: ServiceContext, caller: Caller, environment: str, id: str, body: ChangeVariable
) -> EnvironmentVariable:
    """Change the given fields of a variable.

    Raises:
        ApiError: as `add_variable`.
    """
    given = body.model_dump(include=body.model_fields_set)
    if "value" in given:
        given["value_sealed"] = context.vault.seal(id, given.pop("value"))
    return await VARIABLES.change(context, caller, environment, id, lambda _: given)


# Files


def _check_file(connection: Connection, layers: Sequence[Layer], columns: Columns) -> None:
    rows = list_parts(connection, environment_files, layers[-1].id)
    others = [row for row in rows if row["id"] != columns["id"]]
    if any(row["path"] == columns["path"] for row in others):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,  # the contract has no conflict here
            "The environment has another file with this path.",
            f"path: {columns['path']}",
        )
    # Changes that add nothing are accepted: an earlier version had no limits.
    if len(others) == len(rows) >= FILES_MOST:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"An environment has at most {FILES_MOST} files.",
            f"path: {columns['path']}",
        )
    before, after = (
        sum(Vault.size_of(row["content_sealed"]) for row in all)
        for all in (rows, [*others, columns])
    )
    if after > max(before, FILES_LIMIT):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"The files of an environment have at most {FILES_LIMIT} bytes together.",
            f"content: {after} bytes together",
        )


def _read_file(vault: Vault, row: RowMapping) -> EnvironmentFile:
    content = vault.unseal(row["id"], row["content_sealed"])
    columns = {name: value for name, value in row.items() if name != "content_sealed"}
    return as_record(EnvironmentFile, {**columns, "content": content})


FILES = PartKind(
    "file",
    environment_files,
    _read_file,
    ("path",),
    "The environment has another file with this path.",
    _check_file,
)


async def add_file(
    context: ServiceContext, caller: Caller, environment: str, body: CreateFile
) -> EnvironmentFile:
    """Store a file.

    Raises:
        ApiError: NOT_FOUND; INVALID_REQUEST when another file has the path, or there are too many.
    """
    id = str(uuid4())
    columns = {
        "path": body.path,
        "name": body.name or body.path.rsplit("/", 1)[-1],
        "content_sealed": context.vault.seal(id, body.content),
    }
    return await FILES.add(context, caller, environment, id, columns)


async def change_file(
    context: ServiceContext, caller: Caller, environment: str, id: str, body: ChangeFile
) -> EnvironmentFile:
    """Change the given fields of a file.

    Raises:
        ApiError: as `add_file`.
    """
    given = body.model_dump(include=body.model_fields_set)
    if "content" in given:
        given["content_sealed"] = context.vault.seal(id, given.pop("content"))
    return await FILES.change(context, caller, environment, id, lambda _: given)


# Skills

SKILLS = PartKind(
    "skill",
    environment_skills,
    lambda _, row: as_record(EnvironmentSkill, row),
    ("slug", "source"),
    "A skill with this slug or this source is enabled already.",
)


async def add_skill(
    context: ServiceContext, caller: Caller, environment: str, body: CreateSkill
) -> EnvironmentSkill:
    """Enable a skill. Its source is read when a workspace starts; now it only has to exist.

    Raises:
        ApiError: NOT_FOUND, CONFLICT for a slug or a source that is enabled already, INVALID_REQUEST
            for a local source that does not exist, FORBIDDEN for a path that the caller may not name.
    """
    url = body.source.partition("#")[0]
    private = await reaches_private(context.database, context.outgoing_private, caller.user_id)
    try:
        trusted = url in await asyncio.to_thread(registries_of, context.home)
        if not trusted and await context.sources.is_local(url):
            _check_local(caller)
            trusted = True
        login = trusted or await context.database.read(
            lambda c: (
                reach_layers_to_change(c, caller, environment)[-1].user_id is None
                or is_owner(c, caller.user_id)
            )
        )
        await context.sources.require_source(url, private, login)
    except NotARepositoryError as e:
        details = f"source: {e.details}" if e.details else "source"
        raise ApiError(ErrorCode.INVALID_REQUEST, str(e), details) from e
    return await SKILLS.add(context, caller, environment, str(uuid4()), body.model_dump())


def _check_local(caller: Caller) -> None:
    """Let only admins name paths: the service reads them with its own rights, not the caller's.

    Raises:
        ApiError: FORBIDDEN for another caller.
    """
    if caller.role is not MemberRole.ADMIN:
        raise ApiError(
            ErrorCode.FORBIDDEN,
            "Only an admin of the organization may use a path on the service's machine. Use a git "
            "URL, or a skill that qd env skills search finds.",
            "source",
        )


# MCP servers


def _read_mcp(vault: Vault, row: RowMapping) -> EnvironmentMcp:
    config = stored_json(vault.unseal(row["id"], row["config_sealed"]), dict)
    columns = {name: value for name, value in row.items() if name != "config_sealed"}
    return as_record(EnvironmentMcp, {**columns, "config": config})


MCPS = PartKind(
    "MCP server",
    environment_mcps,
    _read_mcp,
    ("name",),
    "The environment has an MCP server of this name.",
)


async def add_mcp(
    context: ServiceContext, caller: Caller, environment: str, body: CreateMcp
) -> EnvironmentMcp:
    """Store a server.

    Raises:
        ApiError: NOT_FOUND, CONFLICT for an existing name.
    """
    id = str(uuid4())
    columns = _mcp_columns(context.vault, id, body.name, body.transport, body.config)
    return await MCPS.add(context, caller, environment, id, columns)


async def change_mcp(
    context: ServiceContext, caller: Caller, environment: str, id: str, body: ChangeMcp
) -> EnvironmentMcp:
    """Change the given fields of a server; the result must be consistent.

    Raises:
        ApiError: as `add_mcp`; INVALID_REQUEST when transport and configuration do not fit.
    """
    given = body.model_dump(mode="json", include=body.model_fields_set)

    def change(row: RowMapping) -> Columns:
        after = _read_mcp(context.vault, row).model_copy(update=given)
        try:
            config = checked_config(McpTransport(after.transport), after.config)
        except ValueError as e:
            message = "The configuration does not fit the transport."
            raise ApiError(ErrorCode.INVALID_REQUEST, message, f"config: {e}") from e
        return _mcp_columns(context.vault, id, after.name, after.transport, config)

    return await MCPS.change(context, caller, environment, id, change)


def _mcp_columns(
    vault: Vault, id: str, name: str, transport: str, config: dict[str, Any]
) -> Columns:
    sealed = vault.seal(id, json.dumps(config))
    return {"name": name, "transport": str(transport), "config_sealed": sealed}
