"""Making, listing and taking away API keys (specification, operations 2 and 3)."""

from math import ceil

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.keys import Keys, hash_of, new_key, shown_prefix
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.api_keys import KeyScope, add_key, page_of_keys, remove_key
from quarterdeck.service.records.users import organizations_of
from quarterdeck.wire.api_keys import ApiKeyList, ApiKeyMade
from quarterdeck.wire.errors import ErrorCode


async def create_key(context: ServiceContext, scope: KeyScope, name: str) -> ApiKeyMade:
    """Makes a key. Its text is in the answer and nowhere else."""
    key, now = new_key(), moment_text(context.clock())
    made = await context.database.write(
        lambda c: add_key(c, scope, name, shown_prefix(key), hash_of(key), now)
    )
    return ApiKeyMade(api_key=made, key=key)


async def list_keys(context: ServiceContext, scope: KeyScope, page: int, limit: int) -> ApiKeyList:
    """A page (from 1) of at most `limit` keys, newest first."""
    found, total = await context.database.read(
        lambda c: page_of_keys(c, scope, (page - 1) * limit, limit)
    )
    pages = ceil(total / limit)
    return ApiKeyList(api_keys=found, total=total, page=page, limit=limit, total_pages=pages)


async def delete_key(context: ServiceContext, keys: Keys, scope: KeyScope, key_id: str) -> None:
    """Takes a key away; this service refuses it from now on.

    Raises:
        ApiError: NOT_FOUND.
    """
    removed = await context.database.write(
        lambda c: remove_key(c, scope, key_id), lambda _: keys.forget()
    )
    if not removed:
        raise ApiError(ErrorCode.NOT_FOUND, "No key has this id.", f"id: {key_id}")


async def key_organization(context: ServiceContext, caller: Caller) -> str:
    """The organization of a user's new key: the one that was named, else their only one.

    Raises:
        ApiError: ORG_HEADER_REQUIRED when there are several, or none.
    """
    if caller.organization_id:
        return caller.organization_id
    user_id = caller.user_id or ""
    found = await context.database.read(lambda c: organizations_of(c, user_id))
    if len(found) != 1:
        raise ApiError(
            ErrorCode.ORG_HEADER_REQUIRED,
            "Name the key's organization in the header Service-Org-Id.",
        )
    return str(found[0].id)
