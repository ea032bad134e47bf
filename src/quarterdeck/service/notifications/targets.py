"""URLs that users chose: targets of notifications and webhooks, and the client for them."""

import asyncio
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

from quarterdeck.local.addresses import AddressRefusedError, check_address, numeric_address
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import reaches_private
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.notifications.notifier import (
    SERVICES,
    Notice,
    Notifier,
    is_known,
    is_target,
    service_of,
)
from quarterdeck.service.notifications.rows import (
    NotificationTarget,
    find_target,
    put_target,
    remove_target,
)
from quarterdeck.wire.account import ChatappConnection
from quarterdeck.wire.errors import ErrorCode

if TYPE_CHECKING:
    import httpx


PRIVATE = "quarterdeck.private"
"""Extension of a request: whether it may reach private addresses. Without it, it may not."""


def open_guarded_client(limit: float, proxy: bool = False) -> "httpx.AsyncClient":
    """Return a client for URLs that users chose: as `open_client`, but addresses are judged.

    It uses the proxies of the environment only with `proxy`.
    """
    import httpx

    from quarterdeck.service.notifications.guarded_transport import GuardedTransport

    logging.getLogger("httpx").setLevel(logging.WARNING)
    return httpx.AsyncClient(
        timeout=limit, follow_redirects=False, transport=GuardedTransport(proxy), trust_env=False
    )


TRIAL = Notice("quarterdeck", "Notifications arrive here.")


async def connect(context: ServiceContext, caller: Caller, url: str) -> None:
    """Store a target, replacing an earlier one.

    Raises:
        ApiError: INVALID_REQUEST for a URL of no known service.
    """
    url = url.strip()
    if not is_known(url):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Notifications are not sent to {service_of(url)}:// addresses."
            if "://" in url
            else "Not a notification URL, such as ntfy://host/topic.",
            f"url: one of {', '.join(SERVICES)}",
        )
    user_id, row_id = _user(caller), str(uuid4())
    private = await reaches_private(context.database, context.outgoing_private, user_id)
    if not await asyncio.to_thread(is_target, url, private):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Not a notification URL, such as ntfy://host/topic.",
            "url",
        )
    _check_host(url, private)
    target = NotificationTarget(
        row_id, user_id, context.vault.seal(row_id, url), moment_text(context.clock())
    )
    await context.database.write(lambda c: put_target(c, caller.organization_id, target))


async def connection(context: ServiceContext, caller: Caller) -> ChatappConnection:
    """Return whether there is a target."""
    target = await _target(context, caller)
    if target is None:
        return ChatappConnection(connected=False)
    url = context.vault.unseal(target.id, target.url_sealed)
    return ChatappConnection.model_validate(
        {"connected": True, "service": service_of(url), "created_at": target.created_at}
    )


async def disconnect(context: ServiceContext, caller: Caller) -> None:
    """Remove the target, if there is one."""
    user_id = _user(caller)
    await context.database.write(lambda c: remove_target(c, caller.organization_id, user_id))


async def try_out(context: ServiceContext, notifier: Notifier, caller: Caller) -> bool:
    """Send a notification; return whether the target accepted it.

    Raises:
        ApiError: CONFLICT without a target.
    """
    target = await _target(context, caller)
    if target is None:
        raise ApiError(ErrorCode.CONFLICT, "There is no notification target yet. Set one first.")
    return await notifier.try_target(caller.organization_id, target, TRIAL)


async def _target(context: ServiceContext, caller: Caller) -> NotificationTarget | None:
    user_id = _user(caller)
    return await context.database.read(lambda c: find_target(c, caller.organization_id, user_id))


def _user(caller: Caller) -> str:
    assert caller.user_id is not None  # the route accepts only users
    return caller.user_id


def _check_host(url: str, private: bool) -> None:
    """Refuse an address at once; a name is judged when a notification is sent.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return  # the service reads it in its own way
    address = numeric_address(host) if "." in host or ":" in host else None
    if address is not None:
        try:
            check_address(address, private)
        except AddressRefusedError as e:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "Nothing is sent to this address.", f"url: {e}"
            ) from e


URL_LENGTH = 2000


def check_webhook_url(url: str | None, private: bool) -> None:
    """Check for an `http` or `https` URL with a host, which is not an address that may not be called.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if url is None:
        return
    problem = _problem(url, private)
    if problem:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "The webhook's address cannot be called.",
            f"webhook_url: {problem}",
        )


def _problem(url: str, private: bool) -> str | None:
    if len(url) > URL_LENGTH:
        return f"at most {URL_LENGTH} characters"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it holds characters that no URL has; write them as %XX"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as e:
        return str(e)
    if parts.scheme not in ("http", "https"):
        return "it begins with http:// or https://"
    if not parts.hostname:
        return "it names no host"
    return _host_problem(parts.hostname, private)


def _host_problem(host: str, private: bool) -> str | None:
    address = numeric_address(host)
    if address is None:
        return None  # a name is judged when it is called
    try:
        check_address(address, private)
    except AddressRefusedError as e:
        return str(e)
    return None
