"""A person's notification target: set, looked at, tried, removed."""

import asyncio
from uuid import uuid4

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.outward.notifier import Notifier
from quarterdeck.service.outward.targets import Notice, is_target, service_of
from quarterdeck.service.records.notification_targets import (
    Target,
    find_target,
    put_target,
    remove_target,
)
from quarterdeck.wire.chatapp import ChatappConnection
from quarterdeck.wire.errors import ErrorCode

TRIAL = Notice("quarterdeck", "Notifications arrive here.")


async def connect(context: ServiceContext, caller: Caller, url: str) -> None:
    """Stores a target in the place of the one there was.

    Raises:
        ApiError: INVALID_REQUEST for an address of no known service.
    """
    url = url.strip()
    if not await asyncio.to_thread(is_target, url):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "This is no address of a notification service, such as ntfy://host/topic.",
            "url",
        )
    user_id, row_id = _user(caller), str(uuid4())
    target = Target(row_id, context.vault.seal(row_id, url), moment_text(context.clock()))
    await context.database.write(lambda c: put_target(c, caller.organization_id, user_id, target))


async def connection(context: ServiceContext, caller: Caller) -> ChatappConnection:
    """Whether there is a target."""
    target = await _target(context, caller)
    if target is None:
        return ChatappConnection(connected=False)
    url = context.vault.unseal(target.id, target.url_sealed)
    return ChatappConnection.model_validate(
        {"connected": True, "service": service_of(url), "created_at": target.created_at}
    )


async def disconnect(context: ServiceContext, caller: Caller) -> None:
    """Removes the target, if there is one."""
    user_id = _user(caller)
    await context.database.write(lambda c: remove_target(c, caller.organization_id, user_id))


async def try_out(context: ServiceContext, notifier: Notifier, caller: Caller) -> bool:
    """Sends a notification; whether the target took it.

    Raises:
        ApiError: CONFLICT without a target.
    """
    target = await _target(context, caller)
    if target is None:
        raise ApiError(ErrorCode.CONFLICT, "There is no notification target yet. Set one first.")
    return await notifier.try_target(target, TRIAL)


async def _target(context: ServiceContext, caller: Caller) -> Target | None:
    user_id = _user(caller)
    return await context.database.read(lambda c: find_target(c, caller.organization_id, user_id))


def _user(caller: Caller) -> str:
    assert caller.user_id is not None  # the route takes users alone
    return caller.user_id
