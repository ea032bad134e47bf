"""API keys: bearer texts that are looked up by their SHA-256."""

import hashlib
import secrets
from collections.abc import Callable
from time import monotonic

from quarterdeck.service.auth import Caller, CallerKind, Role
from quarterdeck.service.db.database import Database
from quarterdeck.service.identity.remembered import Remembered
from quarterdeck.service.records.api_keys import KeyRow, find_key

KEY_MARK = "sk_"


def new_key() -> str:
    """A key with 256 bits of chance."""
    return KEY_MARK + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def shown_prefix(key: str) -> str:
    """The part of a key that lists may show."""
    return key[: len(KEY_MARK) + 4]


class Keys:
    """Finds the caller of a key; a found one is remembered for a few seconds.

    The key is only ever compared as a digest, inside an index look-up, so the time a look-up takes
    tells nothing about the keys there are.
    """

    def __init__(self, database: Database, now: Callable[[], float] = monotonic) -> None:
        self._database = database
        self._found: Remembered[str, Caller] = Remembered(now)

    async def caller_of(self, key: str) -> Caller | None:
        """The caller that a key stands for, or None."""
        digest = hash_of(key)
        return await self._found.get(digest, lambda: self._look(digest))

    def forget(self) -> None:
        """Makes the next request of every key look again; call after a key was taken away."""
        self._found.forget()

    async def _look(self, digest: str) -> Caller | None:
        row = await self._database.read(lambda c: find_key(c, digest))
        return None if row is None else _caller(row)


def _caller(row: KeyRow) -> Caller | None:
    if row.user_id is None:
        kind = CallerKind.ORGANIZATION_KEY
        return Caller(row.organization_id, None, kind, Role.ADMIN, key_id=row.id)
    if row.role is None:
        return None
    kind = CallerKind.PERSONAL_KEY
    return Caller(row.organization_id, row.user_id, kind, Role(row.role), key_id=row.id)
