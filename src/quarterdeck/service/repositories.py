"""Connecting a repository: its mirror is made first, then its row."""

import os
from asyncio import Lock
from uuid import uuid4
from weakref import WeakValueDictionary

from quarterdeck.sandboxes.port import CloneError, MirrorInfo, NotARepositoryError
from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.repositories import add_repository, find_by_url
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.repositories import ConnectRepository, Repository

_connecting: WeakValueDictionary[tuple[str, str], Lock] = WeakValueDictionary()


async def connect_repository(
    context: ServiceContext, caller: Caller, body: ConnectRepository
) -> Repository:
    """Connects a repository, or finds the one that is connected under the same URL.

    Asking again is not an error, so that a cockpit can name the directory it was started in without
    looking first; the stored name and branch stay as they are.

    Raises:
        ApiError: INVALID_REQUEST when there is no repository, or it cannot be mirrored.
        SandboxError: the mirror cannot be kept here, for instance on a full disk.
    """
    url = _same_for_same_place(body.url)
    # Held by those who connect the same thing at once: one makes the mirror, the others find it.
    lock = _connecting.setdefault((caller.organization_id, url), Lock())
    async with lock:
        known = await context.database.read(lambda c: find_by_url(c, caller.organization_id, url))
        return known or await _connect(context, caller, body, url)


async def _connect(
    context: ServiceContext, caller: Caller, body: ConnectRepository, url: str
) -> Repository:
    repository_id = uuid4()
    info = await _mirror(context, str(repository_id), url)
    repository = Repository(
        id=repository_id,
        name=body.name or info.suggested_name,
        url=url,
        default_branch=body.default_branch or info.default_branch,
    )
    now = moment_text(context.clock())
    await context.database.write(
        lambda c: add_repository(c, caller.organization_id, repository, now)
    )
    return repository


async def _mirror(context: ServiceContext, repository_id: str, url: str) -> MirrorInfo:
    try:
        return await context.sandboxes.connect_repository(repository_id, url)
    except (NotARepositoryError, CloneError) as e:
        details = f"url: {e.details}" if e.details else "url"
        raise ApiError(ErrorCode.INVALID_REQUEST, str(e), details) from e


def _same_for_same_place(url: str) -> str:
    """One spelling for a local path; other URLs are left alone."""
    text = url.strip()
    if text.startswith("~"):
        text = os.path.expanduser(text)  # noqa: PTH111 - a Path would touch URLs
    return os.path.normpath(text) if text.startswith("/") else text
