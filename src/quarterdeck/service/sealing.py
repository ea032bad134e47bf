"""The sealed values of a database: those of an earlier version are sealed, and lost ones removed."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Table, delete, select, update

from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import (
    automations,
    environment_files,
    metadata,
    settings,
    webhook_deliveries,
    workspaces,
)
from quarterdeck.service.errors import HomeUnusableError, InvalidMasterKeyError
from quarterdeck.service.vault import NAME, Vault, webhook_place

PLAIN = "plain-secrets"
"""A setting that the migration stores: values are in plain text in columns for sealed ones."""
_SUFFIX = "_sealed"


async def open_vault(database: Database, key_file: Path, new_key: bool) -> Vault:
    """Open the vault of a database; with `new_key`, without the values of a key that was lost.

    Raises:
        HomeUnusableError: the key is missing while there are values that were sealed with it, or
            its file cannot be used; with `new_key`, when there is a key.
    """
    if new_key:
        await _discard_lost(database, key_file)
    elif not await asyncio.to_thread(key_file.exists) and await database.read(has_sealed):
        raise HomeUnusableError(
            f"The master key {key_file} is missing, and the database has values that were encrypted "
            "with it: environment variables, files, credentials and others. Restore that file from a "
            "backup and start again. If it is lost, qd serve --new-key starts without these values, "
            "which then have to be set again."
        )
    return await Vault.open(key_file)


async def seal_all(database: Database, vault: Vault) -> None:
    """Seal what an earlier version stored in plain text; before anything else is written."""
    await database.write(lambda c: seal_plain(c, vault))


async def _discard_lost(database: Database, key_file: Path) -> None:
    try:
        if await asyncio.to_thread(key_file.exists):
            await Vault.open(key_file)
            raise HomeUnusableError(
                f"There is a master key, {key_file}. --new-key is for one that was lost: move that "
                "file away first if the values that were encrypted with it are not needed."
            )
    except InvalidMasterKeyError:
        await asyncio.to_thread(os.replace, key_file, key_file.with_suffix(".damaged"))
    # Before there is a new key: a start that is interrupted between the two loses nothing more.
    await database.write(discard_sealed)


def has_sealed(connection: Connection) -> bool:
    """Return whether there is any value that only the master key can open."""
    not_yet = _PLAIN_COLUMNS if _is_plain(connection) else ()
    return any(
        connection.execute(select(column).where(column.is_not(None), column != "").limit(1)).first()
        for _, column in _sealed_columns()
        if not any(column is each for each in not_yet)
    )


def discard_sealed(connection: Connection) -> None:
    """Remove all sealed values, and what consists of nothing else."""
    connection.execute(delete(settings).where(settings.c.name == NAME))
    # Without its secret, calls of a webhook would be accepted unsigned.
    connection.execute(update(automations).values(webhook_token_hash=None))
    for table, column in _sealed_columns():
        if column.nullable:
            connection.execute(update(table).values({column.name: None}))
        elif column.server_default is not None:
            connection.execute(update(table).values({column.name: ""}))
        else:
            connection.execute(delete(table))


def seal_plain(connection: Connection, vault: Vault) -> None:
    """Seal what an earlier version stored in plain text, and make engine secrets that are missing."""
    if _is_plain(connection):
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA secure_delete=ON")  # overwrites the plain text
        for column in _PLAIN_COLUMNS:
            _seal(connection, vault, column)
        connection.execute(delete(settings).where(settings.c.name == PLAIN))
    missing = workspaces.c.engine_secret_sealed == ""
    for id in connection.execute(select(workspaces.c.id).where(missing)).scalars().all():
        values = {"engine_secret_sealed": vault.new_engine_secret(id)}
        connection.execute(update(workspaces).where(workspaces.c.id == id).values(values))


_PLAIN_COLUMNS = (
    workspaces.c.engine_secret_sealed,
    workspaces.c.webhook_url_sealed,
    webhook_deliveries.c.url_sealed,
    environment_files.c.content_sealed,
)
"""What an earlier version stored in plain text."""
_OF_ORGANIZATION = (workspaces.c.webhook_url_sealed, webhook_deliveries.c.url_sealed)
"""Sealed for the organization of the row, as a call has the text of its workspace."""


def _is_plain(connection: Connection) -> bool:
    plain = select(settings.c.name).where(settings.c.name == PLAIN)
    return connection.execute(plain).first() is not None


def _seal(connection: Connection, vault: Vault, column: Column[Any]) -> None:
    table = column.table
    rows = select(table.c.id, table.c.organization_id, column).where(column.is_not(None))
    for id, organization_id, text in connection.execute(rows).all():
        place = (
            webhook_place(organization_id)
            if any(column is each for each in _OF_ORGANIZATION)
            else id
        )
        values = {column.name: vault.seal(place, text)}
        connection.execute(update(table).where(table.c.id == id).values(values))


def _sealed_columns() -> Iterator[tuple[Table, Column[Any]]]:
    for table in metadata.sorted_tables[::-1]:
        for column in table.columns:
            if column.name.endswith(_SUFFIX):
                yield table, column
