"""Asks a running engine now and then how it is, and tells of what it cannot tell itself."""

import asyncio
import logging

from quarterdeck.engine.link import EngineLink
from quarterdeck.service.errors import StorageError, UnknownWorkspaceError
from quarterdeck.service.fleet.site import Site
from quarterdeck.service.records.events import NewEvent
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType

log = logging.getLogger(__name__)


async def feel_pulse(site: Site, calls: EngineLink) -> None:
    """Keeps the site's pulse, for as long as the link lasts.

    Raises:
        EngineError: the link was lost.
        TimeoutError: the engine does not answer.
    """
    settings = site.tools.settings
    told = False
    while True:
        async with asyncio.timeout(settings.call_limit):
            report = site.pulse.report = await calls.status()
        site.seen()
        if report.journal_fault is None:
            told = False
        elif not told:
            told = await _tell(site, report.journal_fault)
        await asyncio.sleep(settings.heartbeat)


async def _tell(site: Site, fault: str) -> bool:
    """An event about a journal that cannot be written; False when it could not be stored either."""
    payload = {
        "code": ErrorCode.INTERNAL_ERROR,
        "message": f"The replica's journal cannot be written: {fault}. What its agents do waits,"
        " and goes on by itself once it can. Make room on the disk.",
    }
    try:
        await site.tools.context.event_log.append(site.id, [NewEvent(EventType.ERROR, payload)])
    except UnknownWorkspaceError:
        return True  # deleted meanwhile: nobody is there to be told
    except StorageError as e:
        log.warning("The fault of a journal could not be told (%s): %s", fault, e)
        return False
    return True
