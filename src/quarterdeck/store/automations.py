"""All automations, kept up to date by the feed of changes, and commands on them.

    list read -> newest run of each -> events applied -> change published

A service without such a feed is read when the person requests it.
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from pydantic import ValidationError

from quarterdeck.client.errors import ClientError, NotFoundError
from quarterdeck.store.automation_state import (
    AutomationState,
    RunPages,
    Summary,
    knows_payload,
    summary,
    under_way,
)
from quarterdeck.store.changes import read_id
from quarterdeck.store.signals import AutomationsChanged
from quarterdeck.wire.automation_runs import Execution, TriggerAutomation, Triggered
from quarterdeck.wire.automations import Automation, ChangeAutomation, CreateAutomation
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.events import AutomationEventType

if TYPE_CHECKING:
    from quarterdeck.client.automations import AutomationsApi
    from quarterdeck.store.app_state import AppState
    from quarterdeck.wire.events import Event


PAGE = 20
"""Runs that are read at a time."""


class AutomationCommands:
    """Commands of one service; a change is applied at once, before the stream reports it."""

    def __init__(self, owner: "AppState", automations: "AutomationStore") -> None:
        self._owner = owner
        self._automations = automations

    @property
    def _client(self) -> "AutomationsApi":
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
        self.problem: str | None = None
        self.stale: set[UUID] = set()
        """Automations that may have changed and were not read again yet."""
        self._revision = 0
        self._changed: dict[UUID, int] = {}
        """The revision of each automation's last change."""
        self.complete = False
        """Whether the list and the newest run of each were read."""

    # read by other modules

    @property
    def live(self) -> bool:
        """Whether changes are reported as they happen."""
        return self._owner.changes.live

    def ordered(self) -> list[AutomationState]:
        """Return automations: those that need the person first, then by their next time."""
        return sorted(self.states.values(), key=AutomationState.sort_key)

    def summary(self) -> Summary:
        """Return the current counts over all automations."""
        return summary(self.states.values(), utc_now())

    # called by the feed of changes

    async def catch_up(self, resumed: bool) -> None:
        """Read what may have changed while nothing was reported.

        Args:
            resumed: whether no event was missed.

        Raises:
            ClientError: it could not be read.
        """
        if not resumed or not self.complete:
            await self.refresh()
            return
        failed: ClientError | None = None
        for read in (self._reread_records, *(partial(self.reread, stale) for stale in self.stale)):
            try:
                await read()
            except ClientError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    async def apply(self, event: "Event") -> None:
        """Apply an event.

        Raises:
            ClientError: an automation that it names could not be read.
        """
        payload = event.payload
        match event.type:
            case AutomationEventType.AUTOMATION_CHANGED:
                if (changed := read_id(payload.get("automation_id"))) is not None:
                    await self.reread(changed)
            case AutomationEventType.AUTOMATION_DELETED:
                if (deleted := read_id(payload.get("automation_id"))) is not None:
                    self.drop(deleted)
            case AutomationEventType.EXECUTION_CHANGED:
                try:
                    self.take_run(Execution.model_validate(payload.get("execution")))
                except ValidationError as error:
                    log.warning("a run could not be read: %s", error)
            case _:
                pass

    def failed(self, error: ClientError) -> None:
        """Say why automations could not be read."""
        self.problem = f"{error} {error.next_step}"
        self.publish()

    # reading

    async def refresh(self) -> None:
        """Read the list and the newest run of each.

        Raises:
            ClientError: it could not be read; `problem` says why, and the known state stays.
        """
        self.complete = False
        since = self._revision
        try:
            automations = [automation async for automation in self._owner.client.automations.all()]
        except ClientError as error:
            self.failed(error)
            raise
        self._take_list(automations, since)
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

    def take(self, record: Automation) -> AutomationState:
        """Apply a record that was just read or returned."""
        self._note(record.id)
        state = self.states.get(record.id)
        if state is None:
            state = self.states[record.id] = AutomationState(record)
        else:
            state.record = record
        self.publish(record.id)
        return state

    def take_run(self, run: Execution) -> None:
        """Apply a run; one of an unknown automation is read with that automation."""
        if (state := self.states.get(run.automation_id)) is not None:
            state.take_run(run)
            self.publish(state.id)
        if run.workspace_id and under_way(run) and run.workspace_id not in self._owner.replicas:
            self._owner.refresh_soon()

    def drop(self, automation_id: UUID) -> None:
        """Remove an automation that was deleted."""
        self._note(automation_id)
        self.stale.discard(automation_id)
        if self.states.pop(automation_id, None) is not None:
            self.publish()

    def _note(self, automation_id: UUID) -> None:
        self._revision += 1
        self._changed[automation_id] = self._revision

    def publish(self, automation_id: UUID | None = None) -> None:
        """Publish that an automation, or any of them, changed."""
        self._owner.publish(AutomationsChanged(automation_id))

    def _take_list(self, automations: Iterable[Automation], since: int) -> None:
        """Apply a list that was requested at a revision: what changed after that is newer."""
        newer = {id for id, revision in self._changed.items() if revision > since}
        records = {record.id: record for record in automations if record.id not in newer}
        for deleted in self.states.keys() - records.keys() - newer:
            del self.states[deleted]
        for record in records.values():
            known = self.states.get(record.id)
            if known is None:
                self.states[record.id] = AutomationState(record)
            else:
                known.record = record
                known.history = None  # changes meanwhile were not reported
