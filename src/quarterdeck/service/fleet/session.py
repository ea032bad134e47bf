"""One connection to a running engine: its journal is stored, its messages delivered, its pulse felt."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from quarterdeck.engine.link import EngineError, EngineLink, EngineRefused
from quarterdeck.service.courier import open_chat
from quarterdeck.service.errors import UnknownWorkspaceError
from quarterdeck.service.fleet.claiming import claim
from quarterdeck.service.fleet.heartbeat import feel_pulse
from quarterdeck.service.fleet.links import open_link
from quarterdeck.service.fleet.progress import NotReadyError as NotReadyError
from quarterdeck.service.fleet.progress import Progress
from quarterdeck.service.fleet.settling import settle
from quarterdeck.service.fleet.site import Site
from quarterdeck.service.fleet.transitions import enter_active
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.chats import list_chats
from quarterdeck.service.records.warm_pools import mark_ready
from quarterdeck.service.records.workspaces import WorkspaceRow, change_workspace, find_workspace
from quarterdeck.service.relay.relay import relay
from quarterdeck.service.workspace_setup.states import POOLED
from quarterdeck.wire.engine import EngineHello, JournalEntry
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.setup import SetupPhase

log = logging.getLogger(__name__)

LAST_ENTRIES_SECONDS = 5.0
"""When a call's link is lost, the journal's may still bring entries for so long."""


class Session:
    """Made for one connection. `rebooted` says that the machine was started since the last one."""

    def __init__(self, site: Site, rebooted: bool) -> None:
        self._site = site
        self._rebooted = rebooted
        self._hello: EngineHello | None = None
        self._progress = Progress(site.tools.settings.ready_limit)

    async def run(self) -> None:
        """Serves until the link is lost; everything that it brought is stored then.

        Raises:
            EngineGone: no link could be opened.
            EngineRefused: the engine has another secret.
            NotReadyError: setting it up failed, or took too long.
            UnknownWorkspaceError: the workspace was deleted.
        """
        row = await self._row()
        self._site.mark.put(row.journal_index)
        journal = await self._open_journal(row)
        try:
            calls = await open_link(self._site, row.engine_secret)
            try:
                self._site.pulse.hello = calls.hello
                await self._serve(row, journal, calls)
            finally:
                self._site.line.clear()
                await calls.close()
        finally:
            await journal.close()

    async def _serve(self, row: WorkspaceRow, journal: EngineLink, calls: EngineLink) -> None:
        if row.engine_version is not None:
            self._progress.ready()
        self._hello = calls.hello
        self._progress.learn(calls.hello.setup)
        if row.journal_index >= calls.hello.last_index:
            self._progress.catch_up(calls.hello.setup)
        try:
            async with asyncio.TaskGroup() as group:
                begun = [
                    group.create_task(self._aside(journal, self._start(row, calls))),
                    group.create_task(self._aside(journal, feel_pulse(self._site, calls))),
                    group.create_task(self._aside(journal, self._progress.follow(calls))),
                ]
                context = self._site.tools.context
                await relay(journal, context.event_log, row.id, self._stored)
                for task in begun:
                    task.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures

    async def _aside(self, journal: EngineLink, work: Coroutine[Any, Any, None]) -> None:
        """Runs beside the relay. When the engine is lost, the relay still stores what it gets."""
        try:
            await work
        except (EngineError, TimeoutError) as e:
            log.info("A link to an engine was lost: %s", e)
            self._site.line.clear()
            try:
                async with asyncio.timeout(LAST_ENTRIES_SECONDS):
                    await journal.wait_closed()
            except TimeoutError:
                await journal.close()

    async def _start(self, row: WorkspaceRow, calls: EngineLink) -> None:
        if row.status == WorkspaceStatus.PREPARING:
            await self._become_active(row, calls)
        # After that, because chats are also made while it is prepared.
        await self._open_chats(calls)
        held = await settle(self._site, calls)
        self._site.line.put(calls)
        await self._site.courier.run(calls, calls.queue_release if held else None)

    async def _open_chats(self, calls: EngineLink) -> None:
        database = self._site.tools.context.database
        chats = await until_stored(lambda: database.read(lambda c: list_chats(c, self._site.id)))
        for chat in chats:
            try:
                async with asyncio.timeout(self._site.tools.settings.call_limit):
                    await open_chat(calls, chat)
            except EngineRefused as e:
                # Not a reason to fail: the courier opens it again with the first message.
                log.warning("A chat could not be opened: %s", e.message)

    async def _become_active(self, row: WorkspaceRow, calls: EngineLink) -> None:
        if row.warm_state in POOLED:
            row = await self._wait_in_pool(row)
        if await self._progress.reached() == SetupPhase.HELD:
            await claim(self._site, row, calls)
            await self._note_claimed()
            await self._progress.reached(SetupPhase.READY)
        event_log = self._site.tools.context.event_log
        await until_stored(lambda: event_log.write(lambda w: enter_active(w, self._site.id)))
        self._site.pulse.turn_ended = False

    async def _note_claimed(self) -> None:
        """From here on it has nothing to do with a pool: no later engine is to be claimed again."""
        database = self._site.tools.context.database
        await until_stored(
            lambda: database.write(lambda c: change_workspace(c, self._site.id, warm_pool_id=None))
        )

    async def _wait_in_pool(self, row: WorkspaceRow) -> WorkspaceRow:
        await self._progress.reached()
        database = self._site.tools.context.database
        await until_stored(lambda: database.write(lambda c: mark_ready(c, row.id)))
        self._site.pulse.progress = None
        self._site.prepared.set()
        await self._site.claimed.wait()
        return await self._row()

    def _stored(self, entries: Sequence[JournalEntry]) -> None:
        self._site.seen()
        self._site.mark.put(entries[-1].index)
        self._progress.hear(entries)
        if self._hello and entries[0].index <= self._hello.last_index <= entries[-1].index:
            self._progress.catch_up(self._hello.setup)
        if any(entry.type == EventType.CHAT_TURN_COMPLETED for entry in entries):
            self._site.pulse.turn_ended = True

    async def _open_journal(self, row: WorkspaceRow) -> EngineLink:
        link = await open_link(self._site, row.engine_secret, row.journal_index)
        # After a crash of the machine an engine numbers on far above what it may have lost.
        if link.hello.last_index >= row.journal_index or self._rebooted:
            return link
        log.error("The journal of %s begins anew; its file was removed", row.id)
        await link.close()
        database = self._site.tools.context.database
        await until_stored(
            lambda: database.write(lambda c: change_workspace(c, row.id, journal_index=0))
        )
        self._site.mark.put(0)
        return await open_link(self._site, row.engine_secret, 0)

    async def _row(self) -> WorkspaceRow:
        database = self._site.tools.context.database
        row = await until_stored(lambda: database.read(lambda c: find_workspace(c, self._site.id)))
        if row is None:
            raise UnknownWorkspaceError(f"There is no workspace {self._site.id}.")
        return row
