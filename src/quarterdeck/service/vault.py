"""The master key, and encryption with it.

Encrypts values that must not be readable from the database alone.

One master key, in a file beside the database that only its owner reads; every use has its own key,
derived from it. Several services on one database share the file.

A shared database belongs to one master key.

Secrets are sealed with it: a service with another key could open none of them. So it is refused
before it changes anything. Services that share a database each have their own home, and a copy of
the key. When it opens a database, values of an earlier version are sealed, and lost ones removed.
"""

import asyncio
import base64
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy import Column, Connection, Table, delete, insert, select, update

from quarterdeck.local.files import read_file, sync_directory, write_file
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.erasure import erase_removed
from quarterdeck.service.db.tables import (
    automations,
    environment_files,
    metadata,
    settings,
    webhook_deliveries,
    workspaces,
)
from quarterdeck.service.errors import (
    ForeignDatabaseError,
    HomeUnusableError,
    InvalidMasterKeyError,
    SealedError,
)


def read_key_file(path: Path, way_out: str) -> str | None:
    """Return a key file's text, or None when there is no file.

    Raises:
        HomeUnusableError: it cannot be read; `way_out` is the sentence that says what to do.
    """
    try:
        return read_file(path).decode().strip()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as e:
        raise HomeUnusableError(f"The key file {path} holds no text. {way_out}") from e
    except OSError as e:
        raise HomeUnusableError(
            f"The key file {path} cannot be read: {e.strerror}. {way_out}"
        ) from e


def write_key_file(path: Path, key: str) -> None:
    """Write a key to the disk durably, replacing an earlier one.

    Raises:
        HomeUnusableError: it cannot be written.
    """
    try:
        write_file(path, key + "\n")
        sync_directory(path.parent)
    except OSError as e:
        raise HomeUnusableError(f"The key file {path} cannot be written: {e.strerror}.") from e


KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
SECRET_BYTES = 32
_LOST_KEY = (
    "Restore the right one from a backup and start again: without it stored secrets cannot be decrypted. "
    "If it is lost, move that file away: qd serve --new-key then starts without these values, which have "
    "to be set again."
)
SEALED_MARK = "v1:"
"""Prefix of every sealed text, so that another scheme can follow."""


class Vault:
    """Seals texts to the row they belong to: moved to another row, they do not open."""

    def __init__(self, master: bytes) -> None:
        self._master = master
        self._cipher = AESGCM(self.derived("seal"))

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Read the master key, or create one.

        Raises:
            HomeUnusableError: the file cannot be read or written, or has no key.
        """
        return cls(await asyncio.to_thread(_read_or_make, path))

    def seal(self, row_id: str, text: str) -> str:
        """Return the sealed text, for the row of this id."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, text.encode(), row_id.encode())
        return SEALED_MARK + base64.b64encode(sealed).decode()

    @staticmethod
    def size_of(sealed: str) -> int:
        """Return how many bytes the plain text has."""
        raw = base64.b64decode(sealed.removeprefix(SEALED_MARK))
        return len(raw) - NONCE_BYTES - TAG_BYTES

    def unseal(self, row_id: str, sealed: str) -> str:
        """Return the plain text.

        Raises:
            SealedError: it was sealed with another key, for another row, or was changed.
        """
        try:
            raw = base64.b64decode(sealed.removeprefix(SEALED_MARK), validate=True)
            nonce, text = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
            return self._cipher.decrypt(nonce, text, row_id.encode()).decode()
        except (InvalidTag, ValueError) as e:
            raise SealedError(
                "A secret cannot be opened with this installation's key. Set it again, or bring "
                "back the key file that belongs to the database."
            ) from e

    def opens(self, row_id: str, sealed: str) -> bool:
        """Return whether it was sealed with this key, for this row."""
        try:
            self.unseal(row_id, sealed)
        except SealedError:
            return False
        return True

    def new_engine_secret(self, workspace_id: str) -> str:
        """Return a new secret for the engine of a workspace, sealed."""
        return self.seal(workspace_id, secrets.token_hex(SECRET_BYTES))

    def derived(self, use: str) -> bytes:
        """Return a derived key of 32 bytes for another use."""
        return HKDF(SHA256(), KEY_BYTES, salt=None, info=f"quarterdeck {use}".encode()).derive(
            self._master
        )


