"""Encryption of what must not be read from the database alone.

One master key, in a file beside the database that only its owner reads; every use has a key of its
own, derived from it. Several services over one database share the file.
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

from quarterdeck.service.errors import HomeUnusableError, StorageError
from quarterdeck.service.key_file import read_key_file, write_key_file

KEY_BYTES = 32
NONCE_BYTES = 12
SEALED_MARK = "v1:"
"""Begins every sealed text, so that another scheme can follow."""


class Vault:
    """Seals texts to the row they belong to: moved to another row, they do not open."""

    def __init__(self, master: bytes) -> None:
        self._master = master
        self._cipher = AESGCM(self.derived("seal"))

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Reads the master key, or makes one.

        Raises:
            HomeUnusableError: the file cannot be read or written, or holds no key.
        """
        return cls(await asyncio.to_thread(_read_or_make, path))

    def seal(self, row_id: str, text: str) -> str:
        """The text as it is stored in the row of this id."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, text.encode(), row_id.encode())
        return SEALED_MARK + base64.b64encode(sealed).decode()

    def unseal(self, row_id: str, sealed: str) -> str:
        """The text that was sealed.

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

    def derived(self, use: str) -> bytes:
        """A key for another use, 32 bytes."""
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
        raise HomeUnusableError(
            f"The key file {path} holds no key. Bring back the right one: without it stored "
            "secrets cannot be opened. Or remove it, and set them again."
        )
    return master
