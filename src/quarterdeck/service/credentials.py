"""Keys of providers: sealed before they reach the database, and shown masked."""

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.credentials import (
    find_credential,
    new_credential_id,
    put_credential,
    remove_credential,
)
from quarterdeck.wire.credentials import CredentialSet, CredentialStatus
from quarterdeck.wire.errors import ErrorCode

SHOWN = 4
"""Characters of a key that are shown at either end,"""
SHORT = 2 * SHOWN
"""unless it has no more than this: then that would be all of it."""
MASK = "*" * 8
"""Of one length, so that it does not tell the key's."""


def masked(key: str) -> str:
    """What may be shown of a key."""
    return MASK if len(key) <= SHORT else f"{key[:SHOWN]}{MASK}{key[-SHOWN:]}"


async def credential_status(
    context: ServiceContext, organization_id: str, user_id: str | None, provider: str
) -> CredentialStatus:
    """Whether the user, or the organization when none is given, has a key of the provider.

    Raises:
        StorageError: the key cannot be opened.
    """
    row = await context.database.read(
        lambda c: find_credential(c, organization_id, user_id, provider)
    )
    if row is None:
        return CredentialStatus(has_credentials=False)
    key = context.vault.unseal(row["id"], row["key_sealed"])
    return CredentialStatus.model_validate(
        {
            "has_credentials": True,
            "credential_id": row["id"],
            "api_key": masked(key),
            "last_fetched_at": row["last_fetched_at"],
        }
    )


async def set_credential(
    context: ServiceContext, organization_id: str, user_id: str | None, provider: str, key: str
) -> CredentialSet:
    """Stores a key in place of the one before; workspaces that start from now on get it.

    Raises:
        ApiError: CONFLICT when it is being set elsewhere at this moment.
    """
    credential_id = new_credential_id()
    sealed = context.vault.seal(credential_id, key)
    now = moment_text(context.clock())

    def run(connection: Connection) -> None:
        put_credential(connection, credential_id, organization_id, user_id, provider, sealed, now)

    try:
        await context.database.write(run)
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT, "This key is being set elsewhere at this moment. Try again."
        ) from e
    return CredentialSet.model_validate({"credential_id": credential_id})


async def delete_credential(
    context: ServiceContext, organization_id: str, user_id: str | None, provider: str
) -> None:
    """Removes a key.

    Raises:
        ApiError: NOT_FOUND when there is none.
    """
    if not await context.database.write(
        lambda c: remove_credential(c, organization_id, user_id, provider)
    ):
        raise ApiError(
            ErrorCode.NOT_FOUND, "No key is set for this provider.", f"provider: {provider}"
        )
