"""The hooks of an environment: saved, activated, and tested in a separate workspace."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.records import as_record
from quarterdeck.service.environments.rows import (
    active_hook,
    drop_active_hook,
    list_hook_logs,
    save_hook,
)
from quarterdeck.service.environments.service import reach, reach_to_change, repositories_for
from quarterdeck.service.environments.setup import TESTED, Trial
from quarterdeck.service.environments.warm_pool_rows import (
    PoolPlace,
    WarmState,
    find_pool,
    make_pools_stale,
)
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.event_rows import StoredEvent
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.transitions import append_status_event
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.quotas import require_hook_test_room
from quarterdeck.service.replicas.rows import add_workspace, find_workspace
from quarterdeck.service.streams import PING
from quarterdeck.wire.environment_parts import (
    EnvironmentHook,
    HookTest,
    HookTestEvent,
    WarmHookState,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.setup import HookKind


async def read_hook(
    context: ServiceContext, caller: Caller, environment: str, kind: HookKind
) -> EnvironmentHook | None:
    """Return the active version.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """

    def run(connection: Connection) -> EnvironmentHook | None:
        return _in_force(connection, reach(connection, caller, environment), kind)

    return await context.database.read(run)


async def read_warm_hook(
    context: ServiceContext, caller: Caller, environment: str
) -> WarmHookState:
    """Return the active warm hook, and the environment's pool.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """
    place = PoolPlace.of(context)

    def run(connection: Connection) -> WarmHookState:
        of = reach(connection, caller, environment)
        hook = _in_force(connection, of, HookKind.WARM)
        return WarmHookState(warm_hook=hook, warm_pool=find_pool(connection, place, of))

    return await context.database.read(run)


async def save_warm_hook(
    context: ServiceContext, caller: Caller, environment: str, content: str
) -> EnvironmentHook:
    """Store the next version and activate it; prepared workspaces are stale from now on.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> EnvironmentHook:
        of = reach_to_change(connection, caller, environment)
        saved = save_hook(connection, caller.organization_id, of, HookKind.WARM, content, now)
        make_pools_stale(connection, caller.organization_id, of, now)
        return hook_record(saved)

    saved = await context.database.write(run)
    context.pools_changed.set()
    return saved


async def save_start_hook(
    context: ServiceContext, caller: Caller, environment: str, content: str
) -> EnvironmentHook | None:
    """Store the next version and activate it; with blank content none is active.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> EnvironmentHook | None:
        of = reach_to_change(connection, caller, environment)
        if content.strip():
            save_hook(connection, caller.organization_id, of, HookKind.START, content, now)
        else:
            drop_active_hook(connection, of, HookKind.START)
        make_pools_stale(connection, caller.organization_id, of, now)
        return _in_force(connection, of, HookKind.START)

    saved = await context.database.write(run)
    context.pools_changed.set()
    return saved


def hook_record(row: RowMapping) -> EnvironmentHook:
    """Return the version for a response: the columns of the contract."""
    return as_record(
        EnvironmentHook,
        {name: value for name, value in row.items() if name in EnvironmentHook.model_fields},
    )


def _in_force(connection: Connection, environment: str, kind: HookKind) -> EnvironmentHook | None:
    row = active_hook(connection, environment, kind)
    return None if row is None else hook_record(row)


@dataclass(frozen=True)
class HookTestRequest:
    """The hook to test; without content the active version."""

    caller: Caller
    environment: str
    kind: HookKind
    content: str | None


async def make_workspace(context: ServiceContext, request: HookTestRequest) -> str:
    """Store the workspace of a test; return its id.

    Raises:
        ApiError: NOT_FOUND when there is no such environment, INVALID_REQUEST when there is
            nothing to test, WORKSPACE_LIMIT_REACHED.
    """
    workspace_id, now = str(uuid4()), moment_text(context.clock())
    await context.event_log.write(
        lambda writer: _store(writer, context, request, workspace_id, now)
    )
    return workspace_id


def _store(
    writer: LogWriter,
    context: ServiceContext,
    request: HookTestRequest,
    workspace_id: str,
    now: str,
) -> None:
    connection, caller = writer.connection, request.caller
    of = reach(connection, caller, request.environment)
    organization, user = caller.organization_id, caller.user_id
    require_hook_test_room(connection, organization, context.home_id)
    add_workspace(
        connection,
        workspace_id,
        repositories_for(connection, organization, user, of) or [],
        home_id=context.home_id,
        driver=context.drivers.chosen,
        organization_id=organization,
        environment_id=of,
        user_id=user,
        name=f"test-{workspace_id}",
        source="api",
        lifecycle_policy="default",
        size="small",
        config_json=_trial(connection, of, request).as_json(),
        engine_secret_sealed=context.vault.new_engine_secret(workspace_id),
        warm_state=WarmState.TESTING,
        created_at=now,
        last_activity_at=now,
    )
    append_status_event(writer, workspace_id, WorkspaceStatus.PREPARING)


def _trial(connection: Connection, environment_id: str, request: HookTestRequest) -> Trial:
    own = {kind: active_hook(connection, environment_id, kind) for kind in HookKind}
    content, active = request.content, own[request.kind]
    if content is None and active is not None:
        content = str(active["content"])
    if content is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "There is no hook yet. Give its content.", "content"
        )
    return Trial(
        kind=request.kind,
        content=content,
        own_warm=own[HookKind.WARM] is not None,
        own_start=own[HookKind.START] is not None,
    )


BATCH = 500


async def run_test(context: ServiceContext, fleet: Fleet, request: HookTestRequest) -> HookTest:
    """Run a test to its end.

    Raises:
        ApiError: as `make_workspace`; CONFLICT when the workspace could not be set up, or an
            earlier hook failed.
    """
    workspace_id = await make_workspace(context, request)
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
    """Start a test in its workspace and yield its progress; then delete the workspace.

    Yields None from time to time when there is no progress, as a sign of life.
    """
    fleet.pools.keep_trial(workspace_id)
    try:
        subscription = await context.event_log.subscribe(workspace_id, 0)
        async with aclosing(subscription):
            yield HookTestEvent(type="progress", message="Creating a replica.")
            fleet.of(workspace_id).begin()
            seen = 0
            async for chunk in subscription:
                if chunk == PING:
                    yield None
                # Read first: the hook's output is stored before its end is.
                end = await context.database.read(lambda c: _end(c, workspace_id))
                while batch := await context.event_log.read_after(workspace_id, seen, BATCH):
                    seen = batch[-1].index
                    for hook_event in _hook_events(batch):
                        yield hook_event
                if end is not None:
                    yield end
                    return
    finally:
        await fleet.pools.end_trial(workspace_id)


def _hook_events(batch: list[StoredEvent]) -> Iterator[HookTestEvent]:
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
                yield HookTestEvent(type="progress", message=f"Running hooks: {names}.")
            case _:
                pass


def _end(connection: Connection, workspace_id: str) -> HookTestEvent | None:
    """Return the end of the test; None while it runs."""
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
        reason = row.error if row is not None else "The replica of the test was deleted."
        return HookTestEvent(type="error", message=reason)
    return None


async def save_tested(
    context: ServiceContext, caller: Caller, environment: str, content: str, passed: bool
) -> EnvironmentHook:
    """Store the next version of the warm hook, active only when its test passed.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> EnvironmentHook:
        of = reach_to_change(connection, caller, environment)
        organization = caller.organization_id
        row = save_hook(connection, organization, of, HookKind.WARM, content, now, active=passed)
        if passed:
            make_pools_stale(connection, organization, of, now)
        return hook_record(row)

    return await context.database.write(run)
