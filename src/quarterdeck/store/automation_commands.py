"""Commands on automations and their runs. Every command raises the client's errors."""

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import NotFoundError
from quarterdeck.store.automation_state import AutomationState, RunPages, knows_payload
from quarterdeck.wire.automation_runs import Execution, TriggerAutomation, Triggered
from quarterdeck.wire.automations import Automation, ChangeAutomation, CreateAutomation

if TYPE_CHECKING:
    from quarterdeck.client.automations import AutomationsApi as AutomationsClient
    from quarterdeck.store.app_state import AppState
    from quarterdeck.store.automations import AutomationStore

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
