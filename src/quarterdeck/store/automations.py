"""All automations, kept up to date by their event stream.

    stream opened -> list read -> newest run of each -> events folded -> change published

The stream is opened before the list is read, so no change is missed. A service without such a stream
is read when the person requests it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import ValidationError

from quarterdeck.client.errors import ClientError, ForbiddenError, NotFoundError, UnauthorizedError
from quarterdeck.client.stream_events import ConnectionLost, ConnectionRestored, Malformed, Received
from quarterdeck.store.automation_commands import AutomationCommands
from quarterdeck.store.automation_state import AutomationState, Summary, summary, under_way
from quarterdeck.store.changes import AutomationsChanged
from quarterdeck.wire.base import utc_now

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState
    from quarterdeck.wire.automation_runs import Execution
    from quarterdeck.wire.automations import Automation
    from quarterdeck.wire.events import Event

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Newest runs that are requested at the same time."""


class AutomationStore:
    """Automations by id. `problem` says why they could not be read."""

    def __init__(self, owner: "AppState") -> None:
        self._owner = owner
        self.commands = AutomationCommands(owner, self)
        self.states: dict[UUID, AutomationState] = {}
        self.listed = False
        """Whether the list was read since the start."""
        self.live = False
        """Whether changes are reported as they happen."""
        self.problem: str | None = None
        self.stale: set[UUID] = set()
        """Automations that may have changed and were not read again yet."""
        self.complete = False
        """Whether the list and the newest run of each were read."""
        self._reconnect: Callable[[], None] | None = None

    # read by other modules

    def ordered(self) -> list[AutomationState]:
        """Return automations: those that need the person first, then by their next time."""
        return sorted(self.states.values(), key=AutomationState.sort_key)

    def summary(self) -> Summary:
        """Return the current counts over all automations."""
        return summary(self.states.values(), utc_now())

    # following

    async def run(self) -> None:
        """Follow until canceled, or until the service refuses."""
        try:
            await self._follow()
        except NotFoundError:
            log.info("this service does not send automation events")
        except (UnauthorizedError, ForbiddenError) as error:
            self._failed(error)
            self._owner.refused(error)
        except ClientError as error:
            self._failed(error)
        finally:
            self.live = False
            self._reconnect = None

    def reconnect_now(self) -> None:
        """Do not wait for the next try."""
        if self._reconnect is not None:
            self._reconnect()

    async def _follow(self) -> None:
        stream = self._owner.client.automations.events()
        self._reconnect = stream.reconnect_now
        async with stream:
            async for item in stream:
                match item:
                    case Received(_, event):
                        await self._fold(event)
                    case ConnectionLost(error, _):
                        self.live = False
                        self._owner.connection_lost(error)
                    case ConnectionRestored(resumed):
                        self.live = True
                        await self._catch_up(resumed)
                    case Malformed(error):
                        log.warning("an event of automations could not be read: %s", error)

    async def _catch_up(self, resumed: bool) -> None:
        if not resumed or not self.complete:
            await self._try(self.refresh())
            return
        await self._try(self._reread_records())
        for stale in list(self.stale):
            await self._try(self.reread(stale))

    async def _try(self, reading: Any) -> None:
        """Await a reading; a failed one is repeated when the connection is restored."""
        try:
            await reading
        except (UnauthorizedError, ForbiddenError):
            raise
        except ClientError as error:
            self._owner.connection_lost(error)

    async def _fold(self, event: "Event") -> None:
        from quarterdeck.wire.automation_runs import Execution
        from quarterdeck.wire.automations import AutomationEventType

        payload = event.payload
        match event.type:
            case AutomationEventType.AUTOMATION_CHANGED:
                if (changed := _id(payload.get("automation_id"))) is not None:
                    await self._try(self.reread(changed))
            case AutomationEventType.AUTOMATION_DELETED:
                if (deleted := _id(payload.get("automation_id"))) is not None:
                    self.drop(deleted)
            case AutomationEventType.EXECUTION_CHANGED:
                try:
                    self.take_run(Execution.model_validate(payload.get("execution")))
                except ValidationError as error:
                    log.warning("a run could not be read: %s", error)
            case _:
                pass

    # reading

    async def refresh(self) -> None:
        """Read the list and the newest run of each.

        Raises:
            ClientError: it could not be read; `problem` says why, and the known state stays.
        """
        self.complete = False
        try:
            automations = [one async for one in self._owner.client.automations.all()]
        except ClientError as error:
            self._failed(error)
            raise
        self._take_list(automations)
        self.stale.clear()
        self.problem = None
        self.listed = True
        self.publish()
        await self._read_newest([one.id for one in automations])
        self.complete = True

    async def reread(self, automation_id: UUID) -> None:
        """Read one again.

        Raises:
            ClientError: it could not be read.
        """
        self.stale.add(automation_id)
        try:
            record = await self._owner.client.automations.get(automation_id)
        except NotFoundError:
            self.drop(automation_id)
        else:
            await self._read_skipped(self.take(record))
        self.stale.discard(automation_id)

    async def _reread_records(self) -> None:
        """Read the records again: a restarted service may have other settings."""
        async for record in self._owner.client.automations.all():
            self.take(record)

    async def _read_skipped(self, state: AutomationState) -> None:
        """Read the skipped times of the schedule if the runs are shown: no event reports them."""
        if state.history is None or state.record.cron_expression is None:
            return
        page = await self._owner.client.automations.executions(state.id)
        state.history.take_skipped(page.skipped)
        self.publish(state.id)

    async def _read_newest(self, ids: Iterable[UUID]) -> None:
        gate = asyncio.Semaphore(AT_ONCE)

        async def read(automation_id: UUID) -> None:
            async with gate:
                await self._read_last_run(automation_id)

        results = await asyncio.gather(*map(read, ids), return_exceptions=True)
        self.publish()
        for one in results:
            if isinstance(one, BaseException):
                raise one

    async def _read_last_run(self, automation_id: UUID) -> None:
        try:
            page = await self._owner.client.automations.executions(automation_id, limit=1)
        except NotFoundError:
            return  # it was deleted meanwhile; the stream reports that
        state = self.states.get(automation_id)
        if state is not None and page.executions:
            state.take_run(page.executions[0])

    # applying

    def take(self, record: "Automation") -> AutomationState:
        """Apply a record that was just read or returned."""
        state = self.states.get(record.id)
        if state is None:
            state = self.states[record.id] = AutomationState(record)
        else:
            state.record = record
        self.publish(record.id)
        return state

    def take_run(self, run: "Execution") -> None:
        """Apply a run; one of an unknown automation is read with that automation."""
        if (state := self.states.get(run.automation_id)) is not None:
            state.take_run(run)
            self.publish(state.id)
        if run.workspace_id and under_way(run) and run.workspace_id not in self._owner.replicas:
            self._owner.refresh_soon()

    def drop(self, automation_id: UUID) -> None:
        """Remove an automation that was deleted."""
        self.stale.discard(automation_id)
        if self.states.pop(automation_id, None) is not None:
            self.publish()

    def publish(self, automation_id: UUID | None = None) -> None:
        """Publish that an automation, or any of them, changed."""
        self._owner.publish(AutomationsChanged(automation_id))

    def _take_list(self, automations: "Iterable[Automation]") -> None:
        records = {record.id: record for record in automations}
        for deleted in [id for id in self.states if id not in records]:
            del self.states[deleted]
        for record in records.values():
            known = self.states.get(record.id)
            if known is None:
                self.states[record.id] = AutomationState(record)
            else:
                known.record = record
                known.history = None  # changes meanwhile were not reported

    def _failed(self, error: ClientError) -> None:
        self.problem = f"{error} {error.next_step}"
        self.publish()


def _id(value: object) -> UUID | None:
    try:
        return UUID(str(value))
    except ValueError:
        return None
