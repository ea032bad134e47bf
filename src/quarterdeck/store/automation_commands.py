"""What a person has done to automations and their runs. Every command raises the client's errors."""

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import NotFound
from quarterdeck.store.automation_states import AutomationState, RunPages, knows_payload
from quarterdeck.wire.automations import (
    Automation,
    ChangeAutomation,
    CreateAutomation,
    Execution,
    TriggerAutomation,
    Triggered,
)

if TYPE_CHECKING:
    from quarterdeck.client.automations import Automations as AutomationsClient
    from quarterdeck.store.automations import Automations, AutomationsOwner

PAGE = 20
"""Runs that are read at a time."""


class AutomationCommands:
    """Commands of one deck; what a command changes is known at once, before the stream tells it."""

    def __init__(self, owner: "AutomationsOwner", automations: "Automations") -> None:
        self._owner = owner
        self._automations = automations

    @property
    def _client(self) -> "AutomationsClient":
        return self._owner.client.automations

    async def create(self, body: CreateAutomation) -> Automation:
        """Makes one.

        Raises:
            InvalidRequest: a field is wrong; `details` names it.
            ClientError: refused or unreachable.
        """
        made = await self._client.create(body)
        self._automations.take(made)
        return made

    async def change(self, automation_id: UUID, body: ChangeAutomation) -> Automation:
        """Changes what was set. Raises as `create`."""
        changed = await self._client.change(automation_id, body)
        self._automations.take(changed)
        return changed

    async def switch(self, automation_id: UUID, on: bool) -> Automation:
        """Switches one on, which forgets its failures, or off.

        Raises:
            ClientError: refused or unreachable.
        """
        return await self.change(automation_id, ChangeAutomation(enabled=on))

    async def delete(self, automation_id: UUID) -> None:
        """Deletes one with its runs; one that is gone already is no error.

        Raises:
            ClientError: refused or unreachable.
        """
        with suppress(NotFound):
            await self._client.delete(automation_id)
        self._automations.drop(automation_id)

    async def start(self, automation_id: UUID, trigger: TriggerAutomation) -> Triggered:
        """Begins a run by hand.

        Raises:
            InvalidRequest: it cannot be started, or the pull request is of no use.
            ClientError: refused or unreachable.
        """
        begun = await self._client.trigger(automation_id, trigger)
        await self._show_run(automation_id, begun.execution_id)
        return begun

    async def retry(self, automation_id: UUID, run_id: UUID) -> UUID:
        """Runs a failed run again; the id of the new one.

        Raises:
            Conflict: it has not failed.
            ClientError: refused or unreachable.
        """
        again = await self._client.retry(automation_id, run_id)
        await self._show_run(automation_id, again.execution_id)
        return again.execution_id

    async def open_runs(self, automation_id: UUID) -> None:
        """Reads the newest runs, once.

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
        """Reads the page after the last one that was read, if there is one.

        Raises:
            ClientError: it could not be read.
        """
        state = self._automations.states.get(automation_id)
        history = state.history if state else None
        if state is not None and history is not None and history.more and not history.loading:
            await self._read_page(state, history)

    async def read_run(self, automation_id: UUID, run_id: UUID) -> Execution:
        """A run with its payload, read only when that is not known.

        Raises:
            NotFound: it is gone.
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
        # The stream tells of it too, where there is one; reading it twice does no harm.
        if not self._automations.live:
            self._automations.take_run(await self._client.execution(automation_id, run_id))