def _read_or_make(path: Path) -> bytes:
    text = read_key_file(path, _LOST_KEY)
    if text is None:
        master = secrets.token_bytes(KEY_BYTES)
        write_key_file(path, base64.b64encode(master).decode())
        return master
    try:
        master = base64.b64decode(text, validate=True)
    except ValueError:
        master = b""
    if len(master) != KEY_BYTES:
        raise InvalidMasterKeyError(f"The key file {path} holds no key. {_LOST_KEY}")
    return master


def webhook_place(organization_id: str) -> str:
    """Return the id that the addresses of an organization's webhooks are sealed to."""
    return f"{organization_id} webhook"


NAME = "installation"


async def claim(database: Database, vault: Vault, key_file: Path) -> None:
    """Mark a new database as belonging to a master key.

    Raises:
        ForeignDatabaseError: it belongs to another key.
        StorageError: it cannot be read or written.
    """
    shared = database.shared
    if await database.write(lambda c: _record_owner(c, vault, shared)):
        return
    if shared:
        raise ForeignDatabaseError(
            "The database belongs to another installation, whose master key this home does not "
            f"have. To share the database, copy service/master.key of a home that uses it to "
            f"{key_file} (mode 0600) and start again; or name another database."
        )
    raise ForeignDatabaseError(
        f"The master key {key_file} is not the one that values of the database were encrypted with. "
        f"{_LOST_KEY}"
    )


def _record_owner(connection: Connection, vault: Vault, shared: bool) -> bool:
    """Record that the database belongs to this key; return False if it belongs to another."""
    own = vault.derived(NAME).hex()
    stored = connection.execute(select(settings.c.value).where(settings.c.name == NAME)).scalar()
    if stored == own:
        return True
    if stored is not None and (shared or has_sealed(connection)):
        return False
    if stored is None and not _opens_values(connection, vault):
        return False
    connection.execute(delete(settings).where(settings.c.name == NAME))
    connection.execute(insert(settings).values(name=NAME, value=own, revision=0))
    return True


def _opens_values(connection: Connection, vault: Vault) -> bool:
    """Return whether the key opens the stored values, for a database without a recorded owner."""
    not_yet = _PLAIN_COLUMNS if _is_plain(connection) else ()
    opened: list[bool] = []
    for table, column in _sealed_columns():
        if column.name in _OF_ROW and not any(column is each for each in not_yet):
            one = select(table.c.id, column).where(column != "").limit(1)
            opened += [vault.opens(id, sealed) for id, sealed in connection.execute(one)]
    return any(opened) or not opened


_OF_ROW = (
    "engine_secret_sealed",
    "value_sealed",
    "content_sealed",
    "config_sealed",
    "key_sealed",
    "webhook_token_sealed",
)
"""Columns that are sealed for the id of the row."""
PLAIN = "plain-secrets"
"""A setting that the migration stores: values are in plain text in columns for sealed ones."""
TRACES = "plain-traces"
"""A setting that is stored while the files of the database may still have the plain text."""
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
    """Seal what an earlier version stored in plain text; before anything else is written.

    Then erase the plain text from the database's files; a later start tries again where that fails.
    """
    await database.write(lambda c: seal_plain(c, vault))
    if await database.read(_has_traces) and await asyncio.to_thread(erase_removed, database.url):
        await database.write(lambda c: c.execute(delete(settings).where(settings.c.name == TRACES)))


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
        connection.execute(delete(settings).where(settings.c.name.in_((PLAIN, TRACES))))
        connection.execute(insert(settings).values(name=TRACES, value="1", revision=0))
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


def _has_traces(connection: Connection) -> bool:
    traces = select(settings.c.name).where(settings.c.name == TRACES)
    return connection.execute(traces).first() is not None


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
        if isinstance(text, bytes):  # SQLite keeps them in a column of text, if damaged or by hand
            text = text.decode(errors="replace")
        values = {column.name: vault.seal(place, text)}
        connection.execute(update(table).where(table.c.id == id).values(values))


def _sealed_columns() -> Iterator[tuple[Table, Column[Any]]]:
    for table in metadata.sorted_tables[::-1]:
        for column in table.columns:
            if column.name.endswith(_SUFFIX):
                yield table, column
