"""Runs a test: makes its workspace, follows what happens in it, removes it."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from sqlalchemy import Connection

from quarterdeck.service.broadcast import PING
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.hook_tests.making import Asked, make_workspace
from quarterdeck.service.records.events import StoredEvent
from quarterdeck.service.records.hook_logs import list_hook_logs
from quarterdeck.service.records.workspaces import find_workspace
from quarterdeck.service.workspace_setup.trial import TESTED
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.hook_tests import HookTest, HookTestEvent
from quarterdeck.wire.replicas import WorkspaceStatus

BATCH = 500


async def run_test(context: ServiceContext, fleet: Fleet, asked: Asked) -> HookTest:
    """Runs a test to its end.

    Raises:
        ApiError: as `make_workspace`; CONFLICT when the workspace could not be set up, or a hook
            that comes before the tested one failed.
    """
    workspace_id = await make_workspace(context, asked)
    async with aclosing(follow_test(context, fleet, workspace_id)) as events:
        async for event in events:
            if event is None:
                continue
            if event.type == "error":
                raise ApiError(ErrorCode.CONFLICT, "The hook could not be tested.", event.message)
            if event.type == "complete":
                return HookTest(
                    exit_code=event.exit_code,
                    output=event.output or "",
                    timed_out=bool(event.timed_out),
                )
    raise ApiError(ErrorCode.INTERNAL_ERROR, "The service stops; the hook was not tested.")


async def follow_test(
    context: ServiceContext, fleet: Fleet, workspace_id: str
) -> AsyncGenerator[HookTestEvent | None, None]:
    """Begins a test in its workspace and tells how it goes, to its end; then the workspace goes.

    None now and then when there is nothing to tell, so that a stream does not stand still.
    """
    fleet.pools.keep_trial(workspace_id)
    try:
        subscription = await context.event_log.subscribe(workspace_id, 0)
        async with aclosing(subscription):
            yield HookTestEvent(type="progress", message="A workspace is being made.")
            fleet.of(workspace_id).begin()
            seen = 0
            async for chunk in subscription:
                if chunk == PING:
                    yield None
                # Asked for first: what the hook said is stored by the time that its end is.
                end = await context.database.read(lambda c: _end(c, workspace_id))
                while batch := await context.event_log.read_after(workspace_id, seen, BATCH):
                    seen = batch[-1].index
                    for told in _told(batch):
                        yield told
                if end is not None:
                    yield end
                    return
    finally:
        await fleet.pools.end_trial(workspace_id)


def _told(batch: list[StoredEvent]) -> Iterator[HookTestEvent]:
    for event in batch:
        payload = json.loads(event.payload_json)
        name = payload.get("hookName")
        match event.type:
            case EventType.HOOKS_PROGRESS if name == TESTED:
                yield HookTestEvent(type="output", output=payload.get("output"))
            case EventType.HOOKS_PROGRESS:
                yield HookTestEvent(type="progress", message=payload.get("output"))
            case EventType.HOOKS_STARTED:
                names = ", ".join(payload.get("running") or [])
                yield HookTestEvent(type="progress", message=f"Hooks begin to run: {names}.")
            case _:
                pass


def _end(connection: Connection, workspace_id: str) -> HookTestEvent | None:
    """How the test ended; None while it goes on."""
    row = find_workspace(connection, workspace_id)  # first: a failure is stored after its log
    for log in list_hook_logs(connection, workspace_id):
        if log["hookName"] == TESTED:
            return HookTestEvent(
                type="complete",
                exit_code=log["exitCode"],
                output=log["output"],
                timed_out=log["timedOut"],
            )
    if row is None or row.status == WorkspaceStatus.ERROR:
        reason = row.error if row is not None else "The workspace of the test is gone."
        return HookTestEvent(type="error", message=reason)
    return None
