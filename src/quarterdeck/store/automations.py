"""All automations, kept up to date by their event stream, and commands on them.

    stream opened -> list read -> newest run of each -> events folded -> change published

The stream is opened before the list is read, so no change is missed. A service without such a stream
is read when the person requests it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import ValidationError

from quarterdeck.client.errors import ClientError, ForbiddenError, NotFoundError, UnauthorizedError
from quarterdeck.client.stream_events import ConnectionLost, ConnectionRestored, Malformed, Received
from quarterdeck.store.automation_state import (
    AutomationState,
    RunPages,
    Summary,
    knows_payload,
    summary,
    under_way,
)
from quarterdeck.store.signals import AutomationsChanged
from quarterdeck.wire.automation_runs import Execution, TriggerAutomation, Triggered
from quarterdeck.wire.automations import Automation, ChangeAutomation, CreateAutomation
from quarterdeck.wire.base import utc_now

if TYPE_CHECKING:
    from quarterdeck.client.automations import AutomationsApi as AutomationsClient
    from quarterdeck.store.app_state import AppState
    from quarterdeck.wire.automation_runs import Execution
    from quarterdeck.wire.automations import Automation
    from quarterdeck.wire.events import Event


PAGE = 20
"""Runs that are read at a time."""


class AutomationCommands:
    """Commands of one service; a change is applied at once, before the stream reports it."""

    def __init__(self, owner: "AppState", automations: "AutomationStore") -> None:
        self._owner = owner
        self._automations = automations

    @property
    def _client(self) -> "AutomationsClient":
        return self._owner.client.automations

    async def create(self, body: CreateAutomation) -> Automation:
        """Create one.

        Raises:
            InvalidRequestError: a field is wrong; `details` names it.
            ClientError: refused or unreachable.
        """
        created = await self._client.create(body)
        self._automations.take(created)
        return created

    async def change(self, automation_id: UUID, body: ChangeAutomation) -> Automation:
        """Change the fields that are set. Raises as `create`."""
        changed = await self._client.change(automation_id, body)
        self._automations.take(changed)
        return changed

    async def switch(self, automation_id: UUID, on: bool) -> Automation:
        """Switch one on, which resets its failures, or off.

        Raises:
            ClientError: refused or unreachable.
        """
        return await self.change(automation_id, ChangeAutomation(enabled=on))

    async def delete(self, automation_id: UUID) -> None:
        """Delete one with its runs; not an error when it was already deleted.

        Raises:
            ClientError: refused or unreachable.
        """
        with suppress(NotFoundError):
            await self._client.delete(automation_id)
        self._automations.drop(automation_id)

    async def start(self, automation_id: UUID, trigger: TriggerAutomation) -> Triggered:
        """Start a run by hand.

        Raises:
            InvalidRequestError: it cannot be started, or the pull request cannot be used.
            ClientError: refused or unreachable.
        """
        triggered = await self._client.trigger(automation_id, trigger)
        await self._show_run(automation_id, triggered.execution_id)
        return triggered

    async def retry(self, automation_id: UUID, run_id: UUID) -> UUID:
        """Run a failed run again; return the id of the new one.

        Raises:
            ConflictError: it has not failed.
            ClientError: refused or unreachable.
        """
        retried = await self._client.retry(automation_id, run_id)
        await self._show_run(automation_id, retried.execution_id)
        return retried.execution_id

    async def approve(self, automation_id: UUID, run_id: UUID) -> None:
        """Approve a run that waits for approval.

        Raises:
            ConflictError: it does not wait for approval any more.
            ClientError: refused or unreachable.
        """
        self._automations.take_run(await self._client.approve(automation_id, run_id))

    async def cancel(self, automation_id: UUID, run_id: UUID) -> None:
        """End a run.

        Raises:
            ConflictError: it has ended.
            ClientError: refused or unreachable.
        """
        self._automations.take_run(await self._client.cancel(automation_id, run_id))

    async def rotate_webhook(self, automation_id: UUID) -> Automation:
        """Give an automation's webhook a new token.

        Raises:
            ClientError: refused or unreachable.
        """
        rotated = await self._client.rotate_webhook(automation_id)
        self._automations.take(rotated)
        return rotated

    async def open_runs(self, automation_id: UUID) -> None:
        """Read the newest runs, once.

        Raises:
            ClientError: they could not be read.
        """
        state = self._automations.states.get(automation_id)
        if state is not None and state.history is None:
            state.history = RunPages()
            try:
                await self._read_page(state, state.history)
            except BaseException:
                state.history = None
                raise

    async def more_runs(self, automation_id: UUID) -> None:
        """Read the next page, if there is one.

        Raises:
            ClientError: it could not be read.
        """
        state = self._automations.states.get(automation_id)
        history = state.history if state else None
        if state is not None and history is not None and history.more and not history.loading:
            await self._read_page(state, history)

    async def read_run(self, automation_id: UUID, run_id: UUID) -> Execution:
        """Return a run with its payload, reading it only if that is not known.

        Raises:
            NotFoundError: it was deleted.
            ClientError: refused or unreachable.
        """
        state = self._automations.states.get(automation_id)
        known = state.history.find(run_id) if state and state.history else None
        if known is not None and knows_payload(known):
            return known
        run = await self._client.execution(automation_id, run_id)
        self._automations.take_run(run)
        return run

    async def _read_page(self, state: AutomationState, history: RunPages) -> None:
        history.loading = True
        try:
            page = await self._client.executions(state.id, history.pages + 1, PAGE)
        finally:
            history.loading = False
        if state.history is history:
            state.take_page(page)
        self._automations.publish(state.id)

    async def _show_run(self, automation_id: UUID, run_id: UUID) -> None:
        # With a live stream, that reports the run.
        if not self._automations.live:
            self._automations.take_run(await self._client.execution(automation_id, run_id))


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
            case AutomationEventType.REPLICA_CHANGED:
                if (changed := _id(payload.get("replica_id"))) is not None:
                    known = self._owner.replicas.get(changed)
                    if payload.get("status") != (known and known.status):
                        self._owner.refresh_soon()
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
            automations = [automation async for automation in self._owner.client.automations.all()]
        except ClientError as error:
            self._failed(error)
            raise
        self._take_list(automations)
        self.stale.clear()
        self.problem = None
        self.listed = True
        self.publish()
        await self._read_newest([automation.id for automation in automations])
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
