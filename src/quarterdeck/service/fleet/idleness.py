"""Whether anything goes on in an active workspace (INTERFACE 3, Life)."""

import asyncio
from datetime import datetime, timedelta

from quarterdeck.engine.link import EngineError, EngineLink
from quarterdeck.service.fleet.site import Site
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.rest import work_of
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.engine import EngineReport
from quarterdeck.wire.replicas import AUTO_STOP_MINUTES

SLEEPS_WHEN_DONE = "sleep_when_done"
ARCHIVED_WHEN_DONE = "archive_when_done"


class Idleness:
    """Judges one workspace, first by what is known here, then by what its engine says now."""

    def __init__(self, site: Site, row: WorkspaceRow, now: datetime) -> None:
        self._site = site
        self._auto_stop = timedelta(minutes=row.auto_stop_minutes or AUTO_STOP_MINUTES)
        self._ends_when_done = row.lifecycle_policy in (SLEEPS_WHEN_DONE, ARCHIVED_WHEN_DONE)
        self._now = now
        self.done = False
        """The work is done, and that is what makes it time."""

    async def suspected(self) -> bool:
        """Whether it may be time; asks nobody but the database."""
        report = self._site.pulse.report
        return report is not None and await self._due(report)

    async def confirmed(self) -> bool:
        """Whether it is time. Nothing is delivered to the engine meanwhile."""
        report = await self._ask()
        return report is not None and await self._due(report)

    async def _due(self, report: EngineReport) -> bool:
        if report.chats_processing or report.hooks_running or report.terminals_attached:
            return False
        work = await self._site.tools.context.database.read(lambda c: work_of(c, self._site.id))
        if work is None or work.pending:
            return False
        done = self._ends_when_done and (work.done or self._site.pulse.turn_ended)
        self.done = done
        pause = timedelta(seconds=self._site.tools.settings.done_pause) if done else self._auto_stop
        since = self._now - pause
        used = report.last_activity_at
        return work.last_activity_at <= moment_text(since) and (used is None or used <= since)

    async def _ask(self) -> EngineReport | None:
        """The engine's report of now; None when it cannot be had, which is no sign of idleness."""
        link: EngineLink | None = self._site.line.link
        if link is None:
            return None
        try:
            async with asyncio.timeout(self._site.tools.settings.call_limit):
                return await link.status()
        except (EngineError, TimeoutError):
            return None
