"""Opening links to a workspace's engine."""

import asyncio

from quarterdeck.engine.link import EngineGone, EngineLink
from quarterdeck.service.fleet.site import Site


async def open_link(site: Site, secret: str, after: int | None = None) -> EngineLink:
    """Opens a link; `after` asks for the journal.

    Raises:
        EngineGone: no engine listens, or it does not answer in time.
        EngineRefused: it has another secret.
    """
    try:
        async with asyncio.timeout(site.tools.settings.link_limit):
            reader, writer = await site.tools.context.sandboxes.connect(site.id)
            return await EngineLink.open(reader, writer, secret, after)
    except OSError as e:  # a time-out is one too
        raise EngineGone("The replica's engine cannot be reached.") from e
