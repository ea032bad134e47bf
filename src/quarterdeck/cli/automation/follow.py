"""Following a run to its end."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.options import Common
from quarterdeck.cli.output import put_json, say

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.client.items import Received
    from quarterdeck.wire.automations import Execution


@dataclass(frozen=True)
class Run:
    """What is followed."""

    automation_id: UUID
    id: UUID


async def follow_run(client: "Client", run: Run, common: Common) -> None:
    """Tells each state of the run until it has ended.

    Raises:
        NotDone: it failed, or its automation was deleted.
    """
    from quarterdeck.wire.automations import ExecutionStatus

    last = None
    async with aclosing(_states(client, run)) as states:
        async for state in states:
            if state.status == last:
                continue
            last = state.status
            _tell(common, state)
            if last == ExecutionStatus.FAILED:
                raise NotDone(state.error or "The run failed.", "qd automation retry runs it anew.")
            if last == ExecutionStatus.COMPLETED:
                return


def _tell(common: Common, state: "Execution") -> None:
    if common.json:
        # An event says less than the record: what it leaves out is not told as empty.
        put_json({"execution": state.model_dump(mode="json", exclude_unset=True)})
    else:
        say(f"The run is {state.status}.")


async def _states(client: "Client", run: Run) -> "AsyncGenerator[Execution]":
    """The run as it stands when the stream is open, and with each of its changes."""
    from quarterdeck.client.items import Lost, Received, Restored

    async with client.automations.events() as stream:
        async for item in stream:
            match item:
                case Restored(resumed=False):
                    yield await client.automations.execution(run.automation_id, run.id)
                case Received() if _is_about(item, run):
                    yield _state(item)
                case Lost(error):
                    say(f"qd: {error.message} Trying again.")
                case _:
                    pass


def _is_about(item: "Received", run: Run) -> bool:
    from quarterdeck.wire.automations import AutomationEventType

    payload = item.event.payload
    match item.event.type:
        case AutomationEventType.AUTOMATION_DELETED:
            if payload.get("automation_id") == str(run.automation_id):
                raise NotDone("The automation was deleted.")
            return False
        case AutomationEventType.EXECUTION_CHANGED:
            return payload.get("execution", {}).get("id") == str(run.id)
        case _:
            return False


def _state(item: "Received") -> "Execution":
    from quarterdeck.wire.automations import Execution

    return Execution.model_validate(item.event.payload["execution"])
