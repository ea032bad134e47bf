"""The life of one workspace's engine: brought up, followed, started again when it dies."""

import asyncio
import logging
from datetime import datetime

from quarterdeck.engine.link import EngineError, EngineRefused
from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.errors import DatabaseClosedError, UnknownWorkspaceError
from quarterdeck.service.fleet.bring_up import bring_up
from quarterdeck.service.fleet.restarts import Restarts
from quarterdeck.service.fleet.session import NotReadyError, Session
from quarterdeck.service.fleet.site import Site
from quarterdeck.service.fleet.transitions import enter_error
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.warm_pools import note_failure
from quarterdeck.service.records.workspaces import BUSY, WorkspaceRow, find_workspace

log = logging.getLogger(__name__)

REASON_LENGTH = 4000


class Life:
    """Runs while the workspace is preparing or active. Cancelling it leaves the engine running."""

    def __init__(self, site: Site) -> None:
        settings = site.tools.settings
        self._site = site
        self._restarts = Restarts(settings.restarts, settings.restart_window)
        self._rebooted = False
        self.ending = False
        """Set when the engine is being stopped: a lost link is then the end, not an accident."""

    async def run(self) -> None:
        """Returns once the engine was stopped, the workspace deleted, or it failed for good."""
        try:
            await self._run()
        except (UnknownWorkspaceError, DatabaseClosedError):
            return
        except SandboxError as e:
            await self._fail(_reason(e))
        except NotReadyError as e:
            await self._fail(str(e))
        except Exception:
            log.exception("The life of workspace %s failed", self._site.id)
            await self._fail("The service failed while running this replica; its log says why.")

    async def _run(self) -> None:
        row = await self._row()
        if row.status not in BUSY:
            return  # it was put to sleep, or failed, since somebody asked
        self._rebooted = row.boot_id not in (None, self._site.tools.settings.boot_id)
        await bring_up(self._site, row)
        pauses = self._site.tools.settings.backoff
        failures = 0
        while True:
            linked = await self._follow()
            if self.ending:
                return
            failures = 0 if linked else failures + 1
            if not await self._site.tools.context.sandboxes.alive(self._site.id):
                await self._start_again()
            elif failures:
                await asyncio.sleep(pauses[min(failures, len(pauses)) - 1])

    async def _follow(self) -> bool:
        """Serves one connection to its end; False when there was none."""
        try:
            await Session(self._site, self._rebooted).run()
            self._rebooted = False
            return True
        except EngineRefused as e:
            log.error("Workspace %s runs an engine that is not ours: %s", self._site.id, e)
            await self._site.tools.context.sandboxes.stop(self._site.id)
        except EngineError as e:
            log.info("Workspace %s: %s", self._site.id, e)
        return False

    async def _start_again(self) -> None:
        """Starts an engine that died.

        Raises:
            SandboxError: it died, or did not start, too often.
        """
        failure = SandboxError("The replica's engine ended again and again.")
        while self._restarts.allowed():
            log.warning("The engine of workspace %s died; starting it again", self._site.id)
            try:
                await bring_up(self._site, await self._row())
                return
            except SandboxError as e:
                failure = e
        raise failure

    async def _fail(self, reason: str) -> None:
        log.error("Workspace %s failed: %s", self._site.id, reason)
        try:
            await self._site.tools.context.sandboxes.stop(self._site.id)
        except SandboxError as e:
            log.error("The sandbox of %s could not be stopped: %s", self._site.id, e)
        event_log = self._site.tools.context.event_log
        now = self._site.tools.context.clock()
        await until_stored(lambda: event_log.write(lambda w: self._store_failure(w, reason, now)))

    def _store_failure(self, writer: LogWriter, reason: str, now: datetime) -> None:
        row = find_workspace(writer.connection, self._site.id)
        if enter_error(writer, self._site.id, reason) and row is not None and row.warm_state:
            pool, generation = row.warm_pool_id, row.warm_generation
            note_failure(writer.connection, pool, generation, reason, now)

    async def _row(self) -> WorkspaceRow:
        database = self._site.tools.context.database
        row = await until_stored(lambda: database.read(lambda c: find_workspace(c, self._site.id)))
        if row is None:
            raise UnknownWorkspaceError(f"There is no workspace {self._site.id}.")
        return row


def _reason(error: SandboxError) -> str:
    text = str(error)
    if error.details and error.details.strip() not in text:
        text = f"{text}\n{error.details.strip()}"
    return text if len(text) <= REASON_LENGTH else f"{text[: REASON_LENGTH - 1]}…"
