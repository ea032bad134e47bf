"""Handing a prepared workspace to its owner."""

import asyncio

from quarterdeck.engine.link import EngineLink
from quarterdeck.service.environments.bundle import bundle_for_start
from quarterdeck.service.fleet.branches import branch_of
from quarterdeck.service.fleet.site import Site
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.setup import ClaimWorkspace


async def claim(site: Site, row: WorkspaceRow, calls: EngineLink) -> None:
    """Tells a held engine whose it is now: its branch, and the keys that its owner's agents have.

    Raises:
        EngineError: the engine was lost, or refused.
        TimeoutError: it does not answer.
    """
    context = site.tools.context
    bundle = await until_stored(
        lambda: bundle_for_start(context, row.organization_id, row.user_id, row.environment_id)
    )
    request = ClaimWorkspace(branch=branch_of(row.name), credentials=bundle.credentials)
    async with asyncio.timeout(site.tools.settings.call_limit):
        await calls.claim(request)
