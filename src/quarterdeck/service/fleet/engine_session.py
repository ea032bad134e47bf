"""One connection to a running engine: store its journal, deliver messages, check its status."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from quarterdeck.engine.link import EngineError, EngineLink, EngineProtocolError, EngineRefusedError
from quarterdeck.service.chats.delivery import open_chat
from quarterdeck.service.chats.rows import list_chats
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.environments.setup import bundle_for_start
from quarterdeck.service.environments.warm_pool_rows import POOLED, mark_ready
from quarterdeck.service.fleet.permissions import keep_permissions
from quarterdeck.service.fleet.reconcile import settle
from quarterdeck.service.fleet.runtime import BootMonitor, WorkspaceRuntime, feel_pulse, open_link
from quarterdeck.service.fleet.saving import keep_saved
from quarterdeck.service.fleet.transitions import enter_active
from quarterdeck.service.relay import relay
from quarterdeck.service.replicas.rows import (
    WorkspaceRow,
    branch_of,
    change_workspace,
)
from quarterdeck.wire.engine import EngineHello, JournalEntry
from quarterdeck.wire.engine_versions import is_supported, supported_text
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.setup import ClaimWorkspace, SetupPhase


async def claim(site: WorkspaceRuntime, row: WorkspaceRow, calls: EngineLink) -> None:
    """Send a held engine its claim: its branch, and the keys of its owner's agents.

    Raises:
        EngineError: the engine was lost, or refused.
        TimeoutError: it does not answer.
    """
    context = site.tools.context
    bundle = await retry_until_stored(
        lambda: bundle_for_start(context, row.organization_id, row.user_id, row.environment_id)
    )
    request = ClaimWorkspace(branch=branch_of(row.name), credentials=bundle.credentials)
    async with asyncio.timeout(site.tools.settings.call_limit):
        await calls.claim(request)


class OutdatedEngineError(Exception):
    """The engine is of a version that this service does not work with."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"The replica's engine is of version {version}, and this service works with "
            f"{supported_text()}. Wake the replica: it is then started with another engine, and its "
            "files are kept."
        )


log = logging.getLogger(__name__)

LAST_ENTRIES_SECONDS = 5.0
"""When a call's link is lost, the journal's may still bring entries for this long."""


class EngineSession:
    """Created for one connection."""

    def __init__(self, site: WorkspaceRuntime) -> None:
        self._site = site
        self._hello: EngineHello | None = None
        self._progress = BootMonitor(site.tools.settings.ready_limit)

    async def run(self) -> None:
        """Serve until the link is lost; all entries that it brought are stored then.

        Raises:
            EngineGoneError: no link could be opened.
            EngineRefusedError: the engine has another secret.
            EngineProtocolError: it sent something that is not of the protocol.
            NotReadyError: setting it up failed, or took too long.
            OutdatedEngineError: it is of a version that is not supported.
            UnknownWorkspaceError: the workspace was deleted.
        """
        row = await self._site.row()
        self._site.mark.put(row.journal_index)
        journal = await open_link(self._site, row, row.journal_index)
        try:
            calls = await open_link(self._site, row)
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
        if not is_supported(calls.hello.version):
            raise OutdatedEngineError(calls.hello.version)
        self._progress.learn(calls.hello.setup)
        if row.journal_index >= calls.hello.last_index:
            self._progress.catch_up(calls.hello.setup)
        try:
            async with asyncio.TaskGroup() as group:
                companions = [
                    group.create_task(self._aside(journal, partial(self._start, row, calls))),
                    group.create_task(self._aside(journal, partial(feel_pulse, self._site, calls))),
                    group.create_task(self._aside(journal, partial(self._progress.follow, calls))),
                    group.create_task(
                        self._aside(journal, partial(keep_permissions, self._site, calls))
                    ),
                    group.create_task(self._aside(journal, partial(keep_saved, self._site))),
                ]
                context = self._site.tools.context
                await relay(journal, context.event_log, row.id, self._stored, self._site.mark.fail)
                for task in companions:
                    task.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures

    async def _aside(self, journal: EngineLink, work: Callable[[], Awaitable[None]]) -> None:
        """Run alongside the relay, which still stores received entries when the engine is lost."""
        try:
            await work()
        except (EngineError, TimeoutError) as e:
            log.info("A link to an engine was lost: %s", e)
            self._site.line.clear()
            if isinstance(e, EngineProtocolError):
                await journal.close(e)  # the relay stores what has arrived, then raises it
                return
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
        held_back = await settle(self._site, calls)
        self._site.line.put(calls)
        self._site.unsaved.set()
        await self._site.courier.run(calls, calls.queue_release if held_back else None)

    async def _open_chats(self, calls: EngineLink) -> None:
        database = self._site.tools.context.database
        chats = await retry_until_stored(
            lambda: database.read(lambda c: list_chats(c, self._site.id))
        )
        for chat in chats:
            try:
                async with asyncio.timeout(self._site.tools.settings.call_limit):
                    await open_chat(calls, chat)
            except EngineRefusedError as e:
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
        await retry_until_stored(lambda: event_log.write(lambda w: enter_active(w, self._site.id)))
        self._site.pulse.turn_ended = False

    async def _note_claimed(self) -> None:
        """Note that it has left its pool: no later engine is to be claimed again."""
        database = self._site.tools.context.database
        await retry_until_stored(
            lambda: database.write(lambda c: change_workspace(c, self._site.id, warm_pool_id=None))
        )

    async def _wait_in_pool(self, row: WorkspaceRow) -> WorkspaceRow:
        await self._progress.reached()
        database = self._site.tools.context.database
        await retry_until_stored(lambda: database.write(lambda c: mark_ready(c, row.id)))
        self._site.pulse.progress = None
        self._site.prepared.set()
        await self._site.claimed.wait()
        return await self._site.row()

    def _stored(self, entries: Sequence[JournalEntry]) -> None:
        self._site.seen()
        self._site.mark.put(entries[-1].index)
        self._progress.hear(entries)
        if self._hello and entries[0].index <= self._hello.last_index <= entries[-1].index:
            self._progress.catch_up(self._hello.setup)
        if any(entry.type == EventType.CHAT_TURN_COMPLETED for entry in entries):
            self._site.pulse.turn_ended = True
            self._site.unsaved.set()
