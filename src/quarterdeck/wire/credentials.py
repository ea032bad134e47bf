"""Keys of the providers behind coding agents (specification, operations 11 and 22; INTERFACE 9)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, CamelRecord, Id, Timestamp
from quarterdeck.wire.stored_text import NO_NUL

PROVIDER_PATTERN = r"^[a-z0-9][a-z0-9-]{0,99}$"
NO_PROVIDERS = frozenset(
    (
        "agents",
        "auth",
        "automations",
        "chatapp",
        "environment-skills",
        "environments",
        "health",
        "host-a",
        "host-b",
        "organization",
        "organizations",
        "previews",
        "replica",
        "services",
        "user",
        "warm-pools",
        "workspaces",
    )
)
"""First words of other routes: no provider, and so no agent, has such a name."""
KEY_LIMIT = 65_536


class CredentialStatus(CamelRecord):
    """Whether there is a key. `api_key` is masked: its first and last four characters at most."""

    has_credentials: bool
    credential_id: Id | None = None
    api_key: str | None = None
    last_fetched_at: Timestamp | None = None


class CredentialSet(CamelRecord):
    """Answer of setting a key."""

    success: bool = True
    credential_id: Id


class SetCredential(Body):
    """Body of setting a key."""

    api_key: Annotated[str, Field(min_length=1, max_length=KEY_LIMIT, repr=False), NO_NUL]
