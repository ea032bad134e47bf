"""API keys, a user's own and an organization's (specification, operations 2 and 3; INTERFACE 9)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, Id, Record, Timestamp


class ApiKey(Record):
    """One key, without its text. `key_prefix` is its beginning, to tell it from others."""

    id: Id
    name: str
    key_prefix: str
    created_at: Timestamp
    last_used_at: Timestamp | None = None


class ApiKeyMade(Record):
    """Answer of making a key. `key` is its text, which is never told again."""

    api_key: ApiKey
    key: str


class ApiKeyList(Record):
    """A page of keys, newest first."""

    api_keys: list[ApiKey]
    total: int
    page: int
    limit: int
    total_pages: int


class CreateApiKey(Body):
    """Body of making a key."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
