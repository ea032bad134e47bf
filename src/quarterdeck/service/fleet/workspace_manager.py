"""Operations on one workspace: run, sleep, archive, wake, delete."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from quarterdeck.engine.link import EngineError, EngineGoneError, EngineLink
from quarterdeck.sandboxes.errors import NotAwakeError
from quarterdeck.service.chats.rows import Deletion, has_undelivered, last_position
from quarterdeck.service.errors import ApiError, StorageError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.fleet.engine_lifecycle import EngineLifecycle
from quarterdeck.service.fleet.reconcile import end_chat
from quarterdeck.service.fleet.runtime import (
    NEXT_STEP,
    Dependencies,
    WorkspaceHealth,
    WorkspaceRuntime,
    new_site,
    open_link,
    unreachable,
)
from quarterdeck.service.fleet.saving import save_now
from quarterdeck.service.fleet.transitions import (
    RESTING,
    enter_archived,
    enter_sleeping,
    note_packing,
    remove,
    wake_up,
)
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.rows import BUSY, WorkspaceRow, change_workspace, find_workspace
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus

T = TypeVar("T")


class _Journaled(Protocol):
    index: int


Changed = TypeVar("Changed", bound=_Journaled)
Check = Callable[[], Awaitable[bool]]
"""Called before a workspace is put to rest, when nothing more is delivered to it."""

LOST = (ErrorCode.ENGINE_UNREACHABLE, ErrorCode.ENGINE_STARTING)
"""How a call fails when there is no engine to answer it."""

log = logging.getLogger(__name__)


MOST_FETCHES = 4
"""Fetches from within a workspace that run at a time; others wait."""
MOST_PUSHES = 2
"""Pushes from within a workspace whose commits are checked and sent at a time."""


class WorkspaceManager:
    """The one owner of a workspace's tasks. Commands that change its state come one at a time."""

    def __init__(self, workspace_id: str, tools: Dependencies) -> None:
        self._site = new_site(workspace_id, tools)
        self._tools = tools
        self._lock = asyncio.Lock()
        self._life: tuple[EngineLifecycle, asyncio.Task[None]] | None = None
        self._packing: asyncio.Task[bool] | None = None
        self.over = False
        """Nothing is started any more: the workspace or the service is ending."""
        self._wake_after = False
        self.stopping = False
        """The engine is being stopped; the row still says active."""
        self.fetches = asyncio.Semaphore(MOST_FETCHES)
        """Taken by a fetch from within the replica: its git runs outside of the sandbox."""
        self.pushes = asyncio.Semaphore(MOST_PUSHES)
        """Taken by a push from within the replica, likewise."""

    @property
    def site(self) -> WorkspaceRuntime:
        """The parts of the workspace."""
        return self._site

    @property
    def pulse(self) -> WorkspaceHealth:
        """When the engine last answered."""
        return self._site.pulse

    def begin(self) -> None:
        """Run the workspace: its row says preparing or active. Does nothing if it runs already."""
        if self.over or self.stopping or (self._life and not self._life[1].done()):
            return
        self._cancel_packing()
        life = EngineLifecycle(self._site)
        task = asyncio.create_task(life.run(), name=f"life of {self._site.id}")
        self._life = life, task

    def claimed(self) -> None:
        """Note that the workspace has left its pool; the person who requested it is waiting."""
        self._site.claimed.set()
        self.begin()

    def nudge(self) -> None:
        """Note that a message was accepted."""
        self._site.courier.nudge()

    async def call(
        self,
        row: WorkspaceRow,
        request: Callable[[EngineLink], Awaitable[T]],
        limit: float | None = None,
    ) -> T:
        """Call the engine of an active workspace; `limit` is in seconds.

        Raises:
            ApiError: WORKSPACE_NOT_ACTIVE, also when it is put to rest before the answer; NOT_FOUND
                when it is deleted; or as `EngineChannel.call`.
        """
        require_active(row)
        try:
            return await self._site.line.call(request, limit or self._tools.settings.call_limit)
        except ApiError as e:
            if e.code in LOST:
                await self._still_active()
            raise

    async def _still_active(self) -> None:
        """Distinguish a workspace that was put to rest from an engine that was lost."""
        if self.stopping:
            raise ApiError(
                ErrorCode.WORKSPACE_NOT_ACTIVE,
                "The replica is not active. It is being put to sleep; wake it first.",
            )
        row = await self._tools.context.database.read(lambda c: find_workspace(c, self._site.id))
        if row is None:
            raise _not_found()
        require_active(row)

    async def change(
        self, row: WorkspaceRow, request: Callable[[EngineLink], Awaitable[Changed]]
    ) -> Changed:
        """Request a change that the engine journals; on return it is in the rows as well.

        Raises:
            ApiError: as `call`.
            StorageError: the engine changed it, and the database cannot be written.
        """
        changed = await self.call(row, request)
        try:
            async with asyncio.timeout(self._tools.settings.call_limit):
                await self._site.mark.reached(changed.index)
        except TimeoutError as e:
            if (failure := self._site.mark.failure) is not None:
                raise failure from e
            raise unreachable(
                f"The replica's engine does not report its events. {NEXT_STEP}"
            ) from e
        return changed

    async def end_chat(self, row: WorkspaceRow, chat_id: str) -> None:
        """End a chat in the engine that was deleted in its row.

        Raises:
            ApiError: as `call`; it is done when the engine is next reached.
        """
        await self.call(row, lambda link: end_chat(self._site, link, chat_id, Deletion.REQUESTED))

    async def stopped(self) -> None:
        """Wait until nobody is stopping the engine."""
        if self.stopping:
            async with self._lock:
                return

    async def open_link(self, row: WorkspaceRow) -> EngineLink:
        """Return a separate link for the caller, for a stream.

        Raises:
            ApiError: as `call`.
        """
        return await self.call(row, lambda _: open_link(self._site, row))

    async def sleep(self, only_if: Check | None = None, *, by_request: bool = False) -> bool:
        """Stop the engine and keep the files; nothing changes for one that rests.

        With `only_if`, False and nothing changed when the check fails. With `by_request`, a turn
        that runs counts as interrupted, not as failed.

        Messages that the engine did not process wait until it is woken. One that is accepted while
        the engine is being stopped wakes it again, and so does a call of `wake`.

        Raises:
            ApiError: WORKSPACE_NOT_ACTIVE while preparing, WORKSPACE_ERROR_STATE, NOT_FOUND.
            SandboxError: the sandbox cannot be stopped; the workspace continues to run.
        """
        async with self._lock:
            return await self._sleep("put to sleep", only_if, by_request)

    async def archive(self, only_if: Check | None = None, *, by_request: bool = False) -> bool:
        """Put it to sleep if it is active, then pack its files.

        A message or a call of `wake` in the meantime wakes it, which also stops the packing; then,
        and when it is deleted in the meantime, False. Otherwise as `sleep`.

        Raises:
            ApiError: as `sleep`.
            SandboxError: it cannot be stopped, and continues to run; or not packed, and sleeps.
        """
        async with self._lock:
            if not await self._sleep("archived", only_if, by_request):
                return False
            status, _ = await self._tools.context.database.read(self._status_and_position)
            if status == WorkspaceStatus.SLEEPING and not self.over:
                return await self._pack()
            return status == WorkspaceStatus.ARCHIVED

    async def wake(self) -> None:
        """Prepare a resting or failed workspace; does nothing for any other.

        Raises:
            ApiError: WORKSPACE_LIMIT_REACHED, NOT_FOUND.
        """
        self._wake_after = True  # applies when it is just being put to sleep
        await self._tools.context.event_log.write(self._wake)
        self.begin()

    async def delete(self, only_if: Callable[[Connection], bool] | None = None) -> bool:
        """Stop everything, remove the record, then the files.

        With `only_if`, which is called in each transaction, False when it fails, and nothing changed
        except that a long history may be shorter; only for a workspace that does not run.

        Raises:
            ApiError: NOT_FOUND; INTERNAL_ERROR when files remain, which is tried again later.
            StorageError: the workspace continues, perhaps with less history.
        """
        self._cancel_packing()
        async with self._lock:
            self.over = True
            await self._cancel_life()
            try:
                removed = await remove(self._tools.context, self._site.id, only_if)
            except StorageError:
                self.over = False
                self.begin()
                raise
            if not removed:
                self.over = False
                self.begin()
            return removed

    async def close(self) -> None:
        """Disconnect from the engine, which continues to run."""
        self.over = True
        if packing := self._packing:
            packing.cancel()
            await asyncio.wait({packing})
        await self._cancel_life()

    async def _sleep(self, action: str, only_if: Check | None, by_request: bool) -> bool:
        status, mark = await self._tools.context.database.read(self._status_and_position)
        if status in RESTING:
            return True
        _require_sleepable(status, action)
        self._wake_after, self._site.courier.paused = False, True
        try:
            if only_if is not None and (not await only_if() or self._wake_after):
                return False
            slept = await self._stop(by_request)
        except BaseException:
            self.begin()
            raise
        finally:
            self._site.courier.paused = False
            self._site.courier.nudge()
        if not slept:  # it failed in the meantime
            raise _in_error()
        await self._wake_for_news(mark)
        return True

    async def _stop(self, by_request: bool) -> bool:
        """End the engine, then enter sleeping; False when the state has changed by now."""
        self.stopping = True
        try:
            await self._end_engine(by_request)
            await self._cancel_life()
            await self._site.row()  # the container is not stopped if another service has it now
            await (await self._site.driver()).stop(self._site.id)
            return await self._tools.context.event_log.write(
                lambda writer: enter_sleeping(writer, self._site.id, self._now())
            )
        finally:
            self.stopping = False

    async def _pack(self) -> bool:
        """Pack; False when it was stopped, or too late."""
        packing = self._packing = asyncio.create_task(self._put_away(), name="packing")
        try:
            await asyncio.wait({packing})
        finally:
            self._packing = None
            if packing.cancel():  # the caller was cancelled
                await asyncio.wait({packing})
        return not packing.cancelled() and packing.result()

    async def _put_away(self) -> bool:
        driver, database = await self._site.driver(), self._tools.context.database
        if driver.saved_work is not None:  # its files are where other services reach them
            home, now = self._tools.context.home_id, self._now()
            if not await database.write(lambda c: note_packing(c, self._site.id, home, now)):
                return False
        try:
            await driver.pack(self._site.id)
        except NotAwakeError:  # nothing was packed, so another service may take it over
            await database.write(lambda c: change_workspace(c, self._site.id, packed_at=None))
            raise
        return await self._tools.context.event_log.write(
            lambda writer: enter_archived(writer, self._site.id, self._now())
        )

    def _cancel_packing(self) -> None:
        if self._packing is not None:
            self._packing.cancel()

    def _now(self) -> str:
        return moment_text(self._tools.context.clock())

    async def _end_engine(self, by_request: bool) -> None:
        """Request the engine to end, and wait until its journal was stored to the last entry."""
        link = self._site.line.link
        if self._life is None or link is None:
            return
        life, task = self._life
        await save_now(self._site, self._tools.settings.last_save_limit)
        life.ending = True
        try:
            async with asyncio.timeout(self._tools.settings.link_limit):
                await link.shutdown(by_request)
        except EngineGoneError:
            pass  # it ended before it could answer
        except (EngineError, TimeoutError) as e:
            log.warning("The engine of %s does not end by itself: %s", self._site.id, e)
            return
        await asyncio.wait({task}, timeout=self._tools.settings.drain_limit)

    async def _wake_for_news(self, mark: int) -> None:
        database, event_log = self._tools.context.database, self._tools.context.event_log
        new = await database.read(lambda c: has_undelivered(c, self._site.id, after=mark))
        if not (new or self._wake_after):
            return
        try:
            await event_log.write(self._wake)
        except ApiError as e:
            log.warning("Workspace %s was not woken again: %s", self._site.id, e.message)
            return
        self.begin()

    async def _cancel_life(self) -> None:
        if self._life is not None:
            _, task = self._life
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._life = None

    def _wake(self, writer: LogWriter) -> None:
        row = find_workspace(writer.connection, self._site.id)
        if row is None:
            raise _not_found()
        if row.status not in BUSY:
            wake_up(writer, row, self._tools.settings.active_limit)

    def _status_and_position(self, connection: Connection) -> tuple[str, int]:
        row = find_workspace(connection, self._site.id)
        if row is None or not row.is_of(self._tools.context.home_id):
            raise _not_found()
        return row.status, last_position(connection, self._site.id)


def require_active(row: WorkspaceRow) -> None:
    """Refuse with 409 in every state but active an operation that needs the engine.

    Raises:
        ApiError: WORKSPACE_NOT_ACTIVE; the message says what to do.
    """
    if row.status == WorkspaceStatus.ACTIVE:
        return
    advice = {
        WorkspaceStatus.PREPARING: "It is being prepared.",
        WorkspaceStatus.ERROR: "It failed; wake it to try again.",
    }.get(WorkspaceStatus(row.status), "Wake it first.")
    raise ApiError(
        ErrorCode.WORKSPACE_NOT_ACTIVE, f"The replica is not active. {advice}", row.status
    )


def _require_sleepable(status: str, action: str) -> None:
    if status == WorkspaceStatus.ERROR:
        raise _in_error()
    if status == WorkspaceStatus.PREPARING:
        raise ApiError(
            ErrorCode.WORKSPACE_NOT_ACTIVE,
            f"The replica is being prepared and cannot be {action} yet.",
            status,
        )


def _in_error() -> ApiError:
    return ApiError(
        ErrorCode.WORKSPACE_ERROR_STATE, "The replica has failed; wake it to try again."
    )


def _not_found() -> ApiError:
    return ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")
