"""The master key, and encryption with it.

Encrypts values that must not be readable from the database alone.

One master key, in a file beside the database that only its owner reads; every use has its own key,
derived from it. Several services on one database share the file.

A shared database belongs to one master key.

Secrets are sealed with it: a service with another key could open none of them. So it is refused
before it changes anything. Services that share a database each have their own home, and a copy of
the key.
"""

import asyncio
import base64
import secrets
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy import Connection, insert, select

from quarterdeck.local.files import read_file, sync_directory, write_file
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import settings
from quarterdeck.service.errors import (
    ForeignDatabaseError,
    HomeUnusableError,
    InvalidMasterKeyError,
    StorageError,
)


def read_key_file(path: Path) -> str | None:
    """Return a key file's text, or None when there is no file.

    Raises:
        HomeUnusableError: it cannot be read.
    """
    try:
        return read_file(path).decode().strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as e:
        raise HomeUnusableError(f"The key file {path} cannot be read: {e}.") from e


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
SECRET_BYTES = 32
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

    def unseal(self, row_id: str, sealed: str) -> str:
        """Return the plain text.

        Raises:
            StorageError: it was sealed with another key, for another row, or was changed.
        """
        try:
            raw = base64.b64decode(sealed.removeprefix(SEALED_MARK), validate=True)
            nonce, text = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
            return self._cipher.decrypt(nonce, text, row_id.encode()).decode()
        except (InvalidTag, ValueError) as e:
            raise StorageError(
                "A secret cannot be opened with this installation's key. Set it again, or bring "
                "back the key file that belongs to the database."
            ) from e

    def new_engine_secret(self, workspace_id: str) -> str:
        """Return a new secret for the engine of a workspace, sealed."""
        return self.seal(workspace_id, secrets.token_hex(SECRET_BYTES))

    def derived(self, use: str) -> bytes:
        """Return a derived key of 32 bytes for another use."""
        return HKDF(SHA256(), KEY_BYTES, salt=None, info=f"quarterdeck {use}".encode()).derive(
            self._master
        )


def _read_or_make(path: Path) -> bytes:
    text = read_key_file(path)
    if text is None:
        master = secrets.token_bytes(KEY_BYTES)
        write_key_file(path, base64.b64encode(master).decode())
        return master
    try:
        master = base64.b64decode(text, validate=True)
    except ValueError:
        master = b""
    if len(master) != KEY_BYTES:
        raise InvalidMasterKeyError(
            f"The key file {path} holds no key. Restore the right one: without it stored secrets cannot be decrypted. If it is lost, qd serve --new-key starts without them, and they have to be set again."
        )
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
    own = vault.derived(NAME).hex()
    if await database.write(lambda c: _owner(c, own)) != own:
        raise ForeignDatabaseError(
            "The database belongs to another installation, whose master key this home does not "
            f"have. To share the database, copy service/master.key of a home that uses it to "
            f"{key_file} (mode 0600) and start again; or name another database."
        )


def _owner(connection: Connection, own: str) -> str:
    stored = connection.execute(select(settings.c.value).where(settings.c.name == NAME)).scalar()
    if stored is not None:
        return stored
    connection.execute(insert(settings).values(name=NAME, value=own, revision=0))
    return own
