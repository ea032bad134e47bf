"""All automations, kept up to date by their event stream.

    stream opened -> list read -> newest run of each -> events folded -> change published

The stream is opened before the list is read, so nothing falls between the two. A service without
such a stream is read when a person asks.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from pydantic import ValidationError

from quarterdeck.client.errors import ClientError, Forbidden, NotFound, Unauthorized
from quarterdeck.client.items import Lost, Malformed, Received, Restored
from quarterdeck.store.automation_commands import AutomationCommands
from quarterdeck.store.automation_states import AutomationState, Summary, summary, under_way
from quarterdeck.store.changes import AutomationsChanged, Change
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.base import utc_now

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.wire.automations import Automation, Execution
    from quarterdeck.wire.events import Event

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Newest runs that are asked for at the same time."""


class AutomationsOwner(Protocol):
    """What automations need of the deck."""

    @property
    def client(self) -> "Client": ...

    replicas: dict[UUID, ReplicaState]

    def publish(self, change: Change) -> None: ...

    def look_again(self) -> None:
        """Reads the list of replicas soon: there is one more."""
        ...

    def line_lost(self, error: Exception) -> None: ...

    def refused(self, error: ClientError) -> None: ...


class Automations:
    """Automations by id. `problem` says why they could not be read."""

    def __init__(self, owner: AutomationsOwner) -> None:
        self._owner = owner
        self.commands = AutomationCommands(owner, self)
        self.states: dict[UUID, AutomationState] = {}
        self.listed = False
        """Whether the list was read since the start."""
        self.live = False
        """Whether changes are told of as they happen."""
        self.problem: str | None = None
        self.behind: set[UUID] = set()
        """What is not read yet, though it may be another."""
        self.complete = False
        """Whether the list and the newest run of each were read."""
        self._reconnect: Callable[[], None] | None = None

    # what others read

    def ordered(self) -> list[AutomationState]:
        """Those first that need the person, then what is next."""
        return sorted(self.states.values(), key=AutomationState.sort_key)

    def summary(self) -> Summary:
        """What one line says of all of them at this moment."""
        return summary(self.states.values(), utc_now())

    # following

    async def run(self) -> None:
        """Follows until canceled, or until the service refuses."""
        try:
            await self._follow()
        except NotFound:
            log.info("this service tells nothing of automations as it happens")
        except (Unauthorized, Forbidden) as error:
            self._failed(error)
            self._owner.refused(error)
        except ClientError as error:
            self._failed(error)
        finally:
            self.live = False
            self._reconnect = None

    def reconnect_now(self) -> None:
        """Does not wait for the next try."""
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
                    case Lost(error, _):
                        self.live = False
                        self._owner.line_lost(error)
                    case Restored(resumed):
                        self.live = True
                        await self._catch_up(resumed)
                    case Malformed(error):
                        log.warning("an event of automations could not be read: %s", error)

    async def _catch_up(self, resumed: bool) -> None:
        if not resumed or not self.complete:
            await self._try(self.refresh())
            return
        for behind in list(self.behind):
            await self._try(self.reread(behind))

    async def _try(self, reading: Any) -> None:
        """What could not be read now is read when the line is back."""
        try:
            await reading
        except (Unauthorized, Forbidden):
            raise
        except ClientError as error:
            self._owner.line_lost(error)

    async def _fold(self, event: "Event") -> None:
        from quarterdeck.wire.automations import AutomationEventType, Execution

        payload = event.payload
        match event.type:
            case AutomationEventType.AUTOMATION_CHANGED:
                if (changed := _id(payload.get("automation_id"))) is not None:
                    await self._try(self.reread(changed))
            case AutomationEventType.AUTOMATION_DELETED:
                if (gone := _id(payload.get("automation_id"))) is not None:
                    self.drop(gone)
            case AutomationEventType.EXECUTION_CHANGED:
                try:
                    self.take_run(Execution.model_validate(payload.get("execution")))
                except ValidationError as error:
                    log.warning("a run could not be read: %s", error)
            case _:
                pass

    # reading

    async def refresh(self) -> None:
        """Reads the list and the newest run of each.

        Raises:
            ClientError: it could not be read; `problem` says why, what was known stays.
        """
        self.complete = False
        try:
            found = [one async for one in self._owner.client.automations.all()]
        except ClientError as error:
            self._failed(error)
            raise
        self._take_list(found)
        self.behind.clear()
        self.problem = None
        self.listed = True
        self.publish()
        await self._read_newest([one.id for one in found])
        self.complete = True

    async def reread(self, automation_id: UUID) -> None:
        """Reads one again.

        Raises:
            ClientError: it could not be read.
        """
        self.behind.add(automation_id)
        try:
            record = await self._owner.client.automations.get(automation_id)
        except NotFound:
            self.drop(automation_id)
        else:
            self.take(record)
        self.behind.discard(automation_id)

    async def _read_newest(self, ids: Iterable[UUID]) -> None:
        gate = asyncio.Semaphore(AT_ONCE)

        async def read(automation_id: UUID) -> None:
            async with gate:
                await self._read_last_run(automation_id)

        done = await asyncio.gather(*map(read, ids), return_exceptions=True)
        self.publish()
        for one in done:
            if isinstance(one, BaseException):
                raise one

    async def _read_last_run(self, automation_id: UUID) -> None:
        try:
            page = await self._owner.client.automations.executions(automation_id, limit=1)
        except NotFound:
            return  # it was deleted meanwhile; the stream says so
        state = self.states.get(automation_id)
        if state is not None and page.executions:
            state.take_run(page.executions[0])

    # taking in

    def take(self, record: "Automation") -> AutomationState:
        """Takes over a record that was just read or answered."""
        state = self.states.get(record.id)
        if state is None:
            state = self.states[record.id] = AutomationState(record)
        else:
            state.record = record
        self.publish(record.id)
        return state

    def take_run(self, run: "Execution") -> None:
        """Takes over a run; one of an automation that is not known waits for its own telling."""
        if (state := self.states.get(run.automation_id)) is not None:
            state.take_run(run)
            self.publish(state.id)
        if run.workspace_id and under_way(run) and run.workspace_id not in self._owner.replicas:
            self._owner.look_again()

    def drop(self, automation_id: UUID) -> None:
        """One is no more."""
        self.behind.discard(automation_id)
        if self.states.pop(automation_id, None) is not None:
            self.publish()

    def publish(self, automation_id: UUID | None = None) -> None:
        """Tells that one, or that any of them, is another."""
        self._owner.publish(AutomationsChanged(automation_id))

    def _take_list(self, found: "Iterable[Automation]") -> None:
        records = {record.id: record for record in found}
        for gone in [id for id in self.states if id not in records]:
            del self.states[gone]
        for record in records.values():
            known = self.states.get(record.id)
            if known is None:
                self.states[record.id] = AutomationState(record)
            else:
                known.record = record
                known.history = None  # what happened meanwhile was not told

    def _failed(self, error: ClientError) -> None:
        self.problem = f"{error} {error.next_step}"
        self.publish()


def _id(value: object) -> UUID | None:
    try:
        return UUID(str(value))
    except ValueError:
        return None
