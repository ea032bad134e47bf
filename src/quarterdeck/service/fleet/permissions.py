"""Keeps the permission policy of a running engine that of the rows.

A change here wakes `keep_permissions` at once. One by another service that shares the database, to
an environment, is found at the next look.
"""

import asyncio
import logging

from sqlalchemy import Connection

from quarterdeck.engine.link import EngineLink, EngineRefusedError
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.environments.rows import permissions_of
from quarterdeck.service.fleet.runtime import WorkspaceRuntime
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.wire.permissions import Permissions

log = logging.getLogger(__name__)


async def effective_permissions(site: WorkspaceRuntime) -> Permissions:
    """Return the policy that applies to a workspace; the strictest one when it was deleted."""

    def read(connection: Connection) -> Permissions:
        row = find_workspace(connection, site.id)
        return Permissions() if row is None else permissions_of(connection, row).effective

    return await retry_until_stored(lambda: site.tools.context.database.read(read))


async def give_permissions(
    site: WorkspaceRuntime, link: EngineLink, known: Permissions | None = None
) -> Permissions:
    """Give the engine the policy that applies, unless it is the one that it is known to have.

    Raises:
        EngineGoneError: the link was lost.
        TimeoutError: the engine does not answer.
    """
    async with site.giving_permissions:  # so that an older one never follows a newer one
        permissions = await effective_permissions(site)
        if permissions != known:
            try:
                # The wait for the database is not the engine's: its link would be given up.
                async with asyncio.timeout(site.tools.settings.call_limit):
                    await link.permissions_set(permissions)
            except EngineRefusedError as e:  # an earlier version, which asks for everything
                log.warning("A permission policy was refused: %s", e.message)
        return permissions


async def keep_permissions(site: WorkspaceRuntime, calls: EngineLink) -> None:
    """Give the engine the policy now and whenever it has changed, until the link is lost.

    Raises:
        EngineError: the link was lost.
        TimeoutError: the engine does not answer.
    """
    settings = site.tools.settings
    known: Permissions | None = None
    while True:
        site.permissions_changed.clear()
        known = await give_permissions(site, calls, known)
        try:
            async with asyncio.timeout(settings.heartbeat):
                await site.permissions_changed.wait()
        except TimeoutError:
            continue
